package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8slab/config"
	"k8slab/lab/host"
)

// Lab is a closed lab: what cluster.yaml and the lab's directory said when it was read. It is immutable: after a change of the directory,
// read it again.
type Lab struct {
	Dir
	Described   *config.Cluster // by cluster.yaml
	Cluster     *config.Cluster // as it was made: see describe
	After       *config.Cluster // as up leaves it: the same, but for the nodes that leave
	Differences []Difference    // between Described and what the lab was made with
	URI         string          // libvirt's, that the lab was made with or will be, never auto; ssh for machines that exist
}

// Read reads the lab that the cluster describes. If it was made, it is read as it was made.
func Read(described *config.Cluster) (Lab, error) {
	d, err := Open(described.Name)
	if err != nil {
		return Lab{}, err
	}
	l := Lab{Dir: d, Described: described}
	if err := l.describe(); err != nil {
		return Lab{}, err
	}
	switch l.URI = l.Cluster.Libvirt.URI; {
	case l.Cluster.OverSSH():
		l.URI = string(config.MachinesSSH)
	case l.URI == "auto":
		if made, err := os.ReadFile(d.Path(uriFile)); err == nil {
			l.URI = string(made)
		} else {
			l.URI, _ = host.Choose()
		}
	}
	return l, nil
}

// membersDir has an empty file for each node with `onboard: true` that became a member: its onboarding has begun.
const membersDir = "members"

// Admitted are the names of the nodes that were admitted.
func (d Dir) Admitted() ([]string, error) {
	entries, err := os.ReadDir(d.Path(membersDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unreadable(d.dir, err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// Admit makes a node with `onboard: true` a member: from now on `up` and all other verbs include it. It stays one until Dismiss or Down.
func (l Lab) Admit(name string) error {
	if err := l.Onboards(name); err != nil {
		return err
	}
	if err := l.Write(filepath.Join(membersDir, name), nil); err != nil {
		return fmt.Errorf("admit %s: %w", name, err)
	}
	return nil
}

// Dismiss undoes Admit.
func (l Lab) Dismiss(name string) error {
	if err := l.Onboards(name); err != nil {
		return err
	}
	if err := os.Remove(l.Path(membersDir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("dismiss %s: %w", name, err)
	}
	return nil
}

// Onboards is an error unless the node has `onboard: true` in cluster.yaml.
func (l Lab) Onboards(name string) error {
	if n, ok := l.Described.Node(name); !ok || !n.Onboard {
		return fmt.Errorf("cluster.yaml has no node %q with onboard: true", name)
	}
	return nil
}

// Member is the member of this name: a node that has a machine, or gets one from `up`.
func (l Lab) Member(name string) (config.Node, error) {
	if n, ok := l.Cluster.Node(name); ok && !n.Onboard {
		return n, nil
	}
	return config.Node{}, l.unknownNode(name)
}

// unknownNode is the error for a name that no member has.
func (l Lab) unknownNode(name string) error {
	if n, ok := l.Cluster.Node(name); ok && n.Onboard {
		return fmt.Errorf("%s is to be onboarded: run `labctl onboard %[1]s`", name)
	}
	return config.Unknown("node", name, "the lab has", config.Names(l.Cluster.Members()))
}

// Settle writes down what the lab is made with. It comes before the machines of the nodes are made. Of a cluster that labctl did not make
// it is what the file says.
func (l Lab) Settle(nodes ...config.Node) error {
	if l.Cluster.OverSSH() || l.Described.OverSSH() {
		if err := l.CheckDescribed(false); err != nil {
			return err
		}
		return l.writeMade(l.Described)
	}
	was, err := l.Made()
	if err != nil {
		return err
	}
	admitted, err := l.Admitted()
	if err != nil {
		return err
	}
	made := *l.Cluster
	if !made.OverSSH() {
		made.Libvirt.URI = l.URI
	}
	made.Nodes = nil
	if was != nil {
		made.Nodes = machinesOf(was, admitted)
		for _, n := range made.Nodes { // until Resized
			*made.ResourceOf(n.Role) = was.Resource(n.Role)
		}
	} else {
		nodes = append(l.Cluster.Members(), nodes...)
	}
	waiting := slices.DeleteFunc(slices.Clone(l.Described.Nodes), func(n config.Node) bool { return !n.Onboard })
	for _, n := range slices.Concat(waiting, nodes) { // an admitted node is in both, and stays marked as onboarded
		if !slices.ContainsFunc(made.Nodes, hasName(n.Name)) {
			made.Nodes = append(made.Nodes, n)
		}
	}
	return l.writeMade(&made)
}

// Remember writes down a cluster that exists, for --lab and for diagnose --all.
func (l Lab) Remember() error {
	if _, err := l.ID(); err != nil {
		return err
	}
	return l.Settle()
}

// Detach forgets such a cluster, and says what was done. The cluster stays as it is.
func (l Lab) Detach() (did string, err error) {
	if !l.Exists() {
		return "nothing to forget: " + l.Cluster.Name + " is not attached", nil
	}
	return "forgot " + l.Cluster.Name + "; the cluster stays as it is", os.RemoveAll(l.Path())
}

// Forget removes a node from what the lab is made with, after its machine was removed.
func (d Dir) Forget(name string) error {
	if err := os.Remove(d.Path(membersDir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	made, err := d.Made()
	if err != nil || made == nil {
		return err
	}
	made.Nodes = slices.DeleteFunc(made.Nodes, hasName(name))
	return d.writeMade(made)
}

func (d Dir) writeMade(c *config.Cluster) error {
	text, err := c.YAML()
	if err != nil {
		return err
	}
	if _, _, err := config.Parse("cluster.yaml, together with the lab that is there", text); err != nil {
		return err // a file that cannot be read again would make the lab unusable
	}
	return d.Write(MadeFile, text)
}

// CheckMade is ErrNotUp for a lab that does not exist.
func (d Dir) CheckMade() error {
	if !d.Exists() {
		return ErrNotUp
	}
	return nil
}

// CheckDescribed refuses a cluster.yaml with changes that cannot be applied to the lab, and unless prune, with nodes that have to leave.
func (l Lab) CheckDescribed(prune bool) error {
	refused := slices.DeleteFunc(slices.Clone(l.Differences), func(d Difference) bool {
		return d.Way != Refuses && (d.Way != Removes || prune)
	})
	if len(refused) == 0 {
		return nil
	}
	return &ChangedError{Lab: l.Cluster.Name, Differences: refused}
}

// Leaving are the nodes that up removes, in this order: workers first, and the first control plane last.
func (l Lab) Leaving() []config.Node {
	cps := l.Cluster.ControlPlanes()
	slices.Reverse(cps)
	return slices.DeleteFunc(slices.Concat(l.Cluster.Workers(), cps), func(n config.Node) bool {
		return !slices.ContainsFunc(l.Differences, func(d Difference) bool { return d.Way == Removes && d.Node == n.Name })
	})
}

// Resizing are the nodes whose machines up gives another size, in this order: workers first. A machine that is made anew is none of them.
func (l Lab) Resizing() []config.Node {
	return slices.DeleteFunc(slices.Concat(l.Cluster.Workers(), l.Cluster.ControlPlanes()), func(n config.Node) bool {
		resized := func(d Difference) bool {
			return d.Way == Resizes && strings.HasPrefix(d.Key, n.Role.ResourcesKey()+".")
		}
		anew := func(d Difference) bool { return d.Node == n.Name && d.Way != Reconfigures }
		return !slices.ContainsFunc(l.Differences, resized) || slices.ContainsFunc(l.Differences, anew)
	})
}

// Resized notes that the machines have the sizes that cluster.yaml describes.
func (l Lab) Resized() error {
	made, err := l.Made()
	if err != nil {
		return err
	}
	made.Resources = l.Cluster.Resources
	return l.writeMade(made)
}

// ErrNotUp is the error for a lab without machines.
var ErrNotUp = errors.New("the lab is not up: run `labctl up`")

// Kubeconfig is the path of the administrator's kubeconfig for use on this computer.
func (d Dir) Kubeconfig() (string, error) {
	path := d.Path("kubeconfig")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no kubeconfig yet: %w", ErrNotUp)
	}
	return path, nil
}

// Image is the directory of the node image that the lab has.
func (d Dir) Image() (string, error) {
	dir, err := os.ReadFile(d.Path("image"))
	if err != nil {
		return "", ErrNotUp
	}
	return string(dir), nil
}

// Kubectl is the kubectl of the lab's image.
func (d Dir) Kubectl() (string, error) {
	dir, err := d.Image()
	return filepath.Join(dir, "root", "usr", "bin", "kubectl"), err
}

// OnboardingDir has the states of the lab's onboardings.
func (d Dir) OnboardingDir() string { return d.Path("onboard") }
