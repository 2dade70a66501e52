package join

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8slab/lab/kernel"
	"k8slab/lab/symptom"
)

func (m Machine) kernel() kernel.Kernel { return kernel.Kernel(m.Root) }

func checkModules(_ context.Context, p *preflight) Check {
	loadable, hopeless, unneeded := p.m.missingModules()
	switch {
	case len(hopeless) > 0:
		return p.unlessContainer(blocked(symptom.KernelPrereqMissing, "install the kernel's modules package (linux-modules-extra or the like), or another kernel",
			"this kernel (%s) has no module %s", p.m.Line("/proc/sys/kernel/osrelease"), strings.Join(hopeless, ", ")))
	case len(loadable) > 0:
		return p.unlessContainer(fixable(symptom.KernelPrereqMissing, "modprobe -a "+strings.Join(loadable, " ")+", and list them in /etc/modules-load.d",
			"not loaded: %s", strings.Join(loadable, ", ")))
	case len(unneeded) > 0:
		return warn(symptom.KernelPrereqMissing, "flannel's default backend needs it", "this kernel has no module %s", strings.Join(unneeded, ", "))
	}
	return ok("loaded or built in")
}

// missingModules are the kernel's, without those that the pod network in use does not need. Flannel's kernel loads vxlan by itself when it is
// asked for a tunnel, so that it only matters where the machine is known to need it.
func (m Machine) missingModules() (loadable, hopeless, unneeded []string) {
	loadable, hopeless, unneeded = m.kernel().MissingModules()
	needless := func(module string) bool {
		return module == "vxlan" && !m.Flannel() || module == "br_netfilter" && !m.bridged()
	}
	return slices.DeleteFunc(loadable, needless), slices.DeleteFunc(hopeless, needless), slices.DeleteFunc(unneeded, needless)
}

// kernelSettings must be "1". kubeadm checks the first; where pods are behind a bridge, kube-proxy needs the others if the kernel has them.
var kernelSettings = []string{"net.ipv4.ip_forward", "net.bridge.bridge-nf-call-iptables", "net.bridge.bridge-nf-call-ip6tables"}

func sysctlPath(name string) string { return "/proc/sys/" + strings.ReplaceAll(name, ".", "/") }

func checkSysctls(_ context.Context, p *preflight) Check {
	wrong := p.m.wrongSysctls()
	if len(wrong) == 0 {
		return ok("forwarding is on")
	}
	return fixable(symptom.KernelPrereqMissing, "sysctl -w "+strings.Join(wrong, "=1 ")+"=1, and write them to /etc/sysctl.d", "not 1: %s", strings.Join(wrong, ", "))
}

// wrongSysctls leaves out those of a module that is not there, which has a check of its own.
func (m Machine) wrongSysctls() []string {
	var wrong []string
	for _, name := range kernelSettings {
		path := sysctlPath(name)
		if strings.HasPrefix(name, "net.bridge.") && !m.bridged() {
			continue
		}
		if m.Exists(path) && m.Line(path) != "1" {
			wrong = append(wrong, name)
		}
	}
	return wrong
}

// cgroupControllers are what kubelet needs to limit pods.
var cgroupControllers = []string{"cpu", "cpuset", "memory", "pids"}

func checkCgroups(ctx context.Context, p *preflight) Check {
	hint := "enable them on the kernel command line (cgroup_enable=memory), or delegate them to this machine"
	if !p.m.Exists("/sys/fs/cgroup/cgroup.controllers") {
		if missing := missingFrom(cgroupControllers, v1Controllers(p.m.Line("/proc/cgroups"))); len(missing) > 0 {
			return blocked(symptom.CgroupControllerMissing, hint, "cgroup v1 without %s", strings.Join(missing, ", "))
		}
		return p.judgeV1(ctx)
	}
	if missing := missingFrom(cgroupControllers, strings.Fields(p.m.Line("/sys/fs/cgroup/cgroup.controllers"))); len(missing) > 0 {
		return blocked(symptom.CgroupControllerMissing, hint, "cgroup v2 without %s", strings.Join(missing, ", "))
	}
	return ok("v2")
}

// judgeV1 judges cgroup v1. From 1.35 on kubelet refuses it by default (failCgroupV1), and kubeadm refuses it for such a kubelet whatever
// kubelet's configuration says, unless kubeadm is told to ignore its check.
func (p *preflight) judgeV1(ctx context.Context) Check {
	found, err := p.versions(ctx)
	if err == nil && found.kubelet.minor > 0 && found.kubelet.minor < 35 {
		return ok("v1, which kubelet %s accepts", found.kubelet)
	}
	const cluster, flag = "set failCgroupV1: false in the cluster's kubelet-config", "join with " + ignoreV1
	boot := "boot with systemd.unified_cgroup_hierarchy=1, or "
	if p.m.Container() {
		boot = "" // its host has booted
	}
	ignored := p.ignores("SystemVerification")
	config, err := p.kubeletConfig(ctx)
	switch {
	case err != nil && ignored:
		return warn(symptom.CgroupV1Unsupported, boot+cluster, "v1: kubelet 1.35 and newer refuse it unless failCgroupV1 is false (%v)", err)
	case err != nil:
		return warn(symptom.CgroupV1Unsupported, boot+cluster+" and "+flag,
			"v1: kubelet 1.35 and newer refuse it unless failCgroupV1 is false, and kubeadm does without %s (%v)", ignoreV1, err)
	case flagValue(p.m.kubeletExtra(), "fail-cgroupv1") == "false" && (ignored || p.m.Exists(kubeletConf)):
		// the machine's own kubelet is told otherwise
		return warn(symptom.CgroupV1Unsupported, boot+cluster, "v1, which kubelet's flag --fail-cgroupv1=false lets pass here")
	case config.FailCgroupV1 == nil || *config.FailCgroupV1:
		return blocked(symptom.CgroupV1Unsupported, boot+cluster+" and "+flag, "v1, which the cluster's kubelet configuration refuses")
	case !ignored && !p.m.Exists(kubeletConf):
		return blocked(symptom.CgroupV1Unsupported, boot+flag, "v1, which the cluster's kubelet configuration allows and kubeadm refuses without %s", ignoreV1)
	}
	return ok("v1, which the cluster's kubelet configuration allows")
}

// ignoreV1 has kubeadm join on cgroup v1.
const ignoreV1 = "--ignore-preflight-errors=SystemVerification"

// v1Controllers reads /proc/cgroups: name, hierarchy, number of groups, enabled.
func v1Controllers(text string) []string {
	var names []string
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) == 4 && !strings.HasPrefix(line, "#") && fields[3] == "1" {
			names = append(names, fields[0])
		}
	}
	return names
}

func missingFrom(needed, found []string) []string {
	return slices.DeleteFunc(slices.Clone(needed), func(name string) bool { return slices.Contains(found, name) })
}

func repairModules(ctx context.Context, p *preflight) (string, error) {
	if p.m.Container() {
		return "", refuse("a container cannot load kernel modules", "load them on its host")
	}
	names, _, _ := p.m.missingModules()
	if err := p.m.addLines("/etc/modules-load.d/k8slab.conf", names); err != nil {
		return "", err
	}
	if _, err := p.m.Run(ctx, append([]string{"modprobe", "--all"}, names...)...); err != nil {
		return "", err
	}
	return fmt.Sprintf("loaded %s, now and at boot", strings.Join(names, ", ")), nil
}

func repairSysctls(_ context.Context, p *preflight) (string, error) {
	wrong := p.m.wrongSysctls()
	lines := make([]string, 0, len(wrong))
	for _, name := range wrong {
		lines = append(lines, name+" = 1")
	}
	// First the file that lasts: a setting that works until the next boot would hide that the file could not be written.
	if err := p.m.addLines("/etc/sysctl.d/99-k8slab.conf", lines); err != nil {
		return "", err
	}
	for _, name := range wrong {
		if err := p.m.set(sysctlPath(name), "1"); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("set %s to 1, now and at boot", strings.Join(wrong, ", ")), nil
}
