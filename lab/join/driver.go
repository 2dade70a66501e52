package join

import (
	"context"
	"regexp"
)

// runningDriver is the cgroup driver that the running kubelet uses, "" when that is not known. kubelet asks the runtime once, when it
// starts; it does not notice a later change.
func (p *preflight) runningDriver(ctx context.Context) string {
	u, err := p.units(ctx)
	pid := u.kubelet["MainPID"]
	if err != nil || !u.kubelet.active() || pid == "" || pid == "0" {
		return ""
	}
	out, err := p.m.Run(ctx, "journalctl", "--quiet", "--no-pager", "--output=cat", "--lines=1", "--grep=cgroup driver setting received", "_PID="+pid)
	if found := receivedDriver.FindStringSubmatch(out); err == nil && found != nil {
		return found[1]
	}
	return ""
}

var receivedDriver = regexp.MustCompile(`cgroup driver setting received from the CRI runtime" cgroupDriver="(\w+)"`)

// repairCgroupDriver restarts kubelet, which then asks the runtime again. kubelet recreates the pods that run in the other driver's groups.
func repairCgroupDriver(ctx context.Context, p *preflight) (string, error) {
	facts, err := p.cri(ctx)
	if err != nil {
		return "", err
	}
	running := p.runningDriver(ctx)
	if running == "" || facts.driver == "" || running == facts.driver {
		return "", refuse("kubelet does not use another driver than the runtime", "compare cgroupDriver in "+kubeletConfig+" with SystemdCgroup in "+containerdConfig)
	}
	_, err = p.m.Run(ctx, "systemctl", "restart", "kubelet.service")
	return "restarted kubelet, which uses " + facts.driver + " now, as the runtime does", err
}
