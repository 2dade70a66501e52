package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/bringup"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
)

// added is a control plane that cluster.yaml gets later.
var added = config.Node{Name: "cp4", Role: config.ControlPlane, IP: netip.MustParseAddr("10.30.0.14")}

// edit is the lab of the world with another cluster.yaml.
func (w *world) edit(change func(*config.Cluster)) {
	c := *w.lab.described
	c.Nodes = slices.Clone(c.Nodes)
	change(&c)
	for _, n := range c.Nodes {
		if b := w.machines[n.Name]; b == nil {
			w.addBox(n)
			w.serveEtcd(w.box(n.Name))
		} else if b.state == machine.Absent {
			b.node = n
		}
	}
	w.lab.described = &c
	w.reborn()
}

// upPruned is what `up --prune` does.
func (w *world) upPruned() error {
	if err := w.lab.Prune(w.ctx); err != nil {
		return err
	}
	return w.lab.Up(w.ctx, bringup.StageProof)
}

func without(names ...string) func(*config.Cluster) {
	return func(c *config.Cluster) {
		c.Nodes = slices.DeleteFunc(c.Nodes, func(n config.Node) bool { return slices.Contains(names, n.Name) })
	}
}

func (m worldMachines) Resize(_ context.Context, spec machine.Spec) (restart bool, err error) {
	m.w.mu.Lock()
	b, want := m.w.box(spec.Node), machine.Spec{CPUs: spec.CPUs, Memory: spec.Memory}
	same, live := reflect.DeepEqual(b.size, want), m.w.live
	m.w.mu.Unlock()
	if !same {
		if err := m.do(spec.Node, "resize", func(b *box) { b.size = want }); err != nil {
			return false, err
		}
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	if live {
		b.ran = b.size
	}
	return !reflect.DeepEqual(b.ran, b.size), nil
}

// patch changes the object as a merge patch says.
func patch(o, by object) {
	for key, value := range by {
		into, deep := o[key].(object)
		part, is := value.(object)
		switch {
		case value == nil:
			delete(o, key)
		case is && deep:
			patch(into, part)
		default:
			o[key] = value
		}
	}
}

// edits are changes of cluster.yaml, and what the lab has after them.
var edits = []struct {
	name    string
	edit    func(*config.Cluster)
	members string
}{
	{"a worker more", func(c *config.Cluster) {
		c.Nodes = append(c.Nodes, config.Node{Name: "w9", Role: config.Worker, IP: netip.MustParseAddr("10.30.0.99")})
	}, "cp1, cp2, cp3, w1, w2, w9"},
	{"a control plane more", func(c *config.Cluster) { c.Nodes = append(c.Nodes, added) }, "cp1, cp2, cp3, cp4, w1, w2"},
	{"a worker and a control plane less", without("w1", "cp3"), "cp1, cp2, w2"},
	{"one control plane is left, which is not the first", without("cp1", "cp3"), "cp2, w1, w2"},
	{"another name for the machine", func(c *config.Cluster) { c.Nodes[3].Name, c.Nodes[3].Auto = "w9", false }, "cp1, cp2, cp3, w9, w2"},
	{"a node's own options", func(c *config.Cluster) {
		c.Nodes[2].Taints, c.Nodes[3].Labels = config.List[string]{}, map[string]string{"rack": "b"}
	}, "cp1, cp2, cp3, w1, w2"},
	{"sizes", func(c *config.Cluster) { c.Resources.Worker.Memory, c.Resources.ControlPlane.CPUs = 3072, 1 }, "cp1, cp2, cp3, w1, w2"},
	{"a size, a worker less and one more", func(c *config.Cluster) {
		c.Nodes = append(c.Nodes, config.Node{Name: "w9", Role: config.Worker, IP: netip.MustParseAddr("10.30.0.99")})
		without("w2")(c)
		c.Resources.Worker.Memory = 3072
	}, "cp1, cp2, cp3, w1, w9"},
}

// wantChanged wants the lab to be what its cluster.yaml says, with nothing left to apply and nothing left of what has gone.
func (w *world) wantChanged(members string) {
	w.t.Helper()
	l := w.reborn()
	if got := memberNames(l.found.Cluster); got != members || len(l.found.Differences) > 0 {
		w.t.Errorf("the lab has %s, and these differences: %v", got, l.found.Differences)
	}
	w.wantHealthy()
	for name, b := range w.machines {
		n, err := l.found.Member(name)
		node := w.objects["/api/v1/nodes/"+name]
		switch size := l.found.Cluster.Resource(n.Role); {
		case err != nil && (b.state != machine.Absent || node != nil || w.memberOf(name) != nil):
			w.t.Errorf("%s is left: %s, Node %v, member %v", name, b.state, node, w.memberOf(name))
		case err == nil && !reflect.DeepEqual(b.ran, machine.Spec{CPUs: size.CPUs, Memory: size.Memory}):
			w.t.Errorf("%s runs with %+v", name, b.ran)
		case err == nil && node["spec"].(object)["unschedulable"] != nil:
			w.t.Errorf("%s is cordoned", name)
		}
	}
	before := len(l.Changes())
	if err := l.Up(w.t.Context(), bringup.StageProof); err != nil || len(l.Changes()) > before {
		w.t.Errorf("up once more: %v, changed %q", err, l.Changes())
	}
}

// Killed before any change, the same command again ends with the lab that cluster.yaml describes.
func TestChangeKilledAtEveryChange(t *testing.T) {
	for _, e := range edits {
		for _, live := range []bool{false, true} {
			if live && !strings.Contains(e.name, "size") {
				continue
			}
			changes := 0
			inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
				w.up()
				w.live = live
				w.edit(e.edit)
				if err := w.upPruned(); err != nil {
					t.Fatalf("%s: %v", e.name, err)
				}
				changes = w.changes
				w.wantChanged(e.members)
			})
			for at := 1; at <= changes; at += 5 * pace { // not each: their kinds repeat
				inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
					w.up()
					w.live = live
					w.edit(e.edit)
					w.killAt(at)
					_ = w.upPruned()
					last := w.calls[len(w.calls)-1]
					w.reborn()
					if err := w.upPruned(); err != nil {
						t.Errorf("%s, killed before change %d (%s): %v", e.name, at, last, err)
						return
					}
					w.wantChanged(e.members)
				})
			}
		}
	}
}

// Names of the API server make a new certificate on each control plane. What an interrupted attempt did is undone by the file that was there.
func TestReconfigureAndBack(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		before := *w.lab.described
		w.edit(func(c *config.Cluster) {
			c.Kubernetes.Kubeadm.Cluster = config.Fragment{"apiServer": config.Fragment{"certSANs": []any{"api.example"}}}
			c.Resources.ControlPlane.Labels, c.Resources.Worker.Labels = map[string]string{"rack": "b"}, map[string]string{"rack": "c"}
		})
		labels := func(name string) object {
			all, _ := w.objects["/api/v1/nodes/"+name]["metadata"].(object)["labels"].(object)
			return all
		}
		certified := func(name string) bool {
			_, saved := w.box(name).files[pkiFiles+"apiserver.crt.k8slab-saved"]
			return saved
		}
		w.fails = func(call string) error {
			if call == "api: PATCH /api/v1/nodes/w1" {
				return errors.New("interrupted")
			}
			return nil
		}
		err := w.lab.Up(w.ctx, bringup.StageProof)
		w.fails = nil
		if err == nil || labels("cp2")["rack"] != "b" || !certified("cp1") || !certified("cp3") {
			t.Fatalf("%v; cp2 has %v", err, labels("cp2"))
		}
		w.calls = nil
		w.lab.described = &before
		w.reborn()
		w.up()
		for _, name := range []string{"cp1", "cp2", "cp3", "w1"} {
			if rack, is := labels(name)["rack"]; is {
				t.Errorf("%s is still in rack %v", name, rack)
			}
			if !slices.Contains(w.calls, name+": systemctl restart kubelet") {
				t.Errorf("kubelet of %s may still run with what the attempt wrote", name)
			}
		}
		if !slices.ContainsFunc(w.calls, func(call string) bool { return strings.Contains(call, "rollout restart daemonset/kube-proxy") }) {
			t.Error("kube-proxy may still run with what the attempt wrote")
		}
		w.wantChanged("cp1, cp2, cp3, w1, w2")
	})
}

// A new control plane starts when all others know its address: otherwise it would take the virtual IP too.
func TestPeersOfANewControlPlane(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.edit(func(c *config.Cluster) { c.Nodes = append(c.Nodes, added) })
		w.calls = nil
		w.up()
		started := slices.Index(w.calls, "libvirt: start cp4")
		for _, name := range []string{"cp1", "cp2", "cp3"} {
			told := slices.Index(w.calls, name+": systemctl reload-or-restart keepalived")
			if text := w.box(name).files["/"+keepalivedConf]; told < 0 || told > started || !strings.Contains(text, added.IP.String()) {
				t.Errorf("%s was told at %d, and cp4 started at %d; now it has\n%s", name, told, started, text)
			}
		}
	})
}

// A control plane goes only while etcd can do without it. Its pods are not moved before that is known.
func TestPruneKeepsTheQuorum(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.edit(without("cp3"))
		w.change(func() { w.box("cp2").voter = false }) // its etcd does not answer
		before := len(w.lab.Changes())
		err := w.lab.Prune(t.Context())
		if err == nil || !strings.Contains(err.Error(), "1 of the 2 voters left would be healthy") || len(w.lab.Changes()) > before {
			t.Errorf("got %v, changed %q", err, w.lab.Changes())
		}
	})
}

// A machine that is to leave need not answer, and one that is off is not waited for.
func TestPruneOfASilentMachine(t *testing.T) {
	for _, name := range []string{"w2", "cp3"} {
		for how, damage := range map[string]func(*box){"silent": func(b *box) { b.silent = true }, "off": func(b *box) { b.state, b.silent = machine.Off, true }} {
			inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
				w.up()
				w.edit(without(name))
				w.change(func() { damage(w.box(name)) })
				if err := w.upPruned(); err != nil {
					t.Fatalf("%s, %s: %v", name, how, err)
				}
				w.wantChanged(strings.ReplaceAll(fmt.Sprint(", ", "cp1, cp2, cp3, w1, w2"), ", "+name, "")[2:])
			})
		}
	}
}

// After this computer has started again, etcd gets its quorum back with the help of those that are to leave.
func TestPruneAfterARestartOfTheComputer(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.edit(without("cp2", "cp3"))
		w.change(func() {
			for _, b := range w.machines {
				b.state = machine.Off
			}
		})
		if err := w.upPruned(); err != nil {
			t.Fatal(err)
		}
		w.wantChanged("cp1, w1, w2")
	})
}

// An up that was interrupted before there was a cluster leaves nodes that can go without one.
func TestPruneWithoutACluster(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		if err := w.lab.Up(t.Context(), bringup.StageMachines); err != nil {
			t.Fatal(err)
		}
		w.edit(without("cp2", "w2"))
		if err := w.upPruned(); err != nil {
			t.Fatal(err)
		}
		w.wantChanged("cp1, cp3, w1")
	})
}

// Without consent nothing happens, and afterwards the plan says what up would do.
func TestPlanOfAnEditedFile(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.edit(func(c *config.Cluster) {
			without("w2")(c)
			c.Nodes[3].IP, c.Nodes[3].Auto = netip.MustParseAddr("10.30.0.29"), false
		})
		steps, err := w.lab.Plan(t.Context())
		var open []string
		for _, s := range steps {
			if !s.Done {
				open = append(open, strings.TrimSpace(string(s.Stage)+" "+s.Node))
			}
		}
		if got := strings.Join(open, ", "); err != nil || got != "remove w1, remove w2, image, machines w1, join w1, proof" {
			t.Errorf("got %s, %v", got, err)
		}
	})
}
