package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"k8slab/lab/atomicfile"
	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

// The node image keeps copies of the pod network's configuration and plugins here, in case somebody deletes those that containerd reads.
const (
	pristineCNI     = "/usr/share/k8slab/cni"
	pristinePlugins = "/usr/share/k8slab/cni-plugins"
)

// copiedPlugins are those of which the node image keeps copies: what flannel's pods need.
var copiedPlugins = []string{"bridge", "flannel", "host-local", "loopback", "portmap"}

// neededPlugins are the image's where it keeps copies, else those that the network in use calls.
func (m Machine) neededPlugins() []string {
	if len(m.List(pristinePlugins)) > 0 {
		return copiedPlugins
	}
	return m.calledPlugins()
}

// checkCNIPlugins only warns where the machine has no copies to restore: the cluster's network add-on may bring the plugins after the join.
func checkCNIPlugins(_ context.Context, p *preflight) Check {
	where := strings.Join(p.m.pluginDirs(), " or ")
	missing := missingFrom(p.m.neededPlugins(), p.m.Plugins())
	switch {
	case len(missing) == 0:
		return ok("all in %s", where)
	case len(missingFrom(missing, p.m.List(pristinePlugins))) > 0:
		return warn(symptom.CNIPluginBinaryMissing, "install the package kubernetes-cni, unless the cluster's network add-on brings them",
			"%s has no %s", where, strings.Join(missing, ", "))
	}
	return fixable(symptom.CNIPluginBinaryMissing, fmt.Sprintf("cp --archive %s/. %s", pristinePlugins, cniPlugins),
		"%s has no %s", cniPlugins, strings.Join(missing, ", "))
}

// repairCNIPlugins copies the missing plugins from the image's own copies and leaves the others as they are.
func repairCNIPlugins(ctx context.Context, p *preflight) (string, error) {
	missing := missingFrom(p.m.neededPlugins(), p.m.List(cniPlugins))
	if nowhere := missingFrom(missing, p.m.List(pristinePlugins)); len(nowhere) > 0 {
		return "", refuse("the machine keeps no other "+strings.Join(nowhere, ", "), "install the package kubernetes-cni")
	}
	if err := os.MkdirAll(p.m.Path(cniPlugins), 0o755); err != nil {
		return "", err
	}
	argv := []string{"cp", "--archive", "--target-directory", cniPlugins}
	for _, name := range missing {
		argv = append(argv, path.Join(pristinePlugins, name))
	}
	_, err := p.m.Run(ctx, argv...)
	return "restored " + strings.Join(missing, ", ") + " in " + cniPlugins, err
}

// conflict finds a first network that hides an add-on's, which containerd then never uses.
func conflict(networks []cniNetwork) (cniNetwork, bool) {
	if len(networks) < 2 || !networks[0].plain() || !slices.ContainsFunc(networks[1:], cniNetwork.addOn) {
		return cniNetwork{}, false
	}
	return networks[0], true
}

func checkCNIConfig(ctx context.Context, p *preflight) Check {
	networks := p.m.networks()
	switch {
	case len(networks) == 0 && len(p.m.List(pristineCNI)) > 0:
		return fixable(symptom.CNINotInitialized, fmt.Sprintf("cp %s/* %s/ (cp, not mv: containerd does not notice a file that is moved in)", pristineCNI, cniConfigs),
			"no configuration in %s", cniConfigs)
	case len(networks) == 0 && p.networkElsewhere(ctx):
		return ok("none in %s, and the runtime has a network from elsewhere", cniConfigs)
	case len(networks) == 0:
		return warn(symptom.CNINotInitialized, "nothing, when the cluster's network add-on writes it after the join", "no configuration in %s yet", cniConfigs)
	}
	if stale, found := conflict(networks); found {
		return fixable(symptom.CNIStaleConfig, fmt.Sprintf("mv %[1]s/%[2]s %[1]s/%[2]s.k8slab-saved", cniConfigs, stale.file),
			"%s comes before the network add-on's and wins: pods of several nodes would get the same addresses", stale.file)
	}
	if networks[0].err != nil {
		return p.unreadableNetwork(networks[0])
	}
	if why := p.notLoaded(ctx, networks[0]); why != "" {
		file := path.Join(cniConfigs, networks[0].file)
		return fixable(symptom.CNINotInitialized, fmt.Sprintf("cp %[1]s %[1]s.copy; mv %[1]s.copy %[1]s; if that does not help: systemctl restart containerd", file),
			"%s is there and containerd has not loaded it (it does not notice a file that is moved into the directory): %s", file, why)
	}
	return ok("%s (%s)", networks[0].file, strings.Join(networks[0].types, ", "))
}

// networkElsewhere tells whether a member's runtime says that it has a network: it may read another directory, if no node image set it up.
func (p *preflight) networkElsewhere(ctx context.Context) bool {
	if !p.m.Exists(kubeletConf) || p.m.made() {
		return false
	}
	facts, err := p.cri(ctx)
	return err == nil && facts.problem == "" && facts.network == ""
}

// unreadableNetwork is a first network that containerd cannot load: it has none then. The machine's own copy of the file replaces it.
func (p *preflight) unreadableNetwork(n cniNetwork) Check {
	if slices.Contains(p.m.List(pristineCNI), n.file) {
		return fixable(symptom.CNINotInitialized, fmt.Sprintf("cp %[1]s/%[2]s %[3]s/%[2]s", pristineCNI, n.file, cniConfigs),
			"%s cannot be read, so the runtime has no network for pods: %v", n.file, n.err)
	}
	return warn(symptom.CNINotInitialized, "correct or remove it (the file, not the directory)",
		"%s cannot be read, so the runtime has no network for pods: %v", n.file, n.err)
}

// repairCNIConfig writes the machine's own configuration again when there is none. It renames one that hides the add-on's within the
// directory, which containerd notices. The directory stays: containerd exits without it.
func repairCNIConfig(ctx context.Context, p *preflight) (string, error) {
	networks := p.m.networks()
	if len(networks) == 0 || networks[0].err != nil && slices.Contains(p.m.List(pristineCNI), networks[0].file) {
		names, err := p.m.restoreCNI()
		if err == nil && len(names) == 0 {
			err = refuse(pristineCNI+" has none to restore", "restart the network add-on's pod of this node")
		}
		return "wrote " + strings.Join(names, ", ") + " in " + cniConfigs + " again", err
	}
	stale, found := conflict(networks)
	if !found && p.notLoaded(ctx, networks[0]) != "" {
		return p.reloadCNI(ctx, path.Join(cniConfigs, networks[0].file))
	}
	if !found {
		return "", refuse("no configuration overrides another", "look into "+cniConfigs)
	}
	file := path.Join(cniConfigs, stale.file)
	if err := p.m.moveAside(file); err != nil {
		return "", err
	}
	return "moved " + file + " aside", nil
}

// restoreCNI writes the image's configuration of the pod network again, in place, and returns the names of its files; none where the image
// keeps none.
func (m Machine) restoreCNI() ([]string, error) {
	names := m.List(pristineCNI)
	if len(names) == 0 {
		return nil, nil
	}
	if err := os.MkdirAll(m.Path(cniConfigs), 0o755); err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := m.Read(path.Join(pristineCNI, name))
		if err == nil {
			err = atomicfile.Write(m.Path(path.Join(cniConfigs, name)), 0o644, []byte(text)) // whatever the umask
		}
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

// reloadLimit is how long containerd may take to load a changed configuration. Usually it takes milliseconds.
const reloadLimit = 2 * time.Second

// notLoaded is what the runtime says when it has no network although the configuration is there: containerd watches the directory, but does
// not notice a file that is moved into it. It is "" when all is well, when the complaint is not of containerd's own loader, and on a
// machine that has not joined and keeps no copy, because its network add-on may still bring a configuration.
func (p *preflight) notLoaded(ctx context.Context, n cniNetwork) string {
	if n.file == path.Base(placeholderConf) || !p.m.Exists(kubeletConf) && len(p.m.List(pristineCNI)) == 0 {
		return ""
	}
	facts, err := p.cri(ctx)
	if err != nil || facts.socket != containerdSocket || !strings.Contains(facts.network, "cni plugin not initialized") {
		return ""
	}
	return facts.network
}

// reloadCNI makes containerd read the configuration: it notices one that is renamed in its directory. A containerd that watches no more is
// started anew.
func (p *preflight) reloadCNI(ctx context.Context, file string) (string, error) {
	info, err := os.Lstat(p.m.Path(file))
	if err != nil {
		return "", err
	}
	if info.Mode().IsRegular() { // a link's target may serve others
		text, err := p.m.Read(file)
		if err == nil {
			err = atomicfile.Write(p.m.Path(file), info.Mode().Perm(), []byte(text))
		}
		if err != nil {
			return "", err
		}
		if wait.For(ctx, "containerd to load "+file, reloadLimit, 50*time.Millisecond, p.networkServes) == nil {
			return "wrote " + file + " again in its place, so that containerd noticed it", nil
		}
	}
	if _, err := p.restarts(ctx, p.networkServes); err != nil {
		return "", err
	}
	return "restarted containerd, which watched its CNI directory no more", nil
}

// networkServes is what a wait for containerd's network asks.
func (p *preflight) networkServes(ctx context.Context) error {
	facts, err := p.m.talkCRI(ctx, p.runtime().socket)
	if said := cmp.Or(facts.problem, facts.network); err == nil && said != "" { // without a status there is no network's status
		err = errors.New(said)
	}
	return err
}
