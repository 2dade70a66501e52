package lab

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"k8slab/lab/join"
	"k8slab/lab/machine"
)

// damage is what may be wrong with a machine.
type damage struct {
	maker     machine.Maker
	noKubeadm bool
	noSubnet  bool           // flannel's word to the plugin is gone
	initFails string         // what the next `kubeadm init` says before it fails
	crashing  string         // the static pod whose manifest makes it end again and again
	failures  []join.Outcome // what its next joins come to
	swap      bool           // something that labnode repairs
	images    []string       // of its containerd
	imports   []string       // by what names it has what it imports
	clock     string         // what it was set to
	tree      string         // a directory of this computer with the machine's files, where its image has a list of them
	noLabnode bool           // its labnode does not run until it is written again
	atWork    func() join.Outcome
	ill       string     // the rung of a repair's ladder that heals it
	illness   join.Check // what its labnode says of that
}

// heals is what a rung does to a machine that is ill. The caller has the lock.
func (b *box) heals(rung string) {
	if b.ill == rung {
		b.ill = ""
	}
}

const (
	subnetFile  = "/run/flannel/subnet.env"
	manifestDir = "/etc/kubernetes/manifests/"
)

// damaged are the commands of repairs, of restores and of images.
func (w *world) damaged(b *box, argv []string, stdin string) (out string, status int, known bool) {
	line := strings.Join(argv, " ")
	switch {
	case argv[0] == "rm":
		for _, name := range argv[1:] {
			delete(b.files, name)
		}
		return "", 0, true
	case line == "/usr/lib/k8slab/follow" && b.atWork != nil:
		b.atWork()
		b.facts.KubeadmUnit, b.atWork = "inactive", nil
		return "[certs] Using certificateDir folder\n", 0, true
	case argv[0] == "tail" && argv[1] == "-n":
		out, status = w.file(b, argv[len(argv)-1])
		return out, status, true
	case strings.HasPrefix(line, "date --utc --set"):
		b.clock = argv[3]
		return "", 0, true
	case argv[0] == "test":
		return "", map[bool]int{true: 1, false: 0}[b.noSubnet], true
	case argv[0] == "sh" && strings.Contains(line, "ip link delete cni0"):
		return "", 0, true
	case strings.HasPrefix(line, "kubeadm ") && b.noKubeadm:
		return "sh: kubeadm: not found", 127, true
	case argv[0] == "sha256sum":
		return "sha256sum: no such file\n", 1, true
	case argv[0] == labnodePath && b.noLabnode && b.files[labnodePath] == "":
		return "not found\n", 127, true
	case argv[0] == "ctr":
		return w.containerd(b, argv)
	case argv[0] == "crictl" && slices.Contains(argv, "pods") || argv[0] == "crictl" && slices.Contains(argv, "stopp"):
		return w.sandboxes(b, argv)
	}
	return w.kubeadm(b, argv, stdin)
}

// containerd is its image store.
func (w *world) containerd(b *box, argv []string) (string, int, bool) {
	switch {
	case slices.Contains(argv, "list"):
		return strings.Join(b.images, " type sha256:0123\n") + " type sha256:0123\n", 0, true
	case slices.Contains(argv, "import"):
		b.images = append(b.images, b.imports...)
	case slices.Contains(argv, "tag"):
		b.images = append(b.images, argv[len(argv)-1])
	}
	return "", 0, true
}

// sandboxes are those of pods with an address. One that ends is followed by one with an address of the node's network.
func (w *world) sandboxes(b *box, argv []string) (string, int, bool) {
	for key, o := range w.objects {
		spec, _ := o["spec"].(object)
		if !strings.Contains(key, "/pods/") || spec["nodeName"] != b.node.Name {
			continue
		}
		id := "sandbox-" + path.Base(key) + "-" + o["status"].(object)["podIP"].(string)
		if slices.Contains(argv, "^"+path.Base(key)+"$") {
			return id + "\n", 0, true
		}
		if slices.Contains(argv, id) {
			cidr := w.objects["/api/v1/nodes/"+b.node.Name]["spec"].(object)["podCIDR"].(string)
			o["status"].(object)["podIP"] = strings.TrimSuffix(cidr, "0/24") + "77"
			return "", 0, true
		}
	}
	return "", 0, true
}

// checked is what labnode finds of a member's part, which is no business of mend's.
func (b *box) checked(command, id string) join.Result {
	if command == "validate" && b.crashing == "kube-"+id {
		return join.Blocked
	}
	return join.OK
}

// mended is what labnode finds and, unless it only looks, repairs.
func (b *box) mended(dryRun bool) []object {
	switch {
	case !b.swap:
		return nil
	case dryRun:
		return []object{{"id": "swap", "result": join.Fixable, "symptom": "swap-enabled", "evidence": "swap is on", "hint": "swapoff -a"}}
	}
	b.swap = false
	return []object{{"id": "swap", "result": join.OK, "symptom": "swap-enabled", "evidence": "swap was on", "fixed": "turned swap off"}}
}

// followed is a join that an earlier labctl left at work: it ends now.
func (w *world) followed(b *box) (string, int) {
	if b.atWork == nil {
		return "no join is at work", 1
	}
	o := b.atWork()
	b.facts.JoinUnit, b.atWork = "inactive", nil
	if o.Joined {
		w.joins = append(w.joins, b.node.Name)
	}
	text, _ := json.Marshal(object{"outcome": o})
	return string(text) + "\n", map[bool]int{true: 0, false: 1}[o.Joined]
}
