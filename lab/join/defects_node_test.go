package join

import (
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"k8slab/lab/symptom"
)

var nodeDefects = []defect{
	{"containerd dead", false, clusterShape{}, func(s *scene) { deadContainerd(s, "inactive") }, "cri", Fixable, symptom.RuntimeSocketMissing, "containerd successfully booted"},
	{"containerd not installed", false, clusterShape{}, func(s *scene) {
		s.cri.stop()
		s.remove(containerdSocket)
		s.answer("systemctl show kubelet.service", showUnits(kubeletUnit, with(containerdUnit, "LoadState", "not-found")))
	}, "cri", Blocked, symptom.RuntimeSocketMissing, "not installed"},
	{"dead socket", false, clusterShape{}, refusingSocket, "cri", Fixable, symptom.RuntimeSocketMissing, "connection refused"},
	{"runtime hangs", false, clusterShape{}, func(s *scene) { s.cri.set(func() { s.cri.hang = true }) }, "cri", Fixable, symptom.RuntimeSocketMissing, "did not answer within"},
	{"CRI plugin off", false, clusterShape{}, func(s *scene) { replaceCRI(s, "cri") }, "cri", Fixable, symptom.CRIPluginDisabled, "unknown service"},
	{"CRI too old", false, clusterShape{}, func(s *scene) { replaceCRI(s, "v1") }, "cri", Blocked, symptom.RuntimeVersionUnsupported, "v1alpha2"},
	{"runtime not ready", false, clusterShape{}, func(s *scene) { s.cri.set(func() { s.cri.unready = "no shim" }) }, "cri", Fixable, symptom.RuntimeSocketMissing, "no shim"},
	{"two runtimes", false, clusterShape{}, func(s *scene) { s.write("/run/crio/crio.sock", "") }, "cri", Blocked, symptom.CRIEndpointAmbiguous, "crio"},
	{"wrong socket", false, clusterShape{}, func(s *scene) { s.target.CRISocket = "unix:///var/run/dockershim.sock" }, "cri", Blocked, symptom.CRIEndpointWrong, "dockershim"},
	{"socket by its old path", false, clusterShape{}, func(s *scene) { s.target.CRISocket = "unix:///var/run/containerd/containerd.sock" }, "cri", OK, "", "v2.4.2"},
	{"no image file system", false, clusterShape{}, func(s *scene) { s.cri.set(func() { s.cri.mount = "" }) }, "image-filesystem", Fixable, symptom.ImageFilesystemZero, "no image file system"},
	{"image file system told after a second", false, clusterShape{}, func(s *scene) { s.cri.set(func() { s.cri.slow = time.Second }) }, "image-filesystem", OK, "", "/var/lib/containerd"},
	{"image file system not told", false, clusterShape{}, func(s *scene) { s.cri.set(func() { s.cri.slow = time.Minute }) }, "image-filesystem", Warn, "", "did not answer in time"},
	{"image file system of capacity 0", false, clusterShape{}, func(s *scene) {
		s.Space = func(path string) (Space, error) {
			if strings.HasSuffix(path, "/var/lib/containerd") {
				return Space{}, nil
			}
			return Space{Bytes: 10, FreeBytes: 9}, nil
		}
	}, "image-filesystem", Blocked, symptom.ImageFilesystemZero, "capacity 0"},
	{"runtime without RuntimeConfig", false, clusterShape{}, func(s *scene) { s.cri.set(func() { s.cri.noConfig = true }) },
		"runtime-version", Warn, symptom.RuntimeVersionUnsupported, "RuntimeConfig"},
	{"same driver by configuration", false, clusterShape{}, func(s *scene) { s.cri.set(func() { s.cri.noConfig = true }) }, "cgroup-driver", OK, "", "systemd, both"},
	{"another driver", false, clusterShape{}, func(s *scene) {
		s.cri.set(func() { s.cri.noConfig = true })
		s.write(containerdConfig, "version = 2\n")
	}, "cgroup-driver", Blocked, symptom.CgroupDriverMismatch, "kubelet will use systemd and the runtime uses cgroupfs"},
	{"kubelet follows to cgroupfs", false, clusterShape{}, func(s *scene) { s.cri.set(func() { s.cri.driver = runtimeapi.CgroupDriver_CGROUPFS }) },
		"cgroup-driver", Warn, symptom.CgroupDriverMismatch, "two writers"},
	{"failed join", false, clusterShape{}, func(s *scene) {
		s.write("/etc/kubernetes/bootstrap-kubelet.conf", "")
		s.write("/etc/kubernetes/pki/ca.crt", "")
	}, "leftovers", Fixable, symptom.LeftoverState, "/etc/kubernetes/pki/ca.crt"},
	{"leftover links", false, clusterShape{}, func(s *scene) { s.write("/sys/class/net/cni0/address", "") }, "leftovers", Fixable, symptom.LeftoverState, "link cni0"},
	{"kubelet still holds its port", false, clusterShape{}, func(s *scene) { s.listen(10250, 77, "kubelet") }, "leftovers", Fixable, symptom.LeftoverState, "10250 by kubelet (pid 77)"},
	{"a member", false, clusterShape{}, func(s *scene) { s.write("/etc/kubernetes/kubelet.conf", ""); s.listen(10250, 77, "kubelet") },
		"leftovers", Blocked, symptom.LeftoverState, "member already"},
	{"etcd data", true, clusterShape{}, func(s *scene) { s.write("/var/lib/etcd/member/wal/0.wal", "x") }, "leftovers", Blocked, symptom.LeftoverState, "etcd data"},
	{"a stranger's CA key", true, clusterShape{}, func(s *scene) { s.write("/etc/kubernetes/pki/ca.key", "x") }, "leftovers", Blocked, symptom.LeftoverState, "ca.key"},
	{"an API server still runs", true, clusterShape{}, func(s *scene) { s.listen(6443, 78, "kube-apiserver") }, "leftovers", Blocked, symptom.LeftoverState, "6443 by kube-apiserver"},
	{"leftover file, ignored", false, clusterShape{}, func(s *scene) {
		s.write("/etc/kubernetes/kubelet.conf", "")
		s.target.Ignore = []string{"FileAvailable--etc-kubernetes-kubelet.conf"}
	}, "leftovers", OK, "", "none"},
	{"port of a stranger", false, clusterShape{}, func(s *scene) { s.listen(10250, 99, "nginx") }, "ports", Blocked, symptom.PortInUse, "10250 by nginx (pid 99)"},
	{"port of a stranger, ignored", false, clusterShape{}, func(s *scene) { s.listen(10250, 99, "nginx"); s.target.Ignore = []string{"Port-10250"} }, "ports", OK, "", ""},
	{"control plane's port on a worker", false, clusterShape{}, func(s *scene) { s.listen(6443, 99, "nginx") }, "ports", OK, "", ""},
	{"no CNI plugins", false, clusterShape{}, func(s *scene) { s.remove(cniPlugins) }, "cni-plugins", Warn, symptom.CNIPluginBinaryMissing, "loopback"},
	{"no CNI configuration", false, clusterShape{}, func(s *scene) { s.remove(cniConfigs) }, "cni-config", Warn, symptom.CNINotInitialized, "no configuration"},
	{"placeholder wins", false, clusterShape{}, func(s *scene) { s.write(cniConfigs+"/00-placeholder.conflist", `{"plugins":[{"type":"bridge"}]}`) },
		"cni-config", Fixable, symptom.CNIStaleConfig, "00-placeholder.conflist"},
	{"placeholder sorts late", false, clusterShape{}, func(s *scene) { s.write(cniConfigs+"/99-placeholder.conflist", `{"plugins":[{"type":"bridge"}]}`) }, "cni-config", OK, "", "10-flannel"},
	{"broken CNI configuration", false, clusterShape{}, func(s *scene) { s.write(cniConfigs+"/05-x.conf", `{`); s.remove(cniConfigs + "/10-flannel.conflist") },
		"cni-config", Warn, symptom.CNINotInitialized, "05-x.conf"},
	{"broken CNI configuration, of which there is a copy", false, clusterShape{}, func(s *scene) {
		s.write(pristineCNI+"/10-flannel.conflist", `{"plugins":[{"type":"flannel"}]}`)
		s.write(cniConfigs+"/10-flannel.conflist", `{"plugins":[{"ty`)
	}, "cni-config", Fixable, symptom.CNINotInitialized, "10-flannel.conflist"},
	{"not this machine's address", false, clusterShape{}, func(s *scene) { s.target.Address = "10.0.2.15" }, "address", Blocked, symptom.AdvertiseAddressWrong, "10.30.0.21"},
	{"loopback address", false, clusterShape{}, func(s *scene) { s.target.Address = "127.0.0.1" }, "address", Blocked, symptom.AdvertiseAddressWrong, "127.0.0.1"},
	{"firewall drops kubelet's port", false, clusterShape{}, func(s *scene) {
		s.program("/usr/sbin/iptables-save")
		s.answer("iptables-save", "*filter\n:INPUT DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\nCOMMIT\n")
	}, "firewall", Blocked, symptom.FirewallBlocked, "10250/tcp"},
	{"firewall drops the overlay", false, clusterShape{}, func(s *scene) {
		s.program("/usr/sbin/iptables-save")
		s.answer("iptables-save", "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p udp -m udp --dport 8472 -j DROP\nCOMMIT\n")
	}, "firewall", Warn, symptom.FirewallBlocked, "8472/udp"},
	{"proxy of kubelet", false, clusterShape{}, func(s *scene) { s.write("/etc/default/kubelet", "HTTPS_PROXY=http://10.1.1.1:3128\n") },
		"proxy", Blocked, symptom.ProxyInterference, "kubelet"},
	{"proxy of systemd", false, clusterShape{}, func(s *scene) { s.answer("systemctl show-environment", "https_proxy=http://10.1.1.1:3128\n") },
		"proxy", Blocked, symptom.ProxyInterference, "systemd"},
	{"proxy of the shell", false, clusterShape{}, func(s *scene) { s.Environ = func() []string { return []string{"HTTPS_PROXY=http://10.1.1.1:3128"} } },
		"proxy", Warn, symptom.ProxyInterference, "this process"},
	{"proxy that leaves the cluster out", false, clusterShape{}, func(s *scene) {
		s.write("/etc/default/kubelet", "HTTPS_PROXY=http://10.1.1.1:3128\nNO_PROXY=10.30.0.0/24\n")
	}, "proxy", OK, "", ""},
	{"images missing", true, clusterShape{}, func(s *scene) { s.cri.set(func() { s.cri.images = labImages[:2] }) }, "images", Warn, symptom.ImagePullFailure, "kube-apiserver:v1.36.3"},
	{"images missing, never pulled", false, clusterShape{}, func(s *scene) {
		s.cri.set(func() { s.cri.images = nil })
		s.target.ImagePullPolicy = "Never"
	}, "images", Blocked, symptom.ImagePullFailure, "pause"},
	{"images of another version", false, clusterShape{}, func(s *scene) {
		s.cri.set(func() { s.cri.images = []string{"example.com/pause:3.10.2", "example.com/kube-proxy:v1.35.4"} })
	}, "images", Warn, symptom.ImagePullFailure, "kube-proxy:v1.36.3"},
	{"sandbox image not here", false, clusterShape{}, func(s *scene) {
		s.cri.set(func() { s.cri.images = []string{"example.com/pause:3.9", "example.com/kube-proxy:v1.36.3"} })
	}, "images", Warn, symptom.SandboxImageMisconfigured, "pause:3.10.2"},
}

func deadContainerd(s *scene, state string) {
	s.cri.stop()
	s.remove(containerdSocket)
	s.answer("systemctl show kubelet.service", showUnits(kubeletUnit, with(containerdUnit, "ActiveState", state)))
}

// refusingSocket leaves a socket behind on which nobody listens, as a killed containerd does.
func refusingSocket(s *scene) {
	s.cri.stop()
	s.remove(containerdSocket)
	listener := listenUnix(s.t, s.Path(containerdSocket))
	listener.(interface{ SetUnlinkOnClose(bool) }).SetUnlinkOnClose(false)
	_ = listener.Close()
}

func replaceCRI(s *scene, without string) {
	s.cri.stop()
	s.remove(containerdSocket)
	s.cri = serveCRI(s.fakeMachine, without)
}
