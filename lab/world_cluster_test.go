package lab

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/bringup"
	"k8slab/lab/etcdadmin"
	"k8slab/lab/join"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/repair"
	"k8slab/lab/symptom"
)

// up brings the world's lab up, or ends the test.
func (w *world) up() {
	w.t.Helper()
	if err := w.lab.Up(w.t.Context(), bringup.StageProof); err != nil {
		w.t.Fatal(err)
	}
}

// clean is the world as up left it, for changes that are counted from now on.
func (w *world) clean() { w.reborn() }

// verbs are what changes a node of a lab that is up.
var verbs = []struct {
	name string
	do   func(*testing.T, *world) error
}{
	{"rejoin a worker", func(t *testing.T, w *world) error { return w.lab.Rejoin(w.ctx, "w1") }},
	{"rejoin a control plane", func(t *testing.T, w *world) error { return w.lab.Rejoin(w.ctx, "cp2") }},
	{"rejoin the first control plane", func(t *testing.T, w *world) error { return w.lab.Rejoin(w.ctx, "cp1") }},
	{"take a control plane out", func(t *testing.T, w *world) error { return w.lab.Reset(w.ctx, "cp3") }},
	{"take a worker out", func(t *testing.T, w *world) error { return w.lab.Reset(w.ctx, "w2") }},
	{"a machine that was lost", func(t *testing.T, w *world) error {
		w.lose("cp2")
		return w.lab.Up(w.ctx, bringup.StageProof)
	}},
	{"a Node that was deleted", func(t *testing.T, w *world) error {
		w.change(func() { delete(w.objects, "/api/v1/nodes/w1") })
		return w.lab.Up(w.ctx, bringup.StageProof)
	}},
	{"a stranger's learner", func(t *testing.T, w *world) error {
		w.change(func() { w.addMember("stranger", true) })
		_, err := w.lab.CleanLearners(w.ctx, false)
		return err
	}},
	{"a machine that is off", func(t *testing.T, w *world) error {
		if err := w.lab.PowerOff(w.ctx, "w1"); err != nil {
			return err
		}
		return w.lab.Up(w.ctx, bringup.StageProof)
	}},
}

// Killed before any change that a verb makes, `up` brings the lab back, without losing the cluster.
func TestVerbsKilledAtEveryChange(t *testing.T) {
	for _, v := range verbs {
		changes := 0
		inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
			w.up()
			w.clean()
			if err := v.do(t, w); err != nil {
				t.Errorf("%s: %v", v.name, err)
			}
			changes = w.changes
			w.up()
			w.wantHealthy()
		})
		for at := 1; at <= changes; at += pace {
			inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
				w.up()
				w.clean()
				w.killAt(at)
				_ = v.do(t, w)
				last := w.calls[len(w.calls)-1]
				w.reborn()
				w.expire = true                       // killed after a join and before the certificates are deleted, it has left no token that tells
				if v.name == "a stranger's learner" { // which up does not look for
					_, _ = w.lab.CleanLearners(t.Context(), false)
				}
				if err := w.lab.Up(t.Context(), bringup.StageProof); err != nil {
					t.Errorf("%s, killed before change %d (%s): %v", v.name, at, last, err)
					return
				}
				w.wantHealthy()
			})
		}
	}
}

// A call that fails once, whichever it is, costs no more than the run: the next one ends with a healthy lab.
func TestVerbsWithAFailureAtEveryCall(t *testing.T) {
	for _, v := range verbs[:6] {
		calls := countCalls(t, v.do)
		for at := 1; at <= calls; at += 29 * pace { // not each: all take minutes, and their kinds repeat
			inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
				w.up()
				w.clean()
				n, which := 0, ""
				w.fails = func(call string) error {
					if n++; n == at {
						which = call
						return errors.New("the test's failure")
					}
					return nil
				}
				err := v.do(t, w)
				w.reborn()
				w.expire = true // what would have deleted the certificates may be what failed
				if again := w.lab.Up(t.Context(), bringup.StageProof); again != nil {
					t.Errorf("%s, with a failure of call %d (%s: %v): %v", v.name, at, which, err, again)
					return
				}
				w.wantHealthy()
			})
		}
	}
}

func countCalls(t *testing.T, do func(*testing.T, *world) error) (calls int) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		w.fails = func(string) error { calls++; return nil }
		if err := do(t, w); err != nil {
			t.Error(err)
		}
	})
	return calls
}

// A control plane whose join fails for good leaves the ones after it alone; workers beside it join.
func TestTheNextControlPlaneWaitsForRepair(t *testing.T) {
	inWorld(t, labtest.Three, func(c *config.Cluster) { c.Tuning.CPJoinRetryAttempts = 2 }, func(t *testing.T, w *world) {
		w.box("cp2").outage = &join.Outcome{Symptom: symptom.KubeletConfigMissing, Evidence: "no kubelet", Phase: "kubelet-start", Hint: "look at kubelet"}
		err := w.lab.Up(t.Context(), bringup.StageProof)
		if err == nil || !strings.Contains(err.Error(), "cp2") || !strings.Contains(err.Error(), "no kubelet") || !strings.Contains(err.Error(), "next: look at kubelet") {
			t.Errorf("got %v", err)
		}
		slices.Sort(w.joins)
		if !slices.Equal(w.joins, []string{"w1", "w2"}) {
			t.Errorf("joined %q", w.joins)
		}
		w.box("cp2").outage = nil
		w.reborn()
		w.up()
		w.wantHealthy()
	})
}

// The machine's own voter that lost its data goes only after a snapshot, and only as far as the quorum allows.
func TestLostMachineOfAVoter(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		before := w.memberOf("cp2").id
		w.lose("cp2")
		w.clean()
		w.up()
		w.wantHealthy()
		if m := w.memberOf("cp2"); m == nil || m.id == before {
			t.Errorf("cp2's member is %+v, and was %d", m, before)
		}
		remove := slices.IndexFunc(w.calls, func(c string) bool { return strings.Contains(c, "etcd remove member") })
		if kept, err := snapshotsOf(w); err != nil || kept != 1 || remove < 0 {
			t.Errorf("%d snapshots, %v, calls %q", kept, err, w.calls)
		}
	})
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.lose("cp2")
		w.change(func() { w.box("cp3").state = machine.Off })
		w.clean()
		w.change(func() { w.box("cp3").silent = true }) // also after up has started it
		err := w.lab.Join(t.Context(), "cp2")
		if err == nil || len(w.members) != 3 {
			t.Errorf("without a quorum: %v, members %+v", err, w.members)
		}
	})
}

func snapshotsOf(w *world) (int, error) {
	files, err := globState(w, "snapshots", "*.db")
	return len(files), err
}

// What cannot be done is refused before anything is changed.
func TestRefusals(t *testing.T) {
	refused := map[string]struct {
		arrange func(*world)
		do      func(*testing.T, *world) error
		want    string
	}{
		"the only control plane": {nil, func(t *testing.T, w *world) error { return w.lab.Rejoin(t.Context(), "cp1") }, "only control plane"},
		"a name that is no node": {nil, func(t *testing.T, w *world) error { return w.lab.Join(t.Context(), "w7") }, "w7"},
		"a node that is silent":  {func(w *world) { w.box("w1").silent = true }, func(t *testing.T, w *world) error { return w.lab.Rejoin(t.Context(), "w1") }, "does not answer over SSH"},
		"a restore with a quorum": {nil, func(t *testing.T, w *world) error {
			return w.lab.SnapshotRestore(t.Context(), etcdadmin.Restore{Node: "cp1"})
		}, "refused: etcd has a quorum"},
		"a restore of a worker": {nil, func(t *testing.T, w *world) error {
			return w.lab.SnapshotRestore(t.Context(), etcdadmin.Restore{Node: "w1"})
		}, "not a control plane"},
		"nobody answers": {func(w *world) { w.box("cp1").silent = true }, func(t *testing.T, w *world) error {
			_, err := w.lab.Repair(t.Context(), false, repair.Restart)
			return err
		},
			"no control plane that has joined answers"},
	}
	for name, tt := range refused {
		inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
			w.up()
			w.clean()
			if tt.arrange != nil {
				w.change(func() { tt.arrange(w) })
			}
			if err := tt.do(t, w); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: got %v, want %q", name, err, tt.want)
			}
			if len(w.lab.Changes()) > 0 {
				t.Errorf("%s: changed %q", name, w.lab.Changes())
			}
		})
	}
}

// Without a quorum one member becomes a cluster of its own, and up makes the others a part of it.
func TestRestoreOfALostQuorum(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		for _, name := range []string{"cp2", "cp3"} {
			w.change(func() { w.box(name).state = machine.Off })
		}
		w.clean()
		if err := w.lab.SnapshotRestore(t.Context(), etcdadmin.Restore{Node: "cp1"}); err != nil {
			t.Fatal(err)
		}
		if len(w.members) != 1 || w.members[0].node != "cp1" {
			t.Errorf("members %+v", w.members)
		}
		w.reborn()
		w.up()
		w.wantHealthy()
		if len(w.members) != 3 {
			t.Errorf("members %+v", w.members)
		}
	})
}

// A node that goes for good leaves nothing in the cluster, whether its machine answers or not.
func TestRemove(t *testing.T) {
	for _, silent := range []bool{false, true} {
		for _, name := range []string{"cp2", "w1"} {
			inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
				w.up()
				w.clean()
				w.change(func() { w.box(name).silent = silent })
				if err := w.lab.Remove(t.Context(), name); err != nil {
					t.Errorf("%s, silent %v: %v", name, silent, err)
				}
				if w.memberOf(name) != nil || w.objects["/api/v1/nodes/"+name] != nil || w.box(name).state != machine.Absent {
					t.Errorf("%s, silent %v: members %+v, machine %s", name, silent, w.members, w.box(name).state)
				}
				l := w.reborn()
				if _, err := l.found.Member(name); err != nil { // cluster.yaml still has it: up makes it again
					t.Error(err)
				}
				w.up()
				w.wantHealthy()
			})
		}
	}
}

// What repair can do it does, and says so; what it would do it says without doing it.
func TestRepairInMemory(t *testing.T) {
	damages := map[string]func(*world){
		"node-name-mismatch": func(w *world) { delete(w.objects, "/api/v1/nodes/w1") },
		"kubelet-config-missing": func(w *world) {
			w.box("w2").facts = join.Facts{MachineID: w.box("w2").facts.MachineID}
			delete(w.objects, "/api/v1/nodes/w2")
		},
		"etcd-stale-member":           func(w *world) { w.addMember("stranger", true) },
		"network-plugin-pods-failing": func(w *world) { delete(w.objects, "/apis/apps/v1/namespaces/kube-flannel/daemonsets/flannel") },
	}
	for want, damage := range damages {
		inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
			w.up()
			w.clean()
			w.change(func() { damage(w) })
			foreseen, err := w.lab.Repair(t.Context(), true, repair.Restart)
			if err != nil || len(w.lab.Changes()) > 0 {
				t.Errorf("%s: a dry run: %v, changed %q", want, err, w.lab.Changes())
			}
			found, err := w.lab.Repair(t.Context(), false, repair.Restart)
			text := fmt.Sprint(foreseen, found, err)
			if err != nil || len(found) != 1 || found[0].Symptom != want || found[0].Did == "" || len(foreseen) != 1 || foreseen[0].Would == "" {
				t.Errorf("%s: %s", want, text)
			}
			w.wantHealthy()
		})
	}
}
