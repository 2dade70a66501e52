package join

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8slab/lab/command"
	"k8slab/lab/symptom"
)

const memberConfigText = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
clusterDNS: [10.96.0.10]
failSwapOn: false
fileCheckFrequency: 0s
staticPodPath: /etc/kubernetes/manifests
`

const kubeletArgs = "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf " +
	"--config=/var/lib/kubelet/config.yaml --node-ip=192.0.2.21"

// newRestart is a member on which kubelet runs for an hour more, so that no file of it changed since kubelet started.
func newRestart(t *testing.T) *fakeMachine {
	t.Helper()
	f := newFakeMachine(t)
	f.runs(time.Now().Add(time.Hour), with(kubeletUnit, "ActiveState", "active"))
	f.write("/proc/77/cmdline", strings.ReplaceAll("/usr/bin/kubelet "+kubeletArgs+" ", " ", "\x00"))
	f.write(kubeletFlags, `KUBELET_KUBEADM_ARGS="--node-ip=192.0.2.21"`+"\n")
	f.write("/var/lib/kubelet/config.yaml", memberConfigText)
	f.write("/usr/bin/kubelet", `ELF json:"apiVersion,omitempty" json:"kind,omitempty" json:"authentication" json:"clusterDNS,omitempty" json:"failSwapOn,omitempty" `+
		`json:"fileCheckFrequency" json:"staticPodPath,omitempty"`)
	ca, key := newCA(t)
	f.write("/etc/kubernetes/pki/ca.crt", string(pemOf(ca.Raw)))
	own := leaf(t, ca, key, clusterShape{})
	raw, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	f.write("/var/lib/kubelet/pki/kubelet-client-current.pem",
		string(pemOf(own.Certificate[0]))+string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})))
	f.write("/etc/kubernetes/kubelet.conf", memberKubeconfig(pemOf(ca.Raw)))
	return f
}

// runs makes systemd say that the unit of kubelet is as it is, with a process of that age.
func (f *fakeMachine) runs(since time.Time, unit string) {
	f.answer("systemctl show kubelet.service", unit+fmt.Sprintf("MainPID=77\nExecMainStartTimestamp=@%d\n", since.Unix()))
}

func memberKubeconfig(ca []byte) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":"https://192.0.2.10:6443","certificate-authority-data":%q}}],
"users":[{"name":"u","user":{"client-certificate":"/var/lib/kubelet/pki/kubelet-client-current.pem","client-key":"/var/lib/kubelet/pki/kubelet-client-current.pem"}}]}`,
		base64.StdEncoding.EncodeToString(ca))
}

func failed(output string) func() (string, error) {
	return func() (string, error) { return "", &command.Error{Cause: &exec.ExitError{}, Output: output} }
}

func TestKubeletRestart(t *testing.T) {
	started := func(f *fakeMachine) { f.runs(time.Now().Add(-time.Hour), with(kubeletUnit, "ActiveState", "active")) }
	for _, tt := range []struct {
		name   string
		damage func(*fakeMachine)
		id     symptom.ID // "" for nothing
		where  string
	}{
		{"it starts", func(*fakeMachine) {}, "", ""},
		{"its configuration is cut off", func(f *fakeMachine) { f.write("/var/lib/kubelet/config.yaml", memberConfigText[:70]+"\n  x509: [") }, symptom.FileChanged, "config.yaml"},
		{"its configuration is empty", func(f *fakeMachine) { f.write("/var/lib/kubelet/config.yaml", "") }, symptom.FileChanged, "config.yaml"},
		{"its configuration is gone", func(f *fakeMachine) { f.remove("/var/lib/kubelet/config.yaml") }, symptom.KubeletConfigMissing, "config.yaml"},
		{"a value of another type", func(f *fakeMachine) {
			f.write("/var/lib/kubelet/config.yaml", strings.Replace(memberConfigText, "0s", "soon", 1))
		}, symptom.FileChanged, "config.yaml"},
		{"a field that it does not know, written since it started", func(f *fakeMachine) {
			started(f)
			f.answer("/usr/bin/kubelet", "Kubernetes v1.36.3")
			f.write("/var/lib/kubelet/config.yaml", memberConfigText+"statcPodPath: /x\n")
		}, symptom.FileChanged, "config.yaml"},
		{"the CA is gone", func(f *fakeMachine) { f.remove("/etc/kubernetes/pki/ca.crt") }, symptom.FileChanged, "ca.crt"},
		{"the CA is no certificate", func(f *fakeMachine) { f.write("/etc/kubernetes/pki/ca.crt", "-----BEGIN") }, symptom.FileChanged, "ca.crt"},
		{"no kubeconfig", func(f *fakeMachine) { f.remove("/etc/kubernetes/kubelet.conf") }, symptom.BootstrapKubeconfigMissing, "kubelet.conf"},
		{"no kubeconfig, and it may ask for one", func(f *fakeMachine) {
			f.remove("/etc/kubernetes/kubelet.conf")
			f.write("/etc/kubernetes/bootstrap-kubelet.conf", "{}")
		}, "", ""},
		{"its kubeconfig is no YAML", func(f *fakeMachine) { f.write("/etc/kubernetes/kubelet.conf", "{") }, symptom.FileChanged, "kubelet.conf"},
		{"its client certificate is gone", func(f *fakeMachine) { f.remove("/var/lib/kubelet/pki/kubelet-client-current.pem") },
			symptom.BootstrapKubeconfigMissing, "kubelet-client-current.pem"},
		{"its client certificate has no key", func(f *fakeMachine) {
			text := f.Line("/var/lib/kubelet/pki/kubelet-client-current.pem")
			f.write("/var/lib/kubelet/pki/kubelet-client-current.pem", text[:strings.Index(text, "-----BEGIN PRIVATE")])
		}, symptom.BootstrapKubeconfigMissing, "kubelet-client-current.pem"},
		{"kubeadm's flags are gone", func(f *fakeMachine) {
			f.remove(kubeletFlags)
			f.answer("/usr/bin/kubelet", "Kubernetes v1.36.3")
		}, symptom.FileChanged, "kubeadm-flags.env"},
		{"kubeadm's flags are another file's", func(f *fakeMachine) {
			f.write(kubeletFlags, "hello\n")
			f.answer("/usr/bin/kubelet", "Kubernetes v1.36.3")
		}, symptom.FileChanged, "kubeadm-flags.env"},
		{"a flag that it does not know", func(f *fakeMachine) {
			f.write(kubeletFlags, `KUBELET_KUBEADM_ARGS="--node-ip=192.0.2.21 --bogus"`+"\n")
			f.does("/usr/bin/kubelet "+kubeletArgs+" --bogus --version", failed(`E1126 run.go:72] "command failed" err="failed to parse kubelet flag: unknown flag: --bogus"`))
		}, symptom.KubeletFlagRemoved, "flags"},
		{"another flag, which it knows", func(f *fakeMachine) {
			f.write(kubeletFlags, `KUBELET_KUBEADM_ARGS="--node-ip=192.0.2.21 --v=4"`+"\n")
			f.answer("/usr/bin/kubelet "+kubeletArgs+" --v=4 --version", "Kubernetes v1.36.3")
		}, "", ""},
		{"a flag for another runtime", func(f *fakeMachine) {
			f.write(kubeletFlags, `KUBELET_KUBEADM_ARGS="--node-ip=192.0.2.21 --container-runtime-endpoint=unix:///var/run/dockershim.sock"`+"\n")
			f.write(containerdSocket, "")
			f.answer("/usr/bin/kubelet "+kubeletArgs+" --container-runtime-endpoint=unix:///var/run/dockershim.sock --version", "Kubernetes v1.36.3")
		}, symptom.CRIEndpointWrong, "flags"},
		{"its program is not executable", func(f *fakeMachine) { f.remove("/usr/bin/kubelet"); f.write("/usr/bin/kubelet", "x") }, symptom.KubeBinariesMissing, "/usr/bin/kubelet"},
		{"its program changed and does not run", func(f *fakeMachine) {
			started(f)
			f.does("/usr/bin/kubelet", failed("exec format error"))
		}, symptom.FileChanged, "/usr/bin/kubelet"},
		{"its unit is not loaded", func(f *fakeMachine) {
			f.runs(time.Now().Add(time.Hour), with(with(kubeletUnit, "ActiveState", "active"), "LoadState", "bad-setting"))
		}, symptom.KubeletNotRunning, "kubelet.service"},
		{"its unit changed for the worse", func(f *fakeMachine) {
			f.runs(time.Now().Add(time.Hour), with(with(kubeletUnit, "ActiveState", "active"), "NeedDaemonReload", "yes"))
			f.does("systemd-analyze verify", failed("kubelet.service: Command /usr/bin/kubele is not executable"))
		}, symptom.FileChanged, "kubelet.service"},
		{"its unit changed", func(f *fakeMachine) {
			f.runs(time.Now().Add(time.Hour), with(with(kubeletUnit, "ActiveState", "active"), "NeedDaemonReload", "yes"))
			f.answer("systemd-analyze verify", "")
		}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newRestart(t)
			tt.damage(f)
			found, err := KubeletRestart(t.Context(), f.Machine)
			if err != nil {
				t.Fatal(err)
			}
			if tt.id == "" {
				if len(found) > 0 {
					t.Errorf("%v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Symptom != tt.id || !strings.HasSuffix(found[0].Where, tt.where) || found[0].Text == "" {
				t.Errorf("%+v", found)
			}
		})
	}
}

// What kubelet read when it started needs no second proof: no program is run.
func TestKubeletRestartIsCheap(t *testing.T) {
	f := newRestart(t)
	if _, err := KubeletRestart(t.Context(), f.Machine); err != nil || len(f.changed()) > 0 {
		t.Errorf("%v %v", err, f.changed())
	}
}
