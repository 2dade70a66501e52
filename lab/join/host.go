package join

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"k8slab/lab/symptom"
)

// kubeadm's minimum for a control plane (its constants ControlPlaneMem and ControlPlaneNumCPU).
const (
	controlPlaneMemoryMB = 1700
	controlPlaneCPUs     = 2
)

// workerMemoryMB is what kubelet, containerd, kube-proxy and flannel need; less leaves almost nothing for pods. kubeadm has no minimum for
// workers.
const workerMemoryMB = 512

func checkMemory(_ context.Context, p *preflight) Check {
	text, err := p.m.Read("/proc/meminfo")
	if err != nil {
		return unmade(err)
	}
	total, found := memTotalMB(text)
	switch {
	case !found:
		return unmade(fmt.Errorf("/proc/meminfo has no MemTotal"))
	case p.t.ControlPlane && total < controlPlaneMemoryMB:
		c := blocked(symptom.InsufficientResources, "give the machine more memory", "%d MB, a control plane needs %d", total, controlPlaneMemoryMB)
		return p.unlessContainer(c)
	case total < workerMemoryMB:
		return warn(symptom.InsufficientResources, "give the machine more memory", "%d MB leave little for pods", total)
	}
	return ok("%d MB", total)
}

// memTotalMB reads "MemTotal:  2013444 kB". Like kubeadm it counts 1024 kB as a MB.
func memTotalMB(meminfo string) (mb int, found bool) {
	for line := range strings.Lines(meminfo) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemTotal:" {
			kb, err := strconv.Atoi(fields[1])
			return kb / 1024, err == nil
		}
	}
	return 0, false
}

func checkCPU(_ context.Context, p *preflight) Check {
	online := p.m.Line("/sys/devices/system/cpu/online")
	n, err := countRange(online)
	if err != nil {
		return unmade(fmt.Errorf("/sys/devices/system/cpu/online: %w", err))
	}
	if p.t.ControlPlane && n < controlPlaneCPUs {
		c := blocked(symptom.InsufficientResources, "give the machine more processors", "%d processor, a control plane needs %d", n, controlPlaneCPUs)
		return p.unlessContainer(c)
	}
	return ok("%d processors", n)
}

// countRange counts the kernel's lists of the form "0-3,7".
func countRange(list string) (int, error) {
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			return 0, fmt.Errorf("%q is not a list of numbers", list)
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(last); err != nil || to < from {
				return 0, fmt.Errorf("%q is not a list of numbers", list)
			}
		}
		n += to - from + 1
	}
	return n, nil
}

// unlessContainer turns a failure into a warning in a container, where only the host can change what was found.
func (p *preflight) unlessContainer(c Check) Check {
	if p.m.Container() {
		c.Result = Warn
		c.Evidence += " (a container shares its host's)"
	}
	return c
}

func checkSwap(ctx context.Context, p *preflight) Check {
	areas := p.m.kernel().SwapAreas()
	if len(areas) == 0 {
		return ok("off")
	}
	if config, err := p.kubeletConfig(ctx); err == nil && config.FailSwapOn != nil && !*config.FailSwapOn {
		return ok("on (%s), and the cluster's kubelet configuration allows it", strings.Join(areas, ", "))
	}
	if p.m.Container() {
		return blocked(symptom.SwapEnabled, "on the host of this container: swapoff -a",
			"swap of the host is on (%s): kubelet will not start, and a container cannot turn it off", strings.Join(areas, ", "))
	}
	return fixable(symptom.SwapEnabled, "swapoff -a; remove the swap lines of /etc/fstab", "on: %s; kubelet will not start", strings.Join(areas, ", "))
}

func repairSwap(ctx context.Context, p *preflight) (string, error) {
	if p.m.Container() {
		return "", refuse("a container cannot turn its host's swap off", "on the host of this container: swapoff -a")
	}
	if _, err := p.m.Run(ctx, "swapoff", "--all"); err != nil {
		return "", err
	}
	text, err := p.m.Read("/etc/fstab")
	if errors.Is(err, os.ErrNotExist) {
		return "turned swap off", nil
	}
	if err != nil {
		return "", err
	}
	without, changed := disableSwapLines(text)
	if !changed {
		return "turned swap off", nil
	}
	if err := p.m.replace("/etc/fstab", without); err != nil {
		return "", err
	}
	return "turned swap off, and commented it out of /etc/fstab", nil
}

// disableSwapLines puts a comment mark before each line of fstab whose type is swap, and leaves the others as they are.
func disableSwapLines(fstab string) (string, bool) {
	var out strings.Builder
	changed := false
	for line := range strings.Lines(fstab) {
		fields := strings.Fields(line)
		if len(fields) >= 3 && !strings.HasPrefix(fields[0], "#") && fields[2] == "swap" {
			line = "# off for kubelet: " + line
			changed = true
		}
		out.WriteString(line)
	}
	return out.String(), changed
}
