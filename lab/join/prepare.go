package join

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// bridgeConfig keeps a kubelet that something other than kubeadm started waiting; without a configuration it would fail. It opens no port,
// because kubeadm's preflight wants them free.
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
