package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var webhookUnreachable = Fault{
	Name:    "webhook-unreachable",
	Story:   "a policy engine was removed and its webhook stayed: every new pod is rejected, on every node (cozystack#3125)",
	Roles:   workers,
	Symptom: symptom.Unexplained,
	Of:      anywhere,
	Inject: func(ctx context.Context, t Target) error {
		return t.shell(ctx, t.ControlPlane, `printf %s "$1" | kubectl --kubeconfig /etc/kubernetes/admin.conf create --filename -`, deadWebhook)
	},
	Effect: func(ctx context.Context, t Target) error {
		t.Node = t.ControlPlane
		return t.says(ctx, []string{"failed calling webhook"}, "kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf",
			"run", probeSandbox, "--image=fault.invalid/none", "--restart=Never", "--dry-run=server")
	},
	Recover: repair,
	Stops:   true,
	May:     []Change{Others},
	Restore: func(ctx context.Context, t Target) error {
		return t.shell(ctx, t.ControlPlane, `
			kubectl --kubeconfig /etc/kubernetes/admin.conf delete validatingwebhookconfiguration fault-webhook --ignore-not-found`)
	},
}

// deadWebhook asks where nothing listens, and so without waiting.
const deadWebhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: fault-webhook}
webhooks:
  - name: policy.fault.invalid
    clientConfig: {url: "https://127.0.0.1:9/validate"}
    rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
    failurePolicy: Fail
    sideEffects: None
    timeoutSeconds: 1
    admissionReviewVersions: [v1]
`
