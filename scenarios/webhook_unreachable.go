package scenarios

import (
	"context"
	"fmt"

	"k8slab/lab/symptom"
)

var webhookUnreachable = Fault{
	Name:    "webhook-unreachable",
	Story:   "a policy engine was removed and its webhook stayed: every new pod is rejected, on every node (cozystack#3125)",
	Roles:   workers,
	Symptom: symptom.AdmissionRejects,
	Of:      theCluster,
	Inject:  adminApplies(deadWebhook("pods")),
	Effect:  rejected("Pod", "spec: {containers: [{name: none, image: fault.invalid/none}]}"),
	Recover: repair,
	Remedy:  symptom.DeleteObject,
	May:     []Change{Others},
	Restore: deletesWebhook,
}

// deadWebhook asks where nothing listens, and so without waiting, whether such an object may be made.
func deadWebhook(resources string) string {
	return fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: fault-webhook}
webhooks:
  - name: policy.fault.invalid
    clientConfig: {url: "https://127.0.0.1:9/validate"}
    rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [%s]}]
    failurePolicy: Fail
    sideEffects: None
    timeoutSeconds: 1
    admissionReviewVersions: [v1]
`, resources)
}

// asAdmin begins scripts for the control plane that ask the API server as the cluster's administrator.
const asAdmin = "export KUBECONFIG=/etc/kubernetes/admin.conf\n"

// adminApplies makes the objects.
func adminApplies(objects string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		return t.shell(ctx, t.ControlPlane, asAdmin+`printf %s "$1" | kubectl apply --filename -`, objects)
	}
}

// rejected returns nil if the API server would not make an object of the kind, because a webhook does not answer.
func rejected(kind, spec string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		t.Node = t.ControlPlane
		object := fmt.Sprintf("{kind: %s, apiVersion: v1, metadata: {name: fault-probe}, %s}", kind, spec)
		return t.says(ctx, []string{"failed calling webhook"}, "sh", "-ec",
			asAdmin+`printf %s "$1" | kubectl create --dry-run=server --filename -`, "sh", object)
	}
}

// deletesWebhook is what the diagnosis advises.
func deletesWebhook(ctx context.Context, t Target) error {
	return t.shell(ctx, t.ControlPlane, asAdmin+`kubectl delete ValidatingWebhookConfiguration fault-webhook --ignore-not-found`)
}
