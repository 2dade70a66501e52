package join

import (
	"context"
	"errors"
	"os"
	"path"
	"slices"

	"k8slab/lab/symptom"
)

// upgradeDir is where kubeadm keeps what it replaces.
const upgradeDir = "/etc/kubernetes/tmp"

// patchesDir is where a lab puts the patches of a node that has settings of its own.
const patchesDir = "/usr/share/k8slab/patches"

// checkMemberConfig looks for what a member's kubelet does not start without.
func checkMemberConfig(_ context.Context, p *preflight) Check {
	switch {
	case !p.m.Exists(kubeletConf):
		return ok("the machine has not joined a cluster")
	case p.m.Exists(kubeletConfig):
		return ok("%s is there", kubeletConfig)
	}
	return fixable(symptom.KubeletConfigMissing, "touch "+kubeletConfig+"; kubeadm upgrade node phase kubelet-config; systemctl restart kubelet",
		"the machine has joined and %s is gone, without which kubelet does not start", kubeletConfig)
}

// repairMemberConfig has kubeadm write kubelet's configuration again, from the cluster's own, with the rights of kubelet. kubeadm wants a
// file to replace: it gets an empty one, which does not stay when kubeadm fails, nor does the copy that kubeadm keeps of it.
func repairMemberConfig(ctx context.Context, p *preflight) (string, error) {
	switch {
	case !p.m.Exists(kubeletConf):
		return "", refuse("the machine has not joined a cluster", "labnode join")
	case p.m.Find("kubeadm") == "":
		return "", refuse("kubeadm, which writes it, is not installed", "install the package kubeadm of the cluster's version; labnode repair")
	}
	f, err := os.OpenFile(p.m.Path(kubeletConfig), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return "", refuse("there is a "+kubeletConfig, "systemctl restart kubelet")
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return "", err
	}
	before := p.m.List(upgradeDir)
	argv := []string{"kubeadm", "upgrade", "node", "phase", "kubelet-config"}
	if p.m.Exists(patchesDir) {
		argv = append(argv, "--patches", patchesDir)
	}
	_, err = p.m.Run(ctx, argv...)
	if err == nil && p.m.Line(kubeletConfig) == "" {
		err = errors.New("kubeadm upgrade node wrote nothing")
	}
	if err != nil {
		err = errors.Join(err, remove(p.m.Path(kubeletConfig)))
	}
	for _, name := range p.m.List(upgradeDir) {
		if !slices.Contains(before, name) {
			err = errors.Join(err, os.RemoveAll(p.m.Path(path.Join(upgradeDir, name))))
		}
	}
	return "had kubeadm write " + kubeletConfig + " again from the cluster's configuration", err
}
