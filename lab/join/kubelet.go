package join

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8slab/lab/symptom"
)

const (
	packagedDropIn = "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"
	// A file of the same name in /etc hides the packaged one from systemd.
	localDropInDir = "/etc/systemd/system/kubelet.service.d"
)

// packagedDropInDirs are where packages put the drop-in that passes kubeadm's arguments. Fedora's names it otherwise than Kubernetes' own.
var packagedDropInDirs = []string{path.Dir(packagedDropIn), "/lib/systemd/system/kubelet.service.d"}

// checkKubeletUnit makes sure that kubelet, once started, will join: without --kubeconfig it runs standalone and never registers. kubeadm's
// drop-in passes it, through a variable.
func checkKubeletUnit(ctx context.Context, p *preflight) Check {
	all, err := p.units(ctx)
	if err != nil {
		return unmade(err)
	}
	u := all.kubelet
	switch {
	case u.masked():
		return fixable(symptom.KubeletNotRunning, "systemctl unmask kubelet", "kubelet.service is masked: kubeadm cannot start it")
	case u.absent():
		return blocked(symptom.KubeBinariesMissing, "install the package kubelet of the cluster's version", "there is no kubelet.service")
	case !p.m.hasKubeconfig(u):
		return p.standalone(u)
	}
	return ok("kubelet gets its kubeconfig from %s", dropIns(u))
}

func dropIns(u unit) string {
	if u["DropInPaths"] == "" {
		return u["FragmentPath"]
	}
	return u["DropInPaths"]
}

// hasKubeconfig looks at what systemd would really execute, with the variables that it would put in.
func (m Machine) hasKubeconfig(u unit) bool {
	env := m.environment(u)
	for _, word := range strings.Fields(commandLine(u["ExecStart"])) {
		name, isVariable := strings.CutPrefix(word, "$")
		if isVariable {
			word = env[strings.Trim(name, "{}")]
		}
		for _, arg := range strings.Fields(word) {
			if value, ok := strings.CutPrefix(arg, "--kubeconfig"); ok && value != "=" {
				return true
			}
		}
	}
	return false
}

// commandLine takes the command out of "{ path=/usr/bin/kubelet ; argv[]=/usr/bin/kubelet $A $B ; ignore_errors=no ; ... }".
func commandLine(execStart string) string {
	_, rest, found := strings.Cut(execStart, "argv[]=")
	if !found {
		return execStart
	}
	argv, _, _ := strings.Cut(rest, " ; ")
	return argv
}

func (p *preflight) standalone(u unit) Check {
	evidence := fmt.Sprintf("kubelet would run standalone: its command (%s) has no --kubeconfig", commandLine(u["ExecStart"]))
	if u["DropInPaths"] != "" {
		evidence += "; drop-ins: " + u["DropInPaths"]
	}
	if packaged := p.m.packagedDropIn(); packaged != "" {
		return fixable(symptom.KubeletStandalone, "remove what hides "+packaged+" (systemctl cat kubelet); systemctl daemon-reload", "%s", evidence)
	}
	return blocked(symptom.KubeletStandalone, "reinstall the package kubeadm, which brings "+path.Base(packagedDropIn)+"; systemctl daemon-reload", "%s", evidence)
}

// packagedDropIn is the drop-in that the packages brought and that passes a kubeconfig, "" for none.
func (m Machine) packagedDropIn() string {
	for _, dir := range packagedDropInDirs {
		for _, name := range m.List(dir) {
			file := path.Join(dir, name)
			text := m.Line(file)
			if path.Ext(name) == ".conf" && strings.Contains(text, "--kubeconfig") && strings.Contains(text, "ExecStart=") {
				return file
			}
		}
	}
	return ""
}

// repairKubeletUnit unmasks kubelet and lets the packaged drop-in take effect again: it moves a file of the same name in /etc aside and
// makes systemd read its units again. If another drop-in still takes the arguments away, the repair fails and leaves that file to its
// owner.
func repairKubeletUnit(ctx context.Context, p *preflight) (string, error) {
	all, err := p.units(ctx)
	if err != nil {
		return "", err
	}
	if all.kubelet.masked() {
		return "unmasked kubelet.service", p.m.unmask(ctx, all.kubelet, "kubelet.service")
	}
	packaged := p.m.packagedDropIn()
	if packaged == "" {
		return "", refuse("there is no "+packagedDropIn+" to restore", "reinstall the package kubeadm; systemctl daemon-reload")
	}
	did := "made systemd read its units again"
	hiding := path.Join(localDropInDir, path.Base(packaged))
	if p.m.Exists(hiding) {
		if err := p.m.moveAside(hiding); err != nil {
			return "", err
		}
		did = "moved " + hiding + " aside, which hid " + packaged
	}
	if _, err := p.m.Run(ctx, "systemctl", "daemon-reload"); err != nil {
		return "", err
	}
	now, err := p.findUnits(ctx)
	if err != nil {
		return "", err
	}
	if !p.m.hasKubeconfig(now.kubelet) {
		others := slices.DeleteFunc(strings.Fields(now.kubelet["DropInPaths"]), func(file string) bool { return file == packaged })
		return "", refuse("another drop-in takes kubeadm's arguments away: "+strings.Join(others, ", "), "systemctl cat kubelet; remove that file; systemctl daemon-reload")
	}
	return did, nil
}

// unmask undoes `systemctl mask`, with --runtime too.
func (m Machine) unmask(ctx context.Context, u unit, name string) error {
	argv := []string{"systemctl", "unmask", name}
	if u["UnitFileState"] == "masked-runtime" {
		argv = []string{"systemctl", "unmask", "--runtime", name}
	}
	_, err := m.Run(ctx, argv...)
	return err
}
