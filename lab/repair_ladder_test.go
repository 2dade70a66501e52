package lab

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/join"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/repair"
	"k8slab/lab/symptom"
)

// sick makes the node's kubelet fail until that rung is taken.
func (w *world) sick(node, rung string) {
	w.t.Helper()
	w.change(func() {
		b := w.box(node)
		b.ill = rung
		b.illness = join.Check{ID: join.CheckCluster, Result: join.Blocked, Symptom: symptom.SandboxImageMisconfigured, Evidence: "no sandbox starts"}
	})
}

// rungsTaken are the rungs that were taken on the node, by what they change.
func (w *world) rungsTaken(node string) (all []string) {
	marks := map[string]string{
		node + ": systemctl restart containerd": "services", "libvirt: power off " + node: "restart",
		node + ": /usr/bin/labnode reset --member-removed": "rejoin", "libvirt: delete " + node: "recreate",
	}
	for _, call := range w.lab.Changes() {
		if rung := marks[call]; rung != "" {
			all = append(all, rung)
		}
	}
	return all
}

var ladder = []struct {
	name  string
	limit repair.Rung
	would string
	did   string
}{
	{"services", repair.Restart, "restart containerd and kubelet", "restarted containerd and kubelet"},
	{"restart", repair.Restart, "restart its machine", "restarted its machine"},
	{"rejoin", repair.Rejoin, "reset it and join it again", "reset it and joined it again"},
	{"recreate", repair.Recreate, "delete its machine with the disk and join a new one", "deleted its machine with the disk and joined a new one"},
}

// A node that still fails is climbed rung by rung, as the dry run said, and no further than where it is healed.
func TestLadderOfANode(t *testing.T) {
	for at, rung := range ladder {
		for _, node := range []string{"w1", "cp1"} {
			shape := labtest.Small
			if node == "cp1" {
				if at < 3 { // its machine is a machine as any other
					continue
				}
				shape = labtest.Three
			}
			inWorld(t, shape, nil, func(t *testing.T, w *world) {
				w.up()
				w.clean()
				w.sick(node, rung.name)
				foreseen, err := w.lab.Repair(t.Context(), true, rung.limit)
				if err != nil || len(foreseen) != 1 || foreseen[0].Node != node || foreseen[0].Left != "" || len(w.rungsTaken(node)) > 0 {
					t.Errorf("%s of %s: a dry run: %+v, %v, changed %q", rung.name, node, foreseen, err, w.lab.Changes())
				}
				var wants, names, dids []string
				for _, r := range ladder[:at+1] {
					wants, names, dids = append(wants, r.would), append(names, r.name), append(dids, r.did)
				}
				if would := strings.Split(foreseen[0].Would, "; if it still fails, "); !slices.Equal(would[:at+1], wants) {
					t.Errorf("%s of %s: it would %q", rung.name, node, would)
				}
				found, err := w.lab.Repair(t.Context(), false, rung.limit)
				if err != nil || len(found) != 1 || found[0].Symptom != foreseen[0].Symptom || found[0].Did != strings.Join(dids, ", then ") {
					t.Errorf("%s of %s: %+v, %v", rung.name, node, found, err)
				}
				if taken := w.rungsTaken(node); !slices.Equal(taken, names) {
					t.Errorf("%s of %s: took %q, changed %q", rung.name, node, taken, w.lab.Changes())
				}
				w.wantHealthy()
			})
		}
	}
}

// A rung that is not allowed is named, for the node, with the command that allows it; what was done in vain is no repair.
func TestLadderEndsWhereItMay(t *testing.T) {
	for _, tt := range []struct {
		heals string
		upTo  repair.Rung
		next  string
		took  []string
	}{
		{"rejoin", repair.Restart, "or `labctl repair --up-to rejoin`, for w1: reset it and join it again", []string{"services", "restart"}},
		{"recreate", repair.Rejoin, "or `labctl repair --up-to recreate`, for w1: delete its machine with the disk", []string{"services", "restart", "rejoin"}},
	} {
		inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
			w.up()
			w.clean()
			w.sick("w1", tt.heals)
			found, err := w.lab.Repair(t.Context(), false, tt.upTo)
			if err != nil || len(found) != 1 || found[0].Did != "" || !strings.Contains(found[0].Left, tt.next) || !strings.Contains(found[0].Evidence, "restarted its machine") ||
				!strings.Contains(found[0].Evidence, "it still fails") {
				t.Errorf("%+v, %v", found, err)
			}
			if taken := w.rungsTaken("w1"); !slices.Equal(taken, tt.took) {
				t.Errorf("took %q", taken)
			}
		})
	}
}

// No rung costs the quorum, or the only control plane; it says so, in a dry run too.
func TestLadderKeepsTheQuorum(t *testing.T) {
	for _, dryRun := range []bool{true, false} {
		inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
			w.up()
			w.clean()
			w.change(func() { w.box("cp3").state = machine.Off })
			w.sick("cp2", "recreate")
			found, err := w.lab.Repair(t.Context(), dryRun, repair.Recreate)
			left := find(found, "cp2")
			if !dryRun && (err != nil || !strings.Contains(left.Left, "not now: etcd would have no quorum")) {
				t.Errorf("%+v, %v", found, err)
			}
			if dryRun && left.Would != "restart containerd and kubelet" {
				t.Errorf("a dry run: %+v, %v", found, err)
			}
			if taken := w.rungsTaken("cp2"); slices.ContainsFunc(taken, func(r string) bool { return r != "services" }) || len(w.members) != 3 {
				t.Errorf("took %q, members %+v", taken, w.members)
			}
			if off := find(found, "cp3"); off.Left == "" || len(w.rungsTaken("cp3")) > 0 {
				t.Errorf("a machine that is off: %+v, took %q", off, w.rungsTaken("cp3"))
			}
		})
	}
	inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		w.sick("cp1", "recreate")
		found, err := w.lab.Repair(t.Context(), false, repair.Recreate)
		if left := find(found, "cp1"); err != nil || !strings.Contains(left.Left, "not now: no other control plane") {
			t.Errorf("%+v, %v", found, err)
		}
		if taken := w.rungsTaken("cp1"); !slices.Equal(taken, []string{"services", "restart"}) {
			t.Errorf("took %q", taken)
		}
	})
}

func find(found []repair.Repaired, node string) repair.Repaired {
	for _, f := range found {
		if f.Node == node {
			return f
		}
	}
	return repair.Repaired{}
}

// Two control planes that fail are taken one after another, each only while the other can be missed.
func TestLadderTakesOneControlPlaneAtATime(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		w.sick("cp2", "rejoin")
		w.sick("cp3", "rejoin")
		found, err := w.lab.Repair(t.Context(), false, repair.Rejoin)
		if err != nil || find(found, "cp2").Did == "" || find(found, "cp3").Did == "" {
			t.Errorf("%+v, %v", found, err)
		}
		if len(w.members) != 3 {
			t.Errorf("members %+v", w.members)
		}
		w.wantHealthy()
	})
}

// A machine that runs and does not answer is restarted.
func TestLadderOfASilentMachine(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		w.change(func() { w.box("w1").silent, w.box("w1").ill = true, "restart" })
		w.fails = func(call string) error {
			if call == "libvirt: start w1" {
				w.box("w1").silent = false
			}
			return nil
		}
		found, err := w.lab.Repair(t.Context(), false, repair.Restart)
		if err != nil || find(found, "w1").Did != "restarted its machine" {
			t.Errorf("%+v, %v", found, err)
		}
		w.wantHealthy()
	})
}

// Killed before any change of a rung, `up` and a repair bring the lab back.
func TestLadderKilledAtEveryChange(t *testing.T) {
	for node, heals := range map[string]string{"w1": "recreate", "cp2": "rejoin"} {
		changes := 0
		inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
			w.up()
			w.clean()
			w.sick(node, heals)
			_, err := w.lab.Repair(w.ctx, false, repair.Recreate)
			if changes = w.changes; err != nil || changes < 20 {
				t.Errorf("%d changes, %v", changes, err)
			}
		})
		for at := 1; at <= changes; at += 29 * pace { // not each: all take minutes, and their kinds repeat
			inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
				w.up()
				w.clean()
				w.sick(node, heals)
				w.killAt(at)
				_, _ = w.lab.Repair(w.ctx, false, repair.Recreate)
				last := w.calls[len(w.calls)-1]
				w.reborn()
				if w.box(node).state != machine.Running || !w.box(node).facts.Joined {
					w.up()
				}
				_, err := w.lab.Repair(t.Context(), false, repair.Recreate)
				w.expire = true
				if err != nil {
					t.Errorf("%s, killed before change %d (%s): %v", node, at, last, err)
				}
				w.up()
				w.wantHealthy()
			})
		}
	}
}

// A rung that fails is told with why, and the next one is tried.
func TestLadderGoesOnAfterARungThatFailed(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		w.sick("w1", "recreate")
		w.fails = func(call string) error {
			if call == "w1: systemctl restart containerd" {
				return errors.New("the unit is broken")
			}
			return nil
		}
		found, err := w.lab.Repair(t.Context(), false, repair.Recreate)
		if f := find(found, "w1"); err != nil || !strings.HasPrefix(f.Did, "restarted its machine, then ") || !strings.Contains(f.Evidence, "services failed: ") || !strings.Contains(f.Evidence, "the unit is broken") {
			t.Errorf("%s, %v", fmt.Sprint(found), err)
		}
		w.wantHealthy()
	})
}
