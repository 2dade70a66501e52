package join

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8slab/lab/symptom"
)

// clean undoes the attempts before: what they left is no reason to refuse this one.
func (e *Engine) clean(ctx context.Context, job *Job, o *Outcome) bool {
	if job.Number < 2 || !e.Machine.dirty(job.Target) {
		return true
	}
	return e.preparing(job, o, func(report func(string)) error {
		_, err := Reset(ctx, e.Machine, ResetOptions{MemberRemoved: job.MemberRemoved, CRISocket: job.Target.CRISocket, Report: report})
		return err
	})
}

// prepare makes the machine one on which kubeadm can start: kubelet not running, and a pod network's configuration for containerd.
func (e *Engine) prepare(ctx context.Context, job *Job, o *Outcome) bool {
	return e.preparing(job, o, func(func(string)) error { return e.Machine.prepare(ctx) })
}

func (e *Engine) preparing(job *Job, o *Outcome, do func(report func(string)) error) bool {
	step := e.step(job, PhasePrepare, 0)
	o.Phase = PhasePrepare
	err := do(func(s string) { step.Progress("%s", s) })
	if err == nil {
		step.EndWith("")
		return true
	}
	o.Evidence = err.Error()
	var refused *RefusedError
	if errors.As(err, &refused) {
		o.Symptom, o.Hint = symptom.EtcdStaleMember, refused.Next
	}
	_ = step.End(err)
	return false
}

func (m Machine) prepare(ctx context.Context) error {
	if err := m.sweepSecrets(); err != nil {
		return err
	}
	// Not masked: kubeadm starts it, as soon as it has written its configuration.
	if _, err := m.Run(ctx, "systemctl", "stop", "kubelet.service"); err != nil {
		return fmt.Errorf("stop kubelet until kubeadm starts it: %w", err)
	}
	if err := m.ensureCNI(); err != nil {
		return err
	}
	return m.removeBridge()
}

// bridgeMark tells the temporary configuration of kubelet from a final one, which has no such line.
const bridgeMark = "# k8slab: temporary, until kubeadm has written the configuration of this node\n"

// bridgeConfig lets a kubelet that something else started wait instead of failing for want of its file. It serves nothing: kubeadm's
// preflight wants its ports free.
const bridgeConfig = bridgeMark + `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
enableServer: false
healthzPort: 0
authentication:
  anonymous:
    enabled: false
`

// bridgeKubelet gives kubelet the temporary configuration, and only where there is none. kubeadm replaces it.
func (m Machine) bridgeKubelet(report func(string)) {
	path := m.Path(kubeletConfig)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		var f *os.File
		if f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err == nil {
			_, err = f.WriteString(bridgeConfig)
			err = errors.Join(err, f.Close())
		}
	}
	switch {
	case err == nil:
		report("something other than kubeadm started kubelet: it gets a temporary configuration")
	case !errors.Is(err, os.ErrExist):
		report("temporary configuration of kubelet: " + err.Error())
	}
}

// removeBridge removes the temporary configuration and never another.
func (m Machine) removeBridge() error {
	text, err := m.Read(kubeletConfig)
	if err != nil || !strings.HasPrefix(text, bridgeMark) {
		return nil
	}
	return remove(m.Path(kubeletConfig))
}

const (
	// placeholderConf sorts behind every real configuration: containerd takes the first.
	placeholderConf = cniConfigs + "/99-k8slab-placeholder.conflist"
	placeholderLink = cniPlugins + "/" + PlaceholderPlugin
)

// PlaceholderPlugin is the CNI plugin of the placeholder: labnode, called by this name. It refuses pods until the pod network is there.
const PlaceholderPlugin = "k8slab-placeholder"

// ensureCNI gives containerd a configuration to start with where there is none, and takes the placeholder away where there is a real one.
// It is written in place: containerd does not notice a file that is moved into the directory.
func (m Machine) ensureCNI() error {
	if len(m.cniConfigurations()) > 0 {
		return m.removePlaceholder()
	}
	if restored, err := m.restoreCNI(); err != nil || len(restored) > 0 {
		return errors.Join(err, m.removePlaceholder())
	}
	if m.Exists(placeholderConf) {
		return nil
	}
	text, err := placeholder(m.Line("/etc/machine-id"))
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, dir := range []string{cniConfigs, cniPlugins} {
		if err := os.MkdirAll(m.Path(dir), 0o755); err != nil {
			return fmt.Errorf("prepare the pod network: %w", err)
		}
	}
	link := m.Path(placeholderLink)
	err = errors.Join(remove(link), os.Symlink(self, link), os.WriteFile(m.Path(placeholderConf), text, 0o644))
	if err != nil {
		return fmt.Errorf("write the placeholder of the pod network: %w", err)
	}
	return nil
}

// removePlaceholder removes the placeholder once the real configuration is there, and leaves the directory.
func (m Machine) removePlaceholder() error {
	if len(m.cniConfigurations()) == 0 {
		return nil
	}
	return errors.Join(remove(m.Path(placeholderConf)), remove(m.Path(cniPlugins+"/"+PlaceholderPlugin)))
}

// cniConfigurations are the files that containerd would read, without the placeholder.
func (m Machine) cniConfigurations() []string {
	return slices.DeleteFunc(m.List(cniConfigs), func(name string) bool {
		known := slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(name))
		return !known || name == filepath.Base(placeholderConf)
	})
}

// placeholder is the configuration. Its version has STATUS: a runtime that asks (containerd 2) keeps the Node NotReady, and one that does not
// gets an error for each pod, so that no pod ever has an address of it. The subnet is the machine's own all the same, out of a range that
// no pod network uses (198.18.0.0/15, for benchmarks, RFC 2544): even another plugin in its place could not give an address twice.
func placeholder(machineID string) ([]byte, error) {
	sum := sha256.Sum256([]byte(machineID))
	n := binary.BigEndian.Uint16(sum[:]) % 512
	return json.MarshalIndent(object{
		"cniVersion": "1.1.0",
		"name":       "k8slab-placeholder",
		"plugins": []any{object{
			"type": PlaceholderPlugin,
			"ipam": object{"type": "host-local", "subnet": fmt.Sprintf("198.%d.%d.0/24", 18+n/256, n%256)},
		}},
	}, "", "  ")
}
