package scenarios

import (
	"context"
	"strings"

	"k8slab/lab/symptom"
)

var upgradeEtcdFlagRemoved = Fault{
	Name:    "upgrade-etcd-flag-removed",
	Story:   "etcd's manifest has a flag that begins with --experimental-: etcd 3.7 does not start with it, and kubeadm does not look (etcd's guide to 3.7)",
	Roles:   controlPlane,
	Upgrade: Before,
	Applies: to137("etcd refuses such flags"),
	Symptom: symptom.FlagRemoved,
	Inject:  experimentalFlag.make,
	Effect:  runsWith("etcd", "--experimental-"),
	Recover: upgradable,
	ByHand:  "remove the flag from etcd's manifest",
	Restore: experimentalFlag.undo,
}

var experimentalFlag = edit{path: manifests + "etcd.yaml", how: addFlag("etcd", "--experimental-warning-apply-duration=100ms")}

// runsWith returns nil if a process of the node that begins with the program's name has the words, and the node's API server is ready.
func runsWith(program, words string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		out, err := t.Run(ctx, t.Node, "sh", "-c", `pgrep -f "$1" || echo none`, "sh", "^"+program+" .*"+words)
		if err == nil && strings.Contains(out, "none") {
			err = absent("no %s on %s has %s", program, t.Node, words)
		}
		if err != nil {
			return err
		}
		return served("ca.crt", "6443", "/readyz", "", "ok")(ctx, t)
	}
}

var upgradeKubeletFlagRemoved = Fault{
	Name:    "upgrade-kubelet-flag-removed",
	Story:   "kubelet's environment has a flag of cAdvisor, which kubelet 1.37 refuses: the node does not come back from its upgrade (Kubernetes 1.37)",
	Roles:   everyRole,
	Upgrade: Before,
	Applies: to137("kubelet refuses the flag"),
	Symptom: symptom.KubeletFlagRemoved,
	Inject:  cadvisorFlag.make,
	Recover: upgradable,
	ByHand:  "remove the flag from " + kubeletFlags,
	Restore: cadvisorFlag.undo,
}

var cadvisorFlag = edit{path: kubeletFlags, how: `sed --in-place 's/="/="--log-cadvisor-usage=false /' "$1"`, then: restartKubelet}

var upgradeFeatureGateRemoved = Fault{
	Name:    "upgrade-feature-gate-removed",
	Story:   "the API server is started with a feature gate that was switched on years ago and is gone in the next version (Kubernetes' list of removed feature gates)",
	Roles:   controlPlane,
	Upgrade: Before,
	Applies: to137("the feature gate is gone"),
	Symptom: symptom.FlagRemoved,
	Inject:  sidecarGate.make,
	Effect:  runsWith("kube-apiserver", "SidecarContainers"),
	Recover: upgradable,
	ByHand:  "remove the feature gate from the API server's manifest",
	Restore: sidecarGate.undo,
}

var sidecarGate = edit{path: manifests + "kube-apiserver.yaml", how: addFlag("kube-apiserver", "--feature-gates=SidecarContainers=true")}

var upgradeCertificateExpired = Fault{
	Name:    "upgrade-certificate-expired",
	Story:   "nobody has upgraded for a year, so the upgrade meets a certificate that has expired (kubeadm#1651)",
	Roles:   controlPlane,
	Upgrade: Before,
	Applies: anotherControlPlane,
	Symptom: symptom.CertificateExpired,
	Inject:  apiServerCertificateExpired.Inject,
	Effect:  apiServerCertificateExpired.Effect,
	Recover: [][]string{{"repair"}, upgradable[0]},
	Restore: apiServerCertificateExpired.Restore,
}

var upgradeEvictionBlocked = Fault{
	Name:    "upgrade-eviction-blocked",
	Story:   "a PodDisruptionBudget never lets a pod go, so no node that has one can be drained (Kubernetes' guide to draining nodes)",
	Roles:   everyRole,
	Upgrade: Before,
	Symptom: symptom.EvictionBlocked,
	Of:      theCluster,
	Inject: adminApplies(`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: fault-budget, namespace: kube-system}
spec: {maxUnavailable: 0, selector: {matchLabels: {k8s-app: kube-dns}}}
`),
	Recover: upgradable,
	ByHand:  "somebody deletes or changes the budget",
	Restore: func(ctx context.Context, t Target) error {
		return t.shell(ctx, t.ControlPlane, asAdmin+`kubectl --namespace kube-system delete poddisruptionbudget fault-budget --ignore-not-found`)
	},
}

var upgradeAPIRemoved = Fault{
	Name:    "upgrade-api-removed",
	Story:   "a controller still asks for networking.k8s.io/v1beta1, which 1.37 no longer serves (Kubernetes' guide to deprecated APIs)",
	Roles:   controlPlane,
	Upgrade: Before,
	Applies: to137("the API is gone"),
	Symptom: symptom.APIRemoved,
	Of:      theCluster,
	Inject:  servesOldAPI.everywhere,
	Effect: func(ctx context.Context, t Target) error {
		_, err := t.kubectl(ctx, "get", "--raw", "/apis/networking.k8s.io/v1beta1/ipaddresses")
		return err
	},
	Once:    true, // who asks again would be found again
	Recover: upgradable,
	May:     []Change{Others},
	ByHand:  "move the controller to networking.k8s.io/v1, and let the API servers start anew",
	Restore: servesOldAPI.undoEverywhere,
}

var servesOldAPI = edit{path: manifests + "kube-apiserver.yaml", how: addFlag("kube-apiserver", "--runtime-config=networking.k8s.io\\/v1beta1=true")}

var upgradeWebhookUnreachable = Fault{
	Name:    "upgrade-webhook-unreachable",
	Story:   "a webhook whose policy engine is gone rejects every new pod: pods that a drain has evicted never come back (cozystack#3125)",
	Roles:   workers,
	Upgrade: Before,
	Symptom: symptom.AdmissionRejects,
	Of:      theCluster,
	Inject:  webhookUnreachable.Inject,
	Effect:  webhookUnreachable.Effect,
	Recover: upgradable,
	ByHand:  "somebody deletes the webhook that is left",
	Restore: webhookUnreachable.Restore,
}
