package join

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8slab/lab/symptom"
)

func checkCRI(ctx context.Context, p *preflight) Check {
	facts, err := p.cri(ctx)
	if failure, ok := errors.AsType[*criError](err); ok {
		return failure.check
	}
	if err != nil {
		return unmade(err)
	}
	if facts.problem != "" {
		return p.runtimeUnready(facts)
	}
	return ok("%s answers on %s", facts.version, facts.socket)
}

// runtimeUnready is a runtime that speaks CRI and says that it cannot run containers.
func (p *preflight) runtimeUnready(facts criFacts) Check {
	r := runtimeAt(facts.socket)
	if r.unit == "" {
		return blocked(symptom.RuntimeSocketMissing, r.restarting(), "%s: %s", facts.version, facts.problem)
	}
	return fixable(symptom.RuntimeSocketMissing, r.restarting(), "%s: %s", facts.version, facts.problem)
}

func checkImageFilesystem(ctx context.Context, p *preflight) Check {
	facts, err := p.cri(ctx)
	if err != nil {
		return unmade(errRuntime)
	}
	if empty, ok := errors.AsType[*emptyError](facts.imageFSError); ok {
		hint := fmt.Sprintf("findmnt --target %s: mount the disk that belongs there, or unmount what hides it; labnode repair", empty.mountpoint)
		return blocked(symptom.ImageFilesystemZero, p.m.withoutTmpfs(empty.mountpoint, hint),
			"%v: what is mounted there is not the disk with the images", empty)
	}
	if errors.Is(facts.imageFSError, errSilent) || errors.Is(facts.imageFSError, context.DeadlineExceeded) {
		return unmade(errSilent)
	}
	if facts.imageFSError != nil {
		r := runtimeAt(facts.socket)
		if r.unit == "" {
			return blocked(symptom.ImageFilesystemZero, r.restarting(), "%v", facts.imageFSError)
		}
		return fixable(symptom.ImageFilesystemZero, "systemctl restart "+r.unit+"; df -h "+r.data, "%v", facts.imageFSError)
	}
	return ok("%s on %s", size(facts.imageFSSize), facts.imageFS)
}

var errRuntime = errors.New("the container runtime does not answer")

// checkRuntimeVersion warns of a runtime that cannot tell its cgroup driver: kubelet stops guessing it in 1.38 (KEP 4033).
func checkRuntimeVersion(ctx context.Context, p *preflight) Check {
	facts, err := p.cri(ctx)
	if err != nil {
		return unmade(errRuntime)
	}
	if facts.driver == "" {
		return warn(symptom.RuntimeVersionUnsupported, "install a newer one: containerd 2.2, CRI-O 1.31",
			"%s does not offer RuntimeConfig, which kubelet needs from 1.38 on", facts.version)
	}
	return ok("%s", facts.version)
}

// checkCgroupDriver compares the runtime's cgroup driver with kubelet's. kubelet 1.31 and newer takes over what the runtime tells
// (KubeletCgroupDriverFromCRI), so that the two can differ only beside a runtime that does not tell, or an older kubelet.
func checkCgroupDriver(ctx context.Context, p *preflight) Check {
	facts, err := p.cri(ctx)
	if err != nil {
		return unmade(errRuntime)
	}
	follows := facts.driver != ""
	if found, err := p.versions(ctx); err == nil && found.kubelet.minor < 31 {
		follows = false
	}
	driver := facts.driver
	r := runtimeAt(facts.socket)
	if driver == "" && r.unit == "containerd" {
		driver = configuredDriver(strings.Join(r.configuration(p.m), "\n"))
	}
	if driver == "" {
		return unmade(fmt.Errorf("%s does not tell its cgroup driver", facts.version))
	}
	if follows {
		if running := p.runningDriver(ctx); running != "" && running != driver {
			return fixable(symptom.CgroupDriverMismatch, "systemctl restart kubelet, which takes over the runtime's",
				"kubelet has used %s since its start, and the runtime uses %s now: no new pod can start", running, driver)
		}
		if driver == "cgroupfs" {
			return warn(symptom.CgroupDriverMismatch, r.systemdDriver(),
				"the runtime uses cgroupfs beside systemd, and kubelet will follow it: two writers of one tree")
		}
		return ok("%s, and kubelet follows the runtime", driver)
	}
	return p.compareDrivers(ctx, r, driver)
}

// systemdDriver is how it gets systemd's cgroup driver.
func (r criRuntime) systemdDriver() string {
	switch r.unit {
	case "containerd":
		return "set SystemdCgroup = true in " + containerdConfig + "; systemctl restart containerd"
	case "crio":
		return `set cgroup_manager = "systemd" in ` + r.config + "; systemctl restart crio"
	}
	return "set the container runtime's cgroup driver to systemd, and restart it"
}

func (p *preflight) compareDrivers(ctx context.Context, r criRuntime, driver string) Check {
	config, err := p.kubeletConfig(ctx)
	if err != nil {
		return unmade(fmt.Errorf("kubelet's cgroup driver is not known (the runtime's is %s): %w", driver, err))
	}
	kubelet := config.CgroupDriver
	if kubelet == "" {
		kubelet = "cgroupfs" // kubelet's default; kubeadm writes systemd
	}
	if kubelet == driver {
		return ok("%s, both", driver)
	}
	return blocked(symptom.CgroupDriverMismatch, "give kubelet cgroupDriver: systemd, in kubelet-config too; "+r.systemdDriver(),
		"kubelet will use %s and the runtime uses %s", kubelet, driver)
}

var (
	systemdCgroup   = regexp.MustCompile(`(?m)^\s*(?:SystemdCgroup|systemd_cgroup)\s*=\s*true\b`) // the second in configurations of version 1
	sandboxImage    = regexp.MustCompile(`(?m)^\s*(?:sandbox_image|sandbox)\s*=\s*["']([^"']+)["']`)
	disabledPlugins = regexp.MustCompile(`(?ms)^([ \t]*disabled_plugins\s*=\s*\[)(.*?)(\])([ \t]*\n)?`)
	criEntry        = regexp.MustCompile(`["'](?:cri|io\.containerd\.grpc\.v1\.cri|io\.containerd\.cri\.v1\.(?:runtime|images))["'][ \t]*,?[ \t]*`)
	trailingComma   = regexp.MustCompile(`,\s*$`)
)

// configuredDriver is what containerd's configuration says for its runtimes; cgroupfs is its default.
func configuredDriver(config string) string {
	if systemdCgroup.MatchString(config) {
		return "systemd"
	}
	return "cgroupfs"
}

// configuredSandbox is the pause image that containerd's configuration names, "" for its default.
func configuredSandbox(m Machine) string {
	image := ""
	for _, config := range runtimes[0].configuration(m) {
		if found := sandboxImage.FindStringSubmatch(config); found != nil {
			image = found[1]
		}
	}
	return image
}

// enableCRI takes the CRI plugins out of containerd's disabled_plugins, and the list with them where nothing else is in it. It leaves every
// other byte as it is.
func enableCRI(config string) (string, bool) {
	// A table of that name further down is not the list.
	head, tail := config, ""
	if table := regexp.MustCompile(`(?m)^\s*\[`).FindStringIndex(config); table != nil {
		head, tail = config[:table[0]], config[table[0]:]
	}
	changed := false
	head = disabledPlugins.ReplaceAllStringFunc(head, func(list string) string {
		parts := disabledPlugins.FindStringSubmatch(list)
		entries := criEntry.ReplaceAllString(parts[2], "")
		if entries == parts[2] {
			return list
		}
		changed = true
		if strings.TrimSpace(entries) == "" && parts[4] != "" {
			return ""
		}
		if !quotedEntry.MatchString(entries) {
			entries = strings.TrimRight(entries, " \t")
		} else if !strings.Contains(parts[2], "\n") {
			entries = trailingComma.ReplaceAllString(entries, "")
		}
		return parts[1] + entries + parts[3] + parts[4]
	})
	return head + tail, changed
}

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
		return "", refuse("kubelet does not use another driver than the runtime", "compare cgroupDriver in "+kubeletConfig+" with the runtime's own in its configuration")
	}
	_, err = p.m.Run(ctx, "systemctl", "restart", "kubelet.service")
	return "restarted kubelet, which uses " + facts.driver + " now, as the runtime does", err
}
