//go:build e2e

package e2e

import (
	"encoding/json"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("options of kubeadm and of nodes", Label("wide", "Slow"), Serial, Ordered, ContinueOnFailure, func() {
	var l *lab
	const (
		gate    = "ReduceDefaultCrashLoopBackOffDecay"
		options = `kubernetes:
  feature_gates: {` + gate + `: true}
  kubeadm:
    cluster: {apiServer: {extraArgs: [{name: event-ttl, value: 30m}]}}
    kubelet: {maxPods: 64}
    patches: {kube-scheduler+merge: {metadata: {annotations: {lab.example/owner: team}}}}
resources:
  control_plane: {taints: []}
  worker: {kubelet: {maxPods: 32}, labels: {lab.example/disk: ssd}, taints: ["lab.example/only=batch:PreferNoSchedule"], disks: [1]}
`
	)

	BeforeAll(func() {
		l = newLab("e2e-options", 74, 1, 1)
		l.rewrite("nodes:\n", options+"nodes:\n")
		DeferCleanup(l.down, NodeTimeout(2*time.Minute))
	})
	AfterEach(func(ctx SpecContext) { l.saveEvidence(ctx) }, NodeTimeout(2*time.Minute))

	It("are refused where the version does not know them, before a machine is made", Label("ci"), func(ctx SpecContext) {
		l.rewrite("event-ttl", "event-tl")
		l.rewrite("maxPods: 32", "maxPod: 32")
		l.rewrite(gate, "Reduced")
		r := l.run(ctx, "up")
		Expect(r.code).To(Equal(1), "up: %s", r)
		Expect(r.stderr).To(And(
			ContainSubstring("kubernetes.kubeadm.cluster.apiServer.extraArgs: unknown flag: --event-tl\n"),
			ContainSubstring("resources.worker.kubelet: unknown field \"maxPod\"\n"),
			ContainSubstring("kubernetes.feature_gates: unrecognized feature gate: Reduced\n")))
		Expect(l.run(ctx, "status").stdout).To(MatchRegexp(`cp1 .* absent `))
	}, SpecTimeout(5*time.Minute))

	It("are in the cluster", Label("ci"), func(ctx SpecContext) {
		l.must(ctx, "up")
		for node, pods := range map[string]float64{"cp1": 64, "w1": 32} {
			var is struct {
				Kubeletconfig struct {
					MaxPods      float64
					FeatureGates map[string]bool
				}
			}
			Expect(json.Unmarshal([]byte(l.must(ctx, "kubectl", "get", "--raw", "/api/v1/nodes/"+node+"/proxy/configz")), &is)).To(Succeed())
			Expect(is.Kubeletconfig.MaxPods).To(Equal(pods), node)
			Expect(is.Kubeletconfig.FeatureGates).To(HaveKeyWithValue(gate, true), node)
		}
		argv := l.must(ctx, "kubectl", "get", "pod", "-n", "kube-system", "kube-apiserver-cp1", "-o", "jsonpath={.spec.containers[0].command}")
		Expect(argv).To(And(ContainSubstring(`"--event-ttl=30m"`), ContainSubstring(`"--feature-gates=`+gate+`=true"`)))
		Expect(l.must(ctx, "kubectl", "get", "pod", "-n", "kube-system", "kube-scheduler-cp1", "-o", "jsonpath={.metadata.annotations}")).
			To(ContainSubstring(`"lab.example/owner":"team"`))
		Expect(l.must(ctx, "kubectl", "get", "node", "cp1", "-o", "jsonpath={.spec.taints}")).To(BeEmpty())
		Expect(l.must(ctx, "kubectl", "get", "node", "w1", "-o", "jsonpath={.spec.taints} {.metadata.labels}")).
			To(And(ContainSubstring(`"key":"lab.example/only","value":"batch"`), ContainSubstring(`"lab.example/disk":"ssd"`)))
		Expect(strings.TrimSpace(l.ssh(ctx, "w1", "blockdev", "--getsize64", "/dev/vdc"))).To(Equal("1073741824"))
	}, SpecTimeout(6*time.Minute))

	It("change in place, one node after another, where kubeadm can", func(ctx SpecContext) {
		l.rewrite("value: 30m}]", "value: 40m}], certSANs: [api.example]")
		l.rewrite("maxPods: 32", "maxPods: 33")
		l.rewrite("lab.example/disk: ssd", "lab.example/disk: nvme")
		l.rewrite(gate+": true", gate+": false")
		Expect(l.must(ctx, "plan")).To(ContainSubstring("feature gate " + gate + "=false"))
		began := time.Now()
		l.must(ctx, "up")
		AddReportEntry("labctl up with other options, 1 + 1", time.Since(began).Round(100*time.Millisecond).String())
		argv := l.must(ctx, "kubectl", "get", "pod", "-n", "kube-system", "kube-apiserver-cp1", "-o", "jsonpath={.spec.containers[0].command}")
		Expect(argv).To(And(ContainSubstring(`"--event-ttl=40m"`), ContainSubstring(`"--feature-gates=`+gate+`=false"`)))
		Expect(l.must(ctx, "kubectl", "get", "--raw", "/api/v1/nodes/w1/proxy/configz")).To(And(ContainSubstring(`"maxPods":33`), ContainSubstring(`"`+gate+`":false`)))
		Expect(l.must(ctx, "kubectl", "get", "node", "w1", "-o", "jsonpath={.metadata.labels}")).To(ContainSubstring(`"lab.example/disk":"nvme"`))
		l.must(ctx, "kubectl", "--tls-server-name", "api.example", "get", "node", "w1")
		began = time.Now()
		Expect(l.must(ctx, "up")).NotTo(ContainSubstring("reconfigure"))
		AddReportEntry("labctl up again", time.Since(began).Round(100*time.Millisecond).String())
	}, SpecTimeout(5*time.Minute))

	It("are what a repair puts back", func(ctx SpecContext) {
		const files = "/var/lib/kubelet/config.yaml /var/lib/kubelet/kubeadm-flags.env"
		before := l.ssh(ctx, "w1", append([]string{"cat"}, strings.Fields(files)...)...)
		l.ssh(ctx, "w1", "rm", "/var/lib/kubelet/kubeadm-flags.env")
		l.ssh(ctx, "w1", "systemctl", "stop", "kubelet")
		l.must(ctx, "repair")
		Expect(l.ssh(ctx, "w1", append([]string{"cat"}, strings.Fields(files)...)...)).To(Equal(before))
		Expect(l.must(ctx, "repair", "--dry-run")).To(ContainSubstring("nothing to repair"))
	}, SpecTimeout(4*time.Minute))
})
