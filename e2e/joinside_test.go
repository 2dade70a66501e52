//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// What hangs a join from the cluster's side, where no log of the joining machine tells of it: the lab restores what is its own, and names what
// is not.
var _ = Describe("a worker's join that the cluster hangs", Label("wide", "Slow", "Disruptive"), Serial, Ordered, ContinueOnFailure, func() {
	var l *lab

	BeforeAll(func(ctx SpecContext) {
		l = newLab("e2e-joinside", 63, 1, 1)
		DeferCleanup(l.down, NodeTimeout(2*time.Minute))
		l.must(ctx, "up")
	}, NodeTimeout(6*time.Minute))

	AfterEach(func(ctx SpecContext) { l.saveEvidence(ctx) }, NodeTimeout(2*time.Minute))

	DescribeTable("is healed where kubeadm has made what is missing", func(ctx SpecContext, cause string, damage ...string) {
		l.must(ctx, "reset", "w1")
		l.kubectl(ctx, damage...)
		said, r := l.join(ctx, "w1")
		Expect(r.code).To(BeZero(), "join: %s", r)
		Expect(said).To(ContainElement(HavePrefix("cause: "+cause)), "what the join said")
		Expect(said).To(ContainElement(HavePrefix("repaired with kubeadm")), "what the join said")
		l.becomesHealthy(ctx)
	},
		Entry("nobody may approve its request", SpecTimeout(2*time.Minute), "bootstrap-rbac-forbidden", "delete", "clusterrolebinding", "kubeadm:node-autoapprove-bootstrap"),
		Entry("its token may not ask for a certificate", SpecTimeout(2*time.Minute), "bootstrap-rbac-forbidden", "delete", "clusterrolebinding", "kubeadm:kubelet-bootstrap"),
		Entry("cluster-info is deleted", SpecTimeout(2*time.Minute), "join-config-missing", "delete", "configmap", "-n", "kube-public", "cluster-info"),
		Entry("cluster-info is hidden", SpecTimeout(2*time.Minute), "bootstrap-rbac-forbidden", "delete", "rolebinding", "-n", "kube-public", "kubeadm:bootstrap-signer-clusterinfo"),
		Entry("kubeadm-config is deleted", SpecTimeout(2*time.Minute), "join-config-missing", "delete", "configmap", "-n", "kube-system", "kubeadm-config"),
		Entry("kubelet-config is deleted", SpecTimeout(2*time.Minute), "join-config-missing", "delete", "configmap", "-n", "kube-system", "kubelet-config"),
	)

	It("is approved where the approver does not run", func(ctx SpecContext) {
		l.must(ctx, "reset", "w1")
		l.restartControllers(ctx, `s/--controllers=[^"]*/&,-csrapproving/`)
		said, r := l.join(ctx, "w1")
		Expect(r.code).To(BeZero(), "join: %s", r)
		Expect(said).To(ContainElement(HavePrefix("repaired: approved CSR ")), "what the join said")
		l.restartControllers(ctx, `s/,-csrapproving//`)
		l.becomesHealthy(ctx)
	}, SpecTimeout(5*time.Minute))

	It("ends at once where a policy rejects the Node, and the policy stays", func(ctx SpecContext) {
		l.must(ctx, "reset", "w1")
		l.apply(ctx, `{"apiVersion": "v1", "kind": "List", "items": [
			{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "no-nodes"}, "spec": {
				"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nodes"]}]},
				"validations": [{"expression": "false", "message": "no asset tag"}]}},
			{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "no-nodes-anywhere"},
				"spec": {"policyName": "no-nodes", "validationActions": ["Deny"]}}]}`)
		Eventually(func(ctx context.Context) string { return l.run(ctx, "join", "w1").stderr }).WithContext(ctx).WithTimeout(90*time.Second).
			Should(And(ContainSubstring("admission-rejects"), ContainSubstring("policy no-nodes with binding no-nodes-anywhere")), "a policy takes a moment to be in force")
		begin := time.Now()
		Expect(l.run(ctx, "join", "w1").code).To(Equal(1))
		Expect(time.Since(begin)).To(BeNumerically("<", 15*time.Second))
		l.kubectl(ctx, "delete", "validatingadmissionpolicybinding", "no-nodes-anywhere")
		l.kubectl(ctx, "delete", "validatingadmissionpolicy", "no-nodes")
		Eventually(func(ctx context.Context) int { return l.run(ctx, "join", "w1").code }).WithContext(ctx).WithTimeout(90 * time.Second).Should(BeZero())
		l.becomesHealthy(ctx)
	}, SpecTimeout(6*time.Minute))

	It("ends where a webhook rejects by its silence, and the webhook stays", func(ctx SpecContext) {
		l.must(ctx, "reset", "w1")
		l.apply(ctx, `{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "inventory"}, "webhooks": [{
			"name": "nodes.inventory.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": 1,
			"clientConfig": {"url": "https://127.0.0.1:1/nodes"},
			"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nodes"]}]}]}`)
		begin := time.Now()
		r := l.run(ctx, "join", "w1")
		Expect(r.code).To(Equal(1), "join: %s", r)
		Expect(time.Since(begin)).To(BeNumerically("<", 40*time.Second))
		Expect(r.stderr).To(And(ContainSubstring("admission-rejects"), ContainSubstring("webhook nodes.inventory.example.com of ValidatingWebhookConfiguration inventory")), "%s", r)
		Expect(l.kubectl(ctx, "get", "validatingwebhookconfiguration", "-o", "name")).To(ContainSubstring("inventory"))
		l.kubectl(ctx, "delete", "validatingwebhookconfiguration", "inventory")
		l.must(ctx, "join", "w1")
		l.becomesHealthy(ctx)
	}, SpecTimeout(5*time.Minute))
})

// apply applies an object, as JSON, with the administrator's rights.
func (l *lab) apply(ctx context.Context, object string) {
	GinkgoHelper()
	l.ssh(ctx, "cp1", "sh", "-ec", fmt.Sprintf("echo '%s' | kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f -", strings.Join(strings.Fields(object), " ")))
}

// restartControllers edits the controller manager's manifest, and waits until the new one leads.
func (l *lab) restartControllers(ctx context.Context, edit string) {
	GinkgoHelper()
	leader := func(ctx context.Context) string {
		return l.run(ctx, "kubectl", "--", "get", "lease", "-n", "kube-system", "kube-controller-manager", "-o", "jsonpath={.spec.holderIdentity}").stdout
	}
	before := leader(ctx)
	l.ssh(ctx, "cp1", "sed", "-i", edit, "/etc/kubernetes/manifests/kube-controller-manager.yaml")
	Eventually(leader).WithContext(ctx).WithTimeout(2 * time.Minute).ShouldNot(Or(Equal(before), BeEmpty()))
}
