package join

import "testing"

func TestFixLeftovers(t *testing.T) {
	s := newScene(t, true)
	s.write("/etc/kubernetes/bootstrap-kubelet.conf", "")
	s.write("/etc/kubernetes/manifests/etcd.yaml", "")
	s.write("/etc/kubernetes/manifests/mine.yaml", "mine")
	s.write("/etc/kubernetes/pki/sa.key", "")
	s.write(kubeletConfig, "")
	s.write(instanceConfig, "")
	s.write("/var/lib/kubelet/pods/a", "kept")
	s.write("/run/flannel/subnet.env", "")
	s.write("/sys/class/net/cni0/address", "")
	s.listen(10250, 77, "kubelet")
	s.does("systemctl stop kubelet.service", func() (string, error) { s.remove("/proc/77", "/proc/net/tcp6"); return "", nil })
	s.does("ip link delete cni0", func() (string, error) { s.remove("/sys/class/net/cni0"); return "", nil })
	s.fixes("leftovers", "stopped kubelet and removed /etc/kubernetes/bootstrap-kubelet.conf")
	s.has("/etc/kubernetes/manifests/mine.yaml", "mine")
	s.has("/var/lib/kubelet/pods/a", "kept")
	if s.Exists(instanceConfig) {
		t.Error("kubelet would use an earlier join's runtime")
	}
	if s.Exists("/run/flannel") {
		t.Error("pods would get addresses of an earlier Node's subnet")
	}
	if !s.Exists(cniConfigs + "/10-flannel.conflist") {
		t.Error("the CNI configuration is gone")
	}
}

func TestFixLeftoversRefuses(t *testing.T) {
	tests := []struct {
		name   string
		breaks func(*scene)
		why    string
	}{
		{"data of an etcd member", func(s *scene) { s.write("/var/lib/etcd/member/wal/0.wal", "x") }, "etcd data"},
		{"a member that runs", func(s *scene) { s.write("/etc/kubernetes/kubelet.conf", ""); s.listen(10250, 77, "kubelet") }, "more than a failed join left"},
		{"the only key of another CA", func(s *scene) { s.write("/etc/kubernetes/pki/ca.key", "x") }, "more than a failed join left"},
		{"pods of a control plane that run", func(s *scene) { s.listen(2379, 78, "etcd") }, "2379 by etcd"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, true)
			tt.breaks(s)
			s.refused("leftovers", tt.why)
		})
	}
}

func TestFixCNIPlugins(t *testing.T) {
	withoutPlugin(t).fixes("cni-plugins", "restored bridge in /opt/cni/bin")
}

// What a machine that the lab did not build lacks is its package manager's to bring.
func TestFixCNIPluginsRefuses(t *testing.T) {
	s := newScene(t, false)
	s.remove(cniPlugins + "/bridge")
	s.refused("cni-plugins", "keeps no other bridge")
}

func TestFixCNIConfig(t *testing.T) {
	s := newScene(t, false)
	placeholder := `{"plugins":[{"type":"bridge"}]}`
	s.write(cniConfigs+"/00-placeholder.conflist", placeholder)
	s.fixes("cni-config", "moved /etc/cni/net.d/00-placeholder.conflist aside")
	s.has(cniConfigs+"/00-placeholder.conflist"+saved, placeholder)
	if names := s.List(cniConfigs); len(names) != 2 {
		t.Errorf("%q", names)
	}
}

func TestFixCNIConfigRestores(t *testing.T) {
	s := newScene(t, false)
	s.remove(cniConfigs)
	s.write(cniConfigs+"/99-loopback.conf", `{"type":"loopback"}`) // no network
	s.write(pristineCNI+"/10-flannel.conflist", `{"plugins":[{"type":"flannel"}]}`)
	s.fixes("cni-config", "wrote 10-flannel.conflist in /etc/cni/net.d again")
	s.has(cniConfigs+"/10-flannel.conflist", `{"plugins":[{"type":"flannel"}]}`)
}

func TestFixCNIConfigThatIsCutOff(t *testing.T) {
	s := newScene(t, false)
	s.write(cniConfigs+"/10-flannel.conflist", `{"plugins":[{"ty`)
	s.write(pristineCNI+"/10-flannel.conflist", `{"plugins":[{"type":"flannel"}]}`)
	s.fixes("cni-config", "wrote 10-flannel.conflist in /etc/cni/net.d again")
	s.has(cniConfigs+"/10-flannel.conflist", `{"plugins":[{"type":"flannel"}]}`)
}

// A network that nobody is known to serve is its owner's.
func TestFixCNIConfigRefuses(t *testing.T) {
	s := newScene(t, false)
	s.remove(cniConfigs + "/10-flannel.conflist")
	s.write(cniConfigs+"/05-broken.conf", "{")
	s.refused("cni-config", "no configuration overrides another")
}
