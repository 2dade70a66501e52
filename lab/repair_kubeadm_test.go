package lab

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/health"
	"k8slab/lab/labtest"
	"k8slab/lab/repair"
	"k8slab/lab/symptom"
)

// spoil writes a file of a node; "" deletes it.
func spoil(node, file, text string) func(*testing.T, *world) {
	return func(_ *testing.T, w *world) { w.box(node).files[file] = text }
}

func deleted(at string) func(*testing.T, *world) {
	return func(_ *testing.T, w *world) { delete(w.objects, at) }
}

// kubeadmDamages are of what kubeadm made: where each is found, as what, and what of its evidence and repair is told.
var kubeadmDamages = []struct {
	name, node string
	id         symptom.ID
	evidence   string
	did        string
	damage     func(*testing.T, *world)
}{
	{"an expired certificate", "cp2", symptom.CertificateExpired, pkiFiles + "apiserver.crt: it expired", "kubeadm init phase certs apiserver",
		func(t *testing.T, w *world) { w.box("cp2").files[pkiFiles+"apiserver.crt"] = w.pki.expired(t) }},
	{"a truncated key", "cp3", symptom.FileChanged, pkiFiles + "etcd/peer.crt: certificate and key", "kubeadm init phase certs etcd-peer",
		spoil("cp3", pkiFiles+"etcd/peer.key", "-----BEGIN")},
	{"an authority's key is gone", "cp2", symptom.X509UnknownAuthority, pkiFiles + "ca.key", "copied them from cp1", spoil("cp2", pkiFiles+"ca.key", "")},
	{"the key of service accounts is broken", "cp1", symptom.X509UnknownAuthority, pkiFiles + "sa.key", "copied them from cp2", spoil("cp1", pkiFiles+"sa.key", "x")},
	{"a kubeconfig is gone", "cp3", symptom.FileChanged, "/etc/kubernetes/scheduler.conf: it is no kubeconfig", "kubeadm init phase kubeconfig scheduler",
		spoil("cp3", kubernetes+"scheduler.conf", "")},
	{"a kubeconfig of another server", "cp2", symptom.FileChanged, "/etc/kubernetes/admin.conf: its server is https://192.0.2.9:6443", "kubeadm init phase kubeconfig admin",
		func(_ *testing.T, w *world) {
			w.box("cp2").files[kubernetes+"admin.conf"] = w.pki.kubeconfig("https://192.0.2.9:6443")
		}},
	{"a worker's kubeconfig is cut", "w1", symptom.FileChanged, "/etc/kubernetes/kubelet.conf: it is no kubeconfig", "kubeadm on cp1 sign a new client certificate",
		spoil("w1", kubernetes+"kubelet.conf", "apiVersion: v1\n")},
	{"a worker trusts another authority", "w2", symptom.FileChanged, pkiFiles + "ca.crt: it is not the cluster's authority", "sign a new client certificate",
		spoil("w2", pkiFiles+"ca.crt", "x")},
	{"kubelet's flags are gone", "w2", symptom.FileChanged, kubelets + "kubeadm-flags.env is missing or empty", "wrote what kubeadm makes", spoil("w2", kubelets+"kubeadm-flags.env", "")},
	{"kubelet's configuration is no YAML", "w1", symptom.FileChanged, kubelets + "config.yaml is not what kubeadm makes", "wrote what kubeadm makes", spoil("w1", kubelets+"config.yaml", "\x00{")},
	{"kubelet's state was cut by a full disk", "w1", symptom.FileChanged, kubelets + "cpu_manager_state", "moved it aside", spoil("w1", kubelets+"cpu_manager_state", "\n")},
	{"kubelet's record of pods is cut", "cp2", symptom.FileChanged, "does not start with it: " + kubelets + "allocated_pods_state", "moved it aside",
		func(_ *testing.T, w *world) {
			files := w.box("cp2").files
			files[kubelets+"cpu_manager_state"], files[kubelets+"allocated_pods_state"] = `{"policyName":"none"}`, `{"data":"{\"entries\":{`
		}},
	{"a manifest is gone", "cp2", symptom.ControlPlaneCrashloop, manifestDir + "kube-apiserver.yaml is missing", "wrote the manifest", spoil("cp2", manifestDir+"kube-apiserver.yaml", "")},
	{"etcd's manifest is cut", "cp3", symptom.EtcdUnreachable, manifestDir + "etcd.yaml is no manifest of a pod", "wrote the manifest", spoil("cp3", manifestDir+"etcd.yaml", "kind: P")},
	{"kube-proxy was deleted", "", symptom.KubeProxyCrash, "kube-proxy is missing", "applied kubeadm's manifest", deleted("/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy")},
	{"CoreDNS was deleted", "", symptom.DNSResolutionFailure, "coredns is missing", "applied kubeadm's manifest", deleted("/apis/apps/v1/namespaces/kube-system/deployments/coredns")},
	{"what joins may was deleted", "", symptom.BootstrapRBACForbidden, "kubeadm:kubelet-bootstrap", "had kubeadm make it again", denied("create certificatesigningrequests")},
	{"what joins read was deleted", "", symptom.JoinConfigMissing, "kube-system/kubeadm-config", "had kubeadm make it again", deleted(systemConfigs + "kubeadm-config")},
	{"cluster-info leads elsewhere", "", symptom.JoinConfigMissing, "its server is https://192.0.2.9:6443", "had kubeadm make it again",
		func(_ *testing.T, w *world) {
			w.document(publicConfigs + "cluster-info")["kubeconfig"] = w.pki.kubeconfig("https://192.0.2.9:6443")
		}},
	{"cluster-info trusts another", "", symptom.JoinConfigMissing, "does not trust the cluster's authority", "had kubeadm make it again",
		func(t *testing.T, w *world) {
			w.document(publicConfigs + "cluster-info")["kubeconfig"] = newPKI(t, w.lab.found.Cluster).kubeconfig("https://10.30.0.10:6443")
		}},
	{"kubeadm's version is old", "", symptom.VersionSkew, "its kubernetesVersion is v1.29.0, not v1.37.2", "had kubeadm make it again",
		reworded(systemConfigs+"kubeadm-config", "ClusterConfiguration", "v1.37.2", "v1.29.0")},
	{"kubeadm has no endpoint", "", symptom.ControlPlaneEndpointMissing, "it has no controlPlaneEndpoint", "had kubeadm make it again",
		reworded(systemConfigs+"kubeadm-config", "ClusterConfiguration", "controlPlaneEndpoint", "damaged")},
	{"kubeadm's certificates are elsewhere", "", symptom.JoinConfigMissing, "its certificatesDir is /damaged", "had kubeadm make it again",
		reworded(systemConfigs+"kubeadm-config", "ClusterConfiguration", "/etc/kubernetes/pki", "/damaged")},
	{"kubeadm's pods are elsewhere", "", symptom.JoinConfigMissing, "its networking.podSubnet is 10.9.0.0/16", "had kubeadm make it again",
		reworded(systemConfigs+"kubeadm-config", "ClusterConfiguration", "10.244.0.0/16", "10.9.0.0/16")},
	{"kubeadm's configuration is no YAML", "", symptom.JoinConfigMissing, "kubeadm-config cannot be used", "had kubeadm make it again",
		reworded(systemConfigs+"kubeadm-config", "ClusterConfiguration", "kind:", "{")},
	{"kubelets' configuration knows no static pods", "", symptom.JoinConfigMissing, "kubelet-config: its staticPodPath is /damaged", "had kubeadm make it again",
		reworded(systemConfigs+"kubelet-config", "kubelet", "/etc/kubernetes/manifests", "/damaged")},
	{"kube-proxy asks elsewhere", "", symptom.KubeProxyCrash, "ConfigMap kube-system/kube-proxy differs", "applied kubeadm's manifest",
		reworded(systemConfigs+"kube-proxy", "kubeconfig.conf", "10.30.0.10", "192.0.2.9")},
	{"kube-proxy's configuration is damaged", "", symptom.KubeProxyCrash, "ConfigMap kube-system/kube-proxy differs", "applied kubeadm's manifest",
		reworded(systemConfigs+"kube-proxy", "config.conf", "kind: KubeProxyConfiguration", "kind: damaged")},
	{"the Corefile is cut", "", symptom.DNSResolutionFailure, "ConfigMap kube-system/coredns differs", "applied kubeadm's manifest",
		reworded(systemConfigs+"coredns", "Corefile", "}", "")},
	{"the administrator has no rights", "", symptom.RBACChanged, "kubeadm:cluster-admins", "made both again", denied("* *")},
	{"a default role is empty", "", symptom.RBACChanged, "ClusterRole system:kube-scheduler allows nothing", "restarted the API server of cp3",
		func(_ *testing.T, w *world) {
			w.objects["/apis/rbac.authorization.k8s.io/v1/clusterroles/system:kube-scheduler"]["rules"] = []any{}
		}},
	{"a default binding was deleted", "", symptom.RBACChanged, "ClusterRoleBinding system:kube-scheduler is missing", "restarted the API server of cp3",
		deleted("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:kube-scheduler")},
	{"etcd has no space", "cp2", symptom.DiskFull, "NOSPACE", "defragmented", func(_ *testing.T, w *world) { w.cramped = "cp2" }},
}

// A dry run says what of kubeadm's a repair makes again, and changes nothing; the repair does that and no more, and then finds nothing.
func TestRepairOfWhatKubeadmMade(t *testing.T) {
	for _, tt := range kubeadmDamages {
		inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
			w.up()
			w.clean()
			w.change(func() { tt.damage(t, w) })
			foreseen, err := w.lab.Repair(t.Context(), true, repair.Restart)
			if err != nil || len(foreseen) != 1 || foreseen[0].Would == "" || len(w.lab.Changes()) > 0 {
				t.Errorf("%s: a dry run: %+v, %v, changed %q", tt.name, foreseen, err, w.lab.Changes())
			}
			found, err := w.lab.Repair(t.Context(), false, repair.Restart)
			if err != nil || len(found) != 1 || found[0].Node != tt.node || found[0].Symptom != string(tt.id) || !strings.Contains(found[0].Evidence, tt.evidence) ||
				!strings.Contains(found[0].Did, tt.did) {
				t.Errorf("%s: %+v, %v", tt.name, found, err)
			}
			if len(foreseen) == 1 && len(found) == 1 && (foreseen[0].Symptom != found[0].Symptom || foreseen[0].Evidence != found[0].Evidence) {
				t.Errorf("%s: foreseen was %+v", tt.name, foreseen)
			}
			w.wantHealthy()
			if again, err := w.lab.Repair(t.Context(), false, repair.Restart); err != nil || len(again) > 0 {
				t.Errorf("%s: a second repair: %+v, %v", tt.name, again, err)
			}
		})
	}
}

// A worker's own settings of kubelet, which kubeadm on a control plane knows nothing of, are no damage, and come back with the rest.
func TestRepairKeepsOwnSettingsOfKubelet(t *testing.T) {
	const own = "evictionHard: {memory.available: 50Mi}\nkind: KubeletConfiguration\nmaxPods: 32\n"
	inWorld(t, labtest.WithOptions, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		files := w.box("w1").files
		w.change(func() { files[kubelets+"config.yaml"], files[kubelets+"kubeadm-flags.env"] = own, "" })
		found, err := w.lab.Repair(t.Context(), false, repair.Restart)
		if err != nil || len(found) != 1 || !strings.Contains(found[0].Evidence, "kubeadm-flags.env is missing") || files[kubelets+"config.yaml"] != own {
			t.Errorf("%+v, %v, %s", found, err, files[kubelets+"config.yaml"])
		}
		w.change(func() { files[kubelets+"config.yaml"] = "kind: KubeletConfiguration\n\x00" })
		found, err = w.lab.Repair(t.Context(), false, repair.Restart)
		if text := files[kubelets+"config.yaml"]; err != nil || len(found) != 1 || !strings.Contains(text, "maxPods: 32") || !strings.Contains(text, "50Mi") {
			t.Errorf("%+v, %v, %s", found, err, text)
		}
		w.wantHealthy()
	})
}

// reworded replaces a text in a document of the cluster.
func reworded(at, key, from, to string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		data := w.document(at)
		text := data[key].(string)
		if !strings.Contains(text, from) {
			t.Errorf("%s has no %q", at, from)
		}
		data[key] = strings.Replace(text, from, to, 1)
	}
}

func (w *world) document(at string) object { return w.objects[at]["data"].(object) }

// What an administrator may set is no damage, and no repair of something else takes it back.
func TestRepairLeavesSettings(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		const mode, cache = "mode: ipvs", "cache 99"
		w.change(func() {
			reworded(systemConfigs+"kube-proxy", "config.conf", "mode: nftables", mode)(t, w)
			reworded(systemConfigs+"coredns", "Corefile", "cache 30", cache)(t, w)
			reworded(systemConfigs+"kubelet-config", "kubelet", "[10.96.0.10]", "[169.254.20.10]")(t, w)
			reworded(systemConfigs+"kubeadm-config", "ClusterConfiguration", "networking:", "apiServer: {extraArgs: []}\nnetworking:")(t, w)
		})
		if found, err := w.lab.Repair(t.Context(), false, repair.Restart); err != nil || len(found) > 0 {
			t.Errorf("%+v, %v", found, err)
		}
		w.change(func() { denied("get nodes")(t, w) })
		if found, err := w.lab.Repair(t.Context(), false, repair.Restart); err != nil || len(found) != 1 {
			t.Errorf("%+v, %v", found, err)
		}
		if text := fmt.Sprint(w.document(systemConfigs+"kube-proxy"), w.document(systemConfigs+"coredns")); !strings.Contains(text, mode) || !strings.Contains(text, cache) {
			t.Errorf("the settings are gone: %s", text)
		}
	})
}

// The configuration that the lab makes is not that of a cluster which somebody has upgraded.
func TestRepairOfAnUpgradedCluster(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		w.change(func() { w.upgraded = "v1.37.3" })
		before := w.document(systemConfigs + "kubeadm-config")["ClusterConfiguration"]
		found, err := w.lab.Repair(t.Context(), false, repair.Restart)
		if len(found) != 1 || found[0].Symptom != string(symptom.VersionSkew) || !strings.Contains(found[0].Left, "cluster.yaml has v1.37.2") {
			t.Errorf("%+v, %v", found, err)
		}
		if now := w.document(systemConfigs + "kubeadm-config")["ClusterConfiguration"]; now != before {
			t.Errorf("it is now %s", now)
		}
	})
}

// The only control plane's admin.conf, whatever is wrong with it, is made again with credentials that only the repair had.
func TestRepairOfTheOnlyAdministrator(t *testing.T) {
	for name, text := range map[string]string{"deleted": "", "cut": "apiVersion: v1\nclusters:\n- clus", "not YAML": "\x00"} {
		inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
			w.up()
			w.clean()
			const file = kubernetes + "admin.conf"
			w.change(func() { w.box("cp1").files[file] = text })
			if r, err := w.lab.Diagnose(t.Context(), health.DiagnoseOptions{}); err != nil || r.Healthy {
				t.Errorf("%s: healthy %v, %v", name, r.Healthy, err)
			}
			foreseen, err := w.lab.Repair(t.Context(), true, repair.Restart)
			if f := find(foreseen, "cp1"); err != nil || !strings.Contains(f.Would, "kubeadm init phase kubeconfig admin") || len(w.lab.Changes()) > 0 {
				t.Errorf("%s: a dry run: %+v, %v, changed %q", name, foreseen, err, w.lab.Changes())
			}
			found, err := w.lab.Repair(t.Context(), false, repair.Restart)
			if f := find(found, "cp1"); err != nil || len(found) != 1 || f.Did != "had kubeadm make it: kubeadm init phase kubeconfig admin" {
				t.Errorf("%s: %+v, %v", name, found, err)
			}
			w.wantHealthy()
			for written, text := range w.box("cp1").files {
				if strings.Contains(text, superToken) {
					t.Errorf("%s: the repair's credentials are in %s", name, written)
				}
			}
		})
	}
}

func denied(what string) func(*testing.T, *world) {
	return func(_ *testing.T, w *world) { w.denied = map[string]bool{what: true} }
}

// No secret is on a command line, and no authority's key goes to a worker.
func TestRepairKeepsSecrets(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		w.change(func() {
			w.box("w1").files[kubernetes+"kubelet.conf"] = "x"
			w.box("cp2").files[pkiFiles+"ca.key"] = ""
			w.denied = map[string]bool{"get nodes": true}
		})
		if _, err := w.lab.Repair(t.Context(), false, repair.Restart); err != nil {
			t.Error(err)
		}
		for _, call := range w.calls {
			if strings.Contains(call, "PRIVATE KEY") || strings.Contains(call, "token:") {
				t.Errorf("a secret is in %q", call)
			}
		}
		for name, text := range w.box("w1").files {
			if strings.Contains(name, "ca.key") || strings.Contains(text, "PRIVATE KEY") && name != kubelets+"pki/kubelet-client-k8slab.pem" && name != kubeletPEM {
				t.Errorf("%s is on w1", name)
			}
		}
		if text := w.box("w1").files[kubernetes+"kubelet.conf"]; strings.Contains(text, "client-key-data") || !strings.Contains(text, kubeletPEM) {
			t.Errorf("kubelet.conf is %s", text)
		}
	})
}

// etcd's manifest never begins a cluster of its own, and is not written where its data are gone.
func TestRepairOfEtcdsManifest(t *testing.T) {
	for _, data := range []bool{true, false} {
		inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
			w.up()
			w.clean()
			w.change(func() { w.box("cp2").files[manifestDir+"etcd.yaml"], w.box("cp2").voter = "", data })
			found, _ := w.lab.Repair(t.Context(), true, repair.Restart)
			wrote := slices.ContainsFunc(found, func(f repair.Repaired) bool {
				return strings.Contains(f.Evidence, manifestDir+"etcd.yaml is missing") && f.Would != ""
			})
			if wrote != data {
				t.Errorf("data %v: %s", data, fmt.Sprint(found))
			}
			if !data {
				return
			}
			if _, err := w.lab.Repair(t.Context(), false, repair.Restart); err != nil {
				t.Error(err)
			}
			if text := w.box("cp2").files[manifestDir+"etcd.yaml"]; !strings.Contains(text, "--initial-cluster-state=existing") {
				t.Errorf("its manifest is %s", text)
			}
		})
	}
}

// The only control plane, whose API server does not run for want of its manifest, is repaired in one go.
func TestRepairOfTheOnlyAPIServer(t *testing.T) {
	inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		file := manifestDir + "kube-apiserver.yaml"
		w.change(func() { w.box("cp1").files[file] = "" })
		w.fails = func(call string) error {
			if strings.HasPrefix(call, "api: ") && w.box("cp1").files[file] == "" {
				return errors.New("nobody listens")
			}
			return nil
		}
		found, err := w.lab.Repair(t.Context(), false, repair.Restart)
		if f := find(found, "cp1"); err != nil || len(found) != 1 || !strings.Contains(f.Evidence, file+" is missing") || f.Did == "" {
			t.Errorf("%+v, %v", found, err)
		}
		w.wantHealthy()
	})
}
