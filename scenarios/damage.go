package scenarios

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"k8slab/config"
)

// Damage is one thing that somebody or something broke at random. It holds all that is needed to make it again and to undo it.
type Damage struct {
	Kind   string `json:"kind"`
	How    string `json:"how"`
	Node   string `json:"node"`             // "" for an object of the cluster
	What   string `json:"what"`             // as the kind's list writes it
	Before string `json:"before,omitempty"` // an object as it was, in JSON
}

// String is the damage in one line, such as "delete file /usr/bin/runc".
func (d Damage) String() string { return d.How + " " + d.Kind + " " + d.What }

// damageKind is a kind of damage. Values reach nodes as arguments, never inside of a script.
type damageKind struct {
	name    string
	cluster bool    // of the cluster and not of a node
	groups  []group // a round draws one of them, so that many things of one group do not hide the few of another
	// list returns the things of a group that can be damaged in this way.
	list func(ctx context.Context, t Target, group, how string) ([]string, error)
	// keep keeps what undo needs: on the node, or in the damage.
	keep func(context.Context, Target, *Damage) error
	make func(context.Context, Target, Damage) error
	// undo puts back what was kept. Unless it is forced, it leaves alone what was changed since. It is safe at any time.
	undo func(ctx context.Context, t Target, d Damage, force bool) error
}

// group are things that are damaged in the same ways.
type group struct {
	name string
	ways []string
}

// The kinds, each as likely as any other.
var damageKinds = []damageKind{
	{name: "file", groups: fileGroups, list: listFiles, keep: keepFile, make: makeFile, undo: undoFile},
	{name: "unit", groups: unitGroups, list: listUnits, make: makeUnit, undo: undoUnit},
	{name: "object", cluster: true, groups: objectGroups, list: listObjects, keep: keepObject, make: makeObject, undo: undoObject},
	{name: "image", groups: []group{{"", []string{"remove"}}}, list: listImages, keep: keepImage, make: makeImage, undo: undoImage},
	{name: "disk", groups: []group{{kubeletDirectory, []string{"fill", "fill-inodes"}}}, list: listDisks, make: makeDisk, undo: undoDisk},
	{name: "net", groups: netGroups, list: listNet, make: makeNet, undo: undoNet},
}

func (d Damage) kind() (damageKind, error) {
	for _, k := range damageKinds {
		if k.name == d.Kind {
			return k, nil
		}
	}
	return damageKind{}, fmt.Errorf("this labctl knows no damage of kind %q: undo it by hand, then remove its entry from faults.json", d.Kind)
}

// plan is what the seed says of a round, before anybody has looked at the lab.
type plan struct {
	damageKind
	node  string
	group group
	how   string
}

// planned is the nth round of the seed in a lab of these members. In a lab of fewer than three control planes the nodes are the workers,
// since the loss of a control plane would be the loss of the cluster's data.
func planned(seed uint64, n int, members []Member) (plan, error) {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	controlPlanes := len(Target{Members: members}.controlPlanes())
	var nodes []string
	for _, m := range members {
		if m.Role != config.ControlPlane || controlPlanes >= 3 {
			nodes = append(nodes, m.Name)
		}
	}
	if len(nodes) == 0 {
		return plan{}, errors.New("no node may be damaged: the lab has neither a worker nor three control planes")
	}
	p := plan{damageKind: damageKinds[r.IntN(len(damageKinds))], node: nodes[r.IntN(len(nodes))]}
	if p.cluster {
		p.node = ""
	}
	p.group = p.groups[r.IntN(len(p.groups))]
	p.how = p.group.ways[r.IntN(len(p.group.ways))]
	return p, nil
}

// drawDamage is the damage of the nth round: the plan's, on one of the things that the lab has now. A group that has nothing on this node,
// such as the images of a control plane on a worker, is an error of its round alone.
func drawDamage(ctx context.Context, d Driver, seed uint64, n int) (Damage, Target, error) {
	t, err := look(ctx, d)
	if err != nil {
		return Damage{}, t, err
	}
	p, err := planned(seed, n, t.Members)
	if err != nil {
		return Damage{}, t, err
	}
	t = t.at(p.node)
	damage := Damage{Kind: p.name, How: p.how, Node: p.node}
	things, err := p.list(ctx, t, p.group.name, p.how)
	if err == nil && len(things) == 0 {
		err = fmt.Errorf("%w: there is no %s of %q to %s", errNotApplicable, p.name, p.group.name, p.how)
	}
	if err != nil {
		return damage, t, err
	}
	damage.What = chosen(seed, n, things)
	return damage, t, nil
}

// at is the target for damage on the node, "" for the cluster.
func (t Target) at(node string) Target {
	t.Node = node
	for _, m := range t.Members {
		if m.Name == node {
			t.Address = m.Address
		}
	}
	return t.beside([]string{node})
}

// chosen is the thing that the seed and the number of the round choose. It stays the same when other things come or go.
func chosen(seed uint64, n int, things []string) (best string) {
	var least uint64
	for i, thing := range things {
		h := fnv.New64a()
		_, _ = fmt.Fprintf(h, "%d\x00%d\x00%s", seed, n, thing)
		if sum := mixed(h.Sum64()); i == 0 || sum < least || sum == least && thing < best {
			best, least = thing, sum
		}
	}
	return best
}

// mixed spreads what FNV leaves in the low bits of texts that differ in their last letter only.
func mixed(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// make keeps what is needed to undo the damage, has record write it down, and makes it.
func (d *Damage) make(ctx context.Context, t Target, record func(Damage) error) error {
	k, err := d.kind()
	if err == nil && k.keep != nil {
		err = k.keep(ctx, t, d)
	}
	if err == nil {
		err = record(*d)
	}
	if err == nil {
		err = k.make(ctx, t, *d)
	}
	if err != nil {
		return fmt.Errorf("%s on %s: %w", d, d.where(), err)
	}
	return nil
}

func (d Damage) where() string {
	if d.Node == "" {
		return "the cluster"
	}
	return d.Node
}

// Undo puts back what the damage changed, as far as it was not put back already. It is safe at any time. A node that cannot be reached is
// restarted, which ends all damage but that of files.
func (d Damage) Undo(ctx context.Context, driver Driver) error {
	t, err := look(ctx, driver)
	if err != nil {
		return err
	}
	return d.undo(ctx, t.at(d.Node), true)
}

func (d Damage) undo(ctx context.Context, t Target, force bool) error {
	k, err := d.kind()
	if err != nil {
		return err
	}
	err = k.undo(ctx, t, d, force)
	if err != nil && d.Node != "" && ctx.Err() == nil {
		_, offErr := t.Labctl(ctx, "power", "off", d.Node)
		_, upErr := t.Labctl(ctx, "up") // it starts the machine first; the damage may keep it from more
		if undoErr := k.undo(ctx, t, d, force); undoErr != nil {
			err = errors.Join(err, offErr, upErr, undoErr)
		} else {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("undo %s on %s: %w; next: labctl rejoin or labctl down and up", d, d.where(), err)
	}
	return nil
}

// nonEmptyLines are the lines of text that are not empty.
func nonEmptyLines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}
