package join

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"k8slab/lab/event"
	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

const (
	// localPoll is how often a server of this machine is asked whether it is there.
	localPoll = 300 * time.Millisecond
	// localTimeout bounds one such question.
	localTimeout = 2 * time.Second
)

// restartKubelet restarts kubelet once, when the API server of this machine answers for the first time. On a control plane kubelet starts
// before the API server that it talks to, and has backed off to many seconds by then; started again it gets its certificate, its services
// and its pods at once, 8 to 15 s sooner.
func (e *Engine) restartKubelet(ctx context.Context, port string, step *event.Step) {
	err := wait.For(ctx, "the local API server", readyLimit, localPoll, func(ctx context.Context) error {
		return e.Machine.localHealth(ctx, net.JoinHostPort("127.0.0.1", port), "/livez")
	})
	if err != nil {
		return // kubeadm, or the validation, says what is wrong with it
	}
	step.Progress("the local API server answers: restarting kubelet, which would ask it again only seconds later")
	if _, err := e.Machine.Run(ctx, "systemctl", "restart", "kubelet.service"); err != nil && ctx.Err() == nil {
		step.Progress("restart kubelet: %v", err)
	}
}

// localHealth asks a control plane's component on this machine. It does not verify the certificate, which is not for 127.0.0.1, because the
// request has no secret in it.
func (m Machine) localHealth(ctx context.Context, address, path string) error {
	ctx, cancel := context.WithTimeout(ctx, m.Patience()*localTimeout)
	defer cancel()
	url := "https://" + address + path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{
		DialContext:       m.Dial,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return nil
}

// kubeletState is what the machine tells of kubelet.
type kubeletState struct {
	Active     string `json:"active"` // systemd's ActiveState: active, inactive, failed, activating, …
	PID        string `json:"-"`
	Standalone bool   `json:"standalone"` // it runs without --kubeconfig: it serves no cluster
	Masked     bool   `json:"masked,omitempty"`
}

// kubelet reads it from systemd's answer and the flags of the running process. Standalone is decided by the flag alone (kubelet's
// server.go).
func (m Machine) kubelet(u unit) kubeletState {
	s := kubeletState{Active: u["ActiveState"], PID: u["MainPID"], Masked: u.masked()}
	if s.Active != "active" || s.PID == "" || s.PID == "0" {
		return s
	}
	line, err := m.Read("/proc/" + s.PID + "/cmdline")
	s.Standalone = err == nil && line != "" && flagValue(strings.Split(line, "\x00"), "kubeconfig") == ""
	return s
}

const stateProperties = "Id,LoadState,ActiveState,SubState,UnitFileState,MainPID,Result,ExecMainStatus"

// systemd asks for the state of units in one call, by name.
func (m Machine) systemd(ctx context.Context, names ...string) (map[string]unit, error) {
	out, err := m.Run(ctx, append([]string{"systemctl", "show", "--property=" + stateProperties}, names...)...)
	if err != nil {
		return nil, fmt.Errorf("ask systemd: %w", err)
	}
	return ParseUnits(out), nil
}

// kubeletService judges whether kubelet runs and serves a cluster; failed makes the check where it does not.
func (m Machine) kubeletService(ctx context.Context, failed func(cause symptom.ID, hint, format string, args ...any) Check) (Check, error) {
	states, err := m.systemd(ctx, "kubelet.service")
	if err != nil {
		return Check{}, err
	}
	switch k := m.kubelet(states["kubelet.service"]); {
	case k.Masked:
		return failed(symptom.KubeletNotRunning, "systemctl unmask --now kubelet", "kubelet.service is masked"), nil
	case k.Active != "active":
		return failed(symptom.KubeletNotRunning, "journalctl -u kubelet -n 100", "kubelet.service is %s", cmp.Or(k.Active, "absent")), nil
	case k.Standalone:
		return failed(symptom.KubeletStandalone, "systemctl cat kubelet: kubeadm's drop-in 10-kubeadm.conf passes --kubeconfig",
			"kubelet runs standalone: its process has no --kubeconfig, so it serves no cluster"), nil
	}
	return ok("active, with a kubeconfig"), nil
}

func checkKubeletService(ctx context.Context, p *preflight) Check {
	if !p.m.Exists(kubeletConf) {
		return ok("the machine has not joined a cluster")
	}
	c, err := p.m.kubeletService(ctx, fixable)
	if err != nil {
		return warn("", "systemctl status kubelet", "%v", err)
	}
	return c
}

// repairKubeletService restarts kubelet: that also makes it look at everything at once instead of every 10 s.
func repairKubeletService(ctx context.Context, p *preflight) (string, error) {
	_, err := p.m.Run(ctx, "systemctl", "restart", "kubelet.service")
	return "started kubelet", err
}
