package join

import (
	"context"
	"os"
	"path"
	"slices"
	"sync"

	"k8slab/lab/symptom"
)

// Where a node image keeps the pod network's configuration and plugins, for when somebody deletes them from where containerd reads them.
const (
	pristineCNI     = "/usr/share/k8slab/cni"
	pristinePlugins = "/usr/share/k8slab/cni-plugins"
)

// mendable are the checks that hold on a member as well, from cause to effect. What else preflight looks for is what a member is made of.
var mendable = []string{"swap", "kernel-modules", "sysctls", "kubelet-unit", "cni-plugins", "cni-config", "cri", "image-filesystem"}

// memberProbes are the checks that Mend makes.
func memberProbes() []probe {
	list := slices.DeleteFunc(probes(Target{}), func(pr probe) bool { return !slices.Contains(mendable, pr.id) })
	network := probe{id: "cni-network", run: checkNetworkPresent, fix: fixNetworkPresent}
	at := slices.IndexFunc(list, func(pr probe) bool { return pr.id == "cri" }) // containerd must find the configuration when it starts
	list = slices.Insert(list, at, network)
	return append(list, probe{id: "kubelet-service", run: checkKubeletService, fix: fixKubeletService})
}

// Mend looks for what goes wrong on a node that has joined, and repairs what is safe to repair, unless dryRun: containerd, kubelet, the pod
// network's configuration, swap, modules, sysctls. Like Fix it says in Fixed what it did, and a repair that was refused or did not help is
// Blocked. What is a member's own it never touches.
func Mend(ctx context.Context, m Machine, dryRun bool) []Check {
	list := memberProbes()
	checks := make([]Check, len(list))
	look := newPreflight(ctx, m, Target{})
	var wg sync.WaitGroup
	for i, pr := range list {
		wg.Go(func() { checks[i] = look.one(ctx, pr) })
	}
	wg.Wait()
	if dryRun {
		return checks
	}
	for i, pr := range list { // one after another: a cause's repair may heal its effects
		if checks[i].Result == Fixable && pr.fix != nil && ctx.Err() == nil {
			checks[i] = repair(ctx, m, Target{}, pr, checks[i])
		}
	}
	return checks
}

func checkNetworkPresent(_ context.Context, p *preflight) Check {
	if len(p.m.networks()) > 0 {
		return ok("a configuration is in %s", cniConfigs)
	}
	if len(p.m.List(pristineCNI)) == 0 {
		return blocked(symptom.CNINotInitialized, "restart the network add-on's pod of this node, which writes it", "no configuration in %s", cniConfigs)
	}
	return fixable(symptom.CNINotInitialized, "cp "+pristineCNI+"/* "+cniConfigs+"/ (cp, not mv: containerd does not notice a file that is moved in)",
		"no configuration in %s", cniConfigs)
}

func fixNetworkPresent(_ context.Context, p *preflight) (string, error) {
	names, err := p.m.restoreCNI()
	if err != nil {
		return "", err
	}
	if len(names) == 0 {
		return "", refuse(pristineCNI+" has none to restore", "restart the network add-on's pod of this node")
	}
	return "wrote " + path.Join(cniConfigs, names[0]) + " again", nil
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
			err = os.WriteFile(m.Path(path.Join(cniConfigs, name)), []byte(text), 0o644)
		}
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

func checkKubeletService(ctx context.Context, p *preflight) Check {
	if !p.m.Exists(kubeletConf) {
		return ok("the machine has not joined a cluster")
	}
	states, err := p.m.systemd(ctx, "kubelet.service")
	if err != nil {
		return warn("", "systemctl status kubelet", "%v", err)
	}
	switch k := p.m.kubelet(states["kubelet.service"]); {
	case k.Active != "active":
		return fixable(symptom.KubeletNotRunning, "systemctl enable --now kubelet", "kubelet.service is %s", k.Active)
	case k.Standalone:
		return fixable(symptom.KubeletStandalone, "systemctl restart kubelet, once its drop-in is there", "kubelet's process has no --kubeconfig")
	}
	return ok("active, with a kubeconfig")
}

// fixKubeletService starts kubelet anew: a restart is also what makes it look at everything at once instead of every 10 s.
func fixKubeletService(ctx context.Context, p *preflight) (string, error) {
	_, err := p.m.Run(ctx, "systemctl", "restart", "kubelet.service")
	return "started kubelet", err
}
