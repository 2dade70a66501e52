package join

import (
	"errors"
	"slices"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// foreign is a healthy machine that no lab made.
type foreign struct {
	*fakeMachine
	cri    *fakeCRI
	target Target
}

// An active unit, for a member.
var runningKubelet = with(with(kubeletUnit, "ActiveState", "active"), "SubState", "running") + "MainPID=77\n"

var foreigners = []struct {
	name    string
	make    func(*foreign)
	joins   func(*foreign) // what it has as a member
	plugins string         // that cni-plugins looks for, in the evidence
	facts   Facts
}{
	{"Debian's containerd, Calico", (*foreign).debian, (*foreign).debianMember, "/usr/lib/cni", Facts{
		Runtime: "containerd", RuntimeSocket: containerdSocket, RuntimeActive: "active", NodeIP: "192.168.4.71", Role: "worker",
	}},
	{"CRI-O on Fedora, Cilium", (*foreign).fedora, (*foreign).fedoraMember, "/usr/libexec/cni", Facts{
		Runtime: "crio", RuntimeSocket: "/run/crio/crio.sock", RuntimeActive: "active", Role: "control-plane", EtcdManifest: true, EtcdData: true,
	}},
}

// debian has containerd 1.6 of Debian 12, whose configuration is of version 2 and names a directory of its own for plugins.
func (f *foreign) debian() {
	f.write(containerdConfig, `version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
      conf_dir = "/etc/cni/net.d"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
  [plugins."io.containerd.internal.v1.opt"]
    path = "/var/lib/containerd"
`)
	f.program("/usr/bin/containerd")
	for _, plugin := range []string{"bandwidth", "bridge", "host-local", "loopback", "portmap", "calico", "calico-ipam"} {
		f.program("/usr/lib/cni/" + plugin)
	}
	f.write(packagedDropIn, labFile(f.t, packagedDropIn))
	f.write("/lib/modules/6.1.0-25-amd64/modules.dep", "kernel/drivers/net/vxlan/vxlan.ko: \nkernel/net/bridge/br_netfilter.ko: \nkernel/net/netfilter/nf_tables.ko: \n")
	f.program("/usr/sbin/nft") // which would load a module that is not loaded
	f.write("/sys/module/br_netfilter/refcnt", "1\n")
	f.answer("systemctl show kubelet.service containerd.service", showUnits(kubeletUnit, containerdUnit))
	f.cri = serveRuntime(f.fakeMachine, containerdSocket, "containerd", "1.6.20~ds1", "")
	f.cri.noConfig, f.cri.sandbox = true, "registry.k8s.io/pause:3.6"
	f.cri.images = []string{"registry.k8s.io/pause:3.6", "registry.k8s.io/kube-proxy:v1.36.3"}
}

func (f *foreign) debianMember() {
	f.remove("/sys/module/br_netfilter") // Calico needs none
	f.remove("/proc/sys/net/bridge")
	f.write(cniConfigs+"/10-calico.conflist", `{"name": "k8s-pod-network", "cniVersion": "0.3.1", "plugins": [
		{"type": "calico", "ipam": {"type": "calico-ipam"}}, {"type": "portmap"}, {"type": "bandwidth"}]}`)
	f.write(cniConfigs+"/87-podman-bridge.conflist", `{"plugins":[{"type":"bridge"}]}`)
	f.write(kubeletFlags, `KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///var/run/containerd/containerd.sock --hostname-override=w1 --node-ip=192.168.4.71"`+"\n")
	f.write("/proc/sys/kernel/hostname", "nas.home.lan\n")
	f.write(kubeletConfig, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupDriver: systemd\n")
	f.answer("systemctl show kubelet.service containerd.service", showUnits(runningKubelet, containerdUnit))
}

// fedora has CRI-O beside a containerd that kubelet does not use, and the drop-in of Fedora's package.
func (f *foreign) fedora() {
	f.write("/etc/crio/crio.conf", "[crio.network]\nplugin_dirs = [\n\t\"/opt/cni/bin\",\n\t\"/usr/libexec/cni\",\n]\n")
	f.program("/usr/bin/crio")
	f.answer("journalctl", "")
	for _, plugin := range []string{"bridge", "host-local", "loopback", "portmap"} {
		f.program("/usr/libexec/cni/" + plugin)
	}
	f.write(cniConfigs+"/200-loopback.conflist", `{"plugins":[{"type":"loopback"}]}`)
	f.write("/usr/lib/systemd/system/kubelet.service.d/kubeadm.conf", labFile(f.t, packagedDropIn))
	f.write("/lib/modules/6.1.0-25-amd64/modules.dep", "kernel/drivers/net/vxlan/vxlan.ko.xz: \n")
	f.write("/sys/module/br_netfilter/refcnt", "1\n")
	f.answer("systemctl show kubelet.service crio.service", showUnits(kubeletUnit, with(containerdUnit, "Id", "crio.service")))
	f.cri = serveRuntime(f.fakeMachine, "/run/crio/crio.sock", "cri-o", "1.36.1", "")
	f.cri.mount, f.cri.sandbox = "/var/lib/containers/storage/overlay-images", "registry.k8s.io/pause:3.10.2"
	f.cri.images = []string{"registry.k8s.io/pause:3.10.2"}
}

func (f *foreign) fedoraMember() {
	f.target.ControlPlane = true
	f.write(cniConfigs+"/05-cilium.conflist", `{"cniVersion": "0.3.1", "name": "cilium", "plugins": [{"type": "cilium-cni"}]}`)
	f.write(cniConfigs+"/100-crio-bridge.conflist", `{"plugins":[{"type":"bridge","ipam":{"type":"host-local"}}]}`)
	f.program("/opt/cni/bin/cilium-cni")
	f.remove("/usr/libexec/cni/loopback") // CRI-O has its own
	f.write("/proc/sys/net/bridge/bridge-nf-call-iptables", "0\n")
	f.write("/proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n/dev/zram0  partition 998396 0 100\n")
	f.write(kubeletFlags, `KUBELET_KUBEADM_ARGS=""`+"\n")
	f.write(instanceConfig, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncontainerRuntimeEndpoint: unix:///var/run/crio/crio.sock\n")
	f.write(kubeletConfig, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupDriver: systemd\nfailSwapOn: false\n"+
		"containerRuntimeEndpoint: unix:///var/run/crio/crio.sock\n")
	f.write(containerdSocket, "") // podman's friend
	f.write(containerdConfig, "disabled_plugins = [\"cri\"]\n")
	f.write(apiManifest, "    - --client-ca-file=/etc/kubernetes/pki/ca.crt\n    - --secure-port=6443\n")
	f.write(manifestsDir+"/kube-scheduler.yaml", "    - --bind-address=10.30.0.21\n    - --secure-port=20259\n")
	f.host("10.30.0.21:20259", f.hosts["127.0.0.1:10259"])
	f.write(etcdManifest, "    - --data-dir=/data/etcd\n")
	f.write("/data/etcd/member/snap/db", "x")
	f.answer("systemctl show kubelet.service crio.service", showUnits(runningKubelet, with(containerdUnit, "Id", "crio.service")))
	f.listen(6443, 70, "kube-apiserver")
}

func newForeign(t *testing.T, fill func(*foreign)) *foreign {
	t.Helper()
	f := &foreign{fakeMachine: newMachine(t)}
	fill(f)
	f.target = newFakeCluster(t, clusterShape{}).join(f.fakeMachine, false)
	return f
}

// member makes it a member, whose kubelet runs.
func (f *foreign) member(t *testing.T, fill func(*foreign), unit string) {
	t.Helper()
	newNodeAPI(t, f.fakeMachine)
	f.listen(10250, 77, "kubelet")
	f.target.Token, f.target.CACertHashes = "", nil
	fill(f)
	f.answer("systemctl show --property="+stateProperties+" kubelet.service",
		"Id=kubelet.service\nLoadState=loaded\nActiveState=active\nMainPID=77\n\nId="+unit+".service\nLoadState=loaded\nActiveState=active\n")
}

// A healthy machine has no failing check and none to repair, whoever built it, before it joins and as a member; and looking changes nothing.
func TestForeignMachines(t *testing.T) {
	well := func(t *testing.T, checks []Check, without ...CheckID) {
		t.Helper()
		for _, c := range checks {
			if (c.Result == Blocked || c.Result == Fixable) && !slices.Contains(without, c.ID) {
				t.Errorf("%s: %s %s: %s", c.ID, c.Result, c.Symptom, c.Evidence)
			}
		}
	}
	for _, tt := range foreigners {
		t.Run(tt.name, func(t *testing.T) {
			f := newForeign(t, tt.make)
			before := f.digest()
			well(t, Preflight(t.Context(), f.Machine, f.target, nil))
			if f.digest() != before || len(f.changed()) > 0 {
				t.Errorf("preflight changed it: %q", f.changed())
			}

			f.member(t, tt.joins, tt.facts.Runtime)
			before = f.digest()
			checks := Examine(t.Context(), f.Machine, f.target)
			well(t, checks)
			if c := find(checks, CheckCNIPlugins); c.Result != OK || !strings.Contains(c.Evidence, tt.plugins) {
				t.Errorf("%+v", c)
			}
			for _, id := range []CheckID{CheckCRI, CheckImageFilesystem, CheckCgroupDriver, CheckCNIConfig, CheckKernelModules, CheckSysctls, CheckSwap} {
				if c := find(checks, id); c.Result != OK {
					t.Errorf("%+v", c)
				}
			}
			well(t, RepairMember(t.Context(), f.Machine, true))
			well(t, Validate(t.Context(), f.Machine, Target{}), CheckEtcdMember) // no etcd answers here
			facts, err := ReadFacts(t.Context(), f.Machine)
			got := Facts{Runtime: facts.Runtime, RuntimeSocket: facts.RuntimeSocket, RuntimeActive: facts.RuntimeActive, NodeIP: facts.NodeIP, Role: facts.Role,
				EtcdManifest: facts.EtcdManifest, EtcdData: facts.EtcdData, Made: facts.Made, OtherPKI: facts.OtherPKI}
			if err != nil || got.Runtime != tt.facts.Runtime || got.RuntimeSocket != tt.facts.RuntimeSocket || got.RuntimeActive != tt.facts.RuntimeActive ||
				got.NodeIP != tt.facts.NodeIP || got.Role != tt.facts.Role || got.EtcdData != tt.facts.EtcdData || got.Made || got.OtherPKI != "" {
				t.Errorf("%v %+v", err, got)
			}
			if _, err := Forwarding(t.Context(), f.Machine); err != nil {
				t.Error(err)
			}
			if err := TrySandbox(t.Context(), f.Machine); err != nil {
				t.Error(err)
			}
			if f.digest() != before || len(f.changed()) > 0 {
				t.Errorf("looking changed it: %q", f.changed())
			}
			if left := f.cri.sandboxes.names(); len(left) > 0 || f.cri.sandboxes.made != 1 {
				t.Errorf("%d sandboxes were made, left over are %q", f.cri.sandboxes.made, left)
			}
		})
	}
}

// A sandbox of no pod is refused by networks that look for its pod in the cluster: it is tried in the machine's network. So it is where a
// plain network would leave the bridge that it makes.
func TestNetworkOfATrial(t *testing.T) {
	for _, tt := range []struct {
		name, conf string
		bridge     bool
		want       runtimeapi.NamespaceMode
	}{
		{"calico", `{"plugins":[{"type":"calico"},{"type":"portmap"}]}`, true, runtimeapi.NamespaceMode_NODE},
		{"a meta-plugin", `{"type":"multus"}`, true, runtimeapi.NamespaceMode_NODE},
		{"a bridge that is there", `{"plugins":[{"type":"bridge"},{"type":"portmap"}]}`, true, runtimeapi.NamespaceMode_POD},
		{"a bridge that is not there", `{"plugins":[{"type":"bridge"},{"type":"portmap"}]}`, false, runtimeapi.NamespaceMode_NODE},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newForeign(t, (*foreign).debian)
			f.write(cniConfigs+"/10.conflist", tt.conf)
			if tt.bridge {
				f.write(linkDir+bridgeLink+"/address", "x")
			}
			if err := TrySandbox(t.Context(), f.Machine); err != nil {
				t.Fatal(err)
			}
			c := f.cri.sandboxes.configs[0]
			if got := c.Linux.SecurityContext.NamespaceOptions.Network; got != tt.want || (c.Hostname == "") != (tt.want == runtimeapi.NamespaceMode_NODE) {
				t.Errorf("%s, host name %q", got, c.Hostname)
			}
		})
	}
	f := newForeign(t, (*foreign).debian)
	f.cri.images = nil // a trial would pull it, and leave it
	if err := TrySandbox(t.Context(), f.Machine); !errors.Is(err, ErrUntried) {
		t.Error(err)
	}
}

// A meta-plugin before the add-on's configuration is nobody's leftover, and no repair moves it.
func TestAMetaPluginIsNoConflict(t *testing.T) {
	f := newForeign(t, (*foreign).debian)
	f.member(t, (*foreign).debianMember, "containerd")
	f.write(cniConfigs+"/00-multus.conf", `{"type":"multus-shim"}`)
	if c := find(Examine(t.Context(), f.Machine, Target{}), CheckCNIConfig); c.Result != OK {
		t.Errorf("%+v", c)
	}
}

// What is broken on such a machine is still found, and named by its own runtime.
func TestForeignDefects(t *testing.T) {
	for _, tt := range []struct {
		name   string
		breaks func(*foreign)
		id     CheckID
		result Result
		hint   string
	}{
		{"CRI-O is dead", func(f *foreign) { f.cri.stop() }, CheckCRI, Fixable, "systemctl restart crio"},
		{"swap that kubelet refuses", func(f *foreign) { f.write(kubeletConfig, "cgroupDriver: systemd\n") }, CheckSwap, Fixable, "swapoff"},
		{"a plugin is gone", func(f *foreign) { f.remove("/opt/cni/bin/cilium-cni") }, CheckCNIPlugins, Warn, "kubernetes-cni"},
		{"kubelet would be standalone", func(f *foreign) {
			f.answer("systemctl show kubelet.service crio.service", with(kubeletUnit, "ExecStart", "{ path=/usr/bin/kubelet ; argv[]=/usr/bin/kubelet }"))
		}, CheckKubeletUnit, Fixable, "kubelet.service.d/kubeadm.conf"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newForeign(t, (*foreign).fedora)
			f.member(t, (*foreign).fedoraMember, "crio")
			tt.breaks(f)
			if c := find(Examine(t.Context(), f.Machine, Target{}), tt.id); c.Result != tt.result || !strings.Contains(c.Hint, tt.hint) {
				t.Errorf("%+v", c)
			}
		})
	}
}

// The repair of CRI-O restarts CRI-O, and leaves containerd's configuration alone.
func TestRepairOfCRIO(t *testing.T) {
	f := newForeign(t, (*foreign).fedora)
	f.member(t, (*foreign).fedoraMember, "crio")
	f.cri.stop()
	for _, argv := range []string{"systemctl enable crio.service", "systemctl reset-failed crio.service"} {
		f.answer(argv, "")
	}
	f.does("systemctl restart crio.service", func() (string, error) { f.fedora(); return "", nil })
	p := newPreflight(t.Context(), f.Machine, Target{})
	if did, err := repairCRI(t.Context(), p); err != nil || did != "restarted crio (1)" || f.Line(containerdConfig) != `disabled_plugins = ["cri"]` {
		t.Errorf("%q %v", did, err)
	}
}

// A directory of certificates that is not kubeadm's default is told, and what is not there is not asked for.
func TestOtherDirectories(t *testing.T) {
	f := newForeign(t, (*foreign).fedora)
	f.member(t, (*foreign).fedoraMember, "crio")
	f.write(apiManifest, "    - --client-ca-file=/srv/pki/ca.crt\n")
	facts, err := ReadFacts(t.Context(), f.Machine)
	if err != nil || facts.OtherPKI != "/srv/pki" || newMember(f.Machine, Target{}).runsEtcd() {
		t.Errorf("%v %+v", err, facts)
	}
}
