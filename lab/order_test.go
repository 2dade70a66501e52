package lab

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8slab/config"
	"k8slab/lab/bringup"
	"k8slab/lab/host"
	"k8slab/lab/join"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/repair"
	"k8slab/lab/symptom"
)

func staggered(c *config.Cluster) { c.Tuning.Stagger = config.StaggerMachine }

// count is how often this labctl made a change.
func (w *world) count(change string) (n int) {
	for _, c := range w.lab.Changes() {
		if strings.HasPrefix(c, change) {
			n++
		}
	}
	return n
}

// wantOrder wants this labctl to have made the changes one after another.
func (w *world) wantOrder(changes ...string) {
	w.t.Helper()
	rest := w.lab.Changes()
	for _, change := range changes {
		at := slices.IndexFunc(rest, func(c string) bool { return strings.HasPrefix(c, change) })
		if at < 0 {
			w.t.Errorf("no %q after the ones before it; changes:\n%s", change, strings.Join(w.lab.Changes(), "\n"))
			return
		}
		rest = rest[at+1:]
	}
}

// With tuning.stagger a control plane's machine is made when the one before is a member; workers do not wait.
func TestStaggeredControlPlanes(t *testing.T) {
	inWorld(t, labtest.Three, staggered, func(t *testing.T, w *world) {
		w.up()
		w.wantHealthy()
		w.wantOrder("libvirt: start cp1", "cp1: systemd-run", "libvirt: start cp2", "cp2: /usr/bin/labnode join", "libvirt: start cp3", "cp3: /usr/bin/labnode join")
		w.wantOrder("libvirt: start w1", "cp1: systemd-run")
		if got := len(w.members); got != 3 {
			t.Errorf("etcd has %d members", got)
		}
	})
}

// The learner of a machine that was lost goes before its machine is made again: etcd would never be healthy with it.
func TestStaggeredMachineOfALearner(t *testing.T) {
	inWorld(t, labtest.Three, staggered, func(t *testing.T, w *world) {
		w.up()
		w.lose("cp3")
		w.change(func() { w.box("cp3").state, w.memberOf("cp3").learner = machine.Absent, true })
		w.clean()
		w.up()
		w.wantHealthy()
		w.wantOrder("etcd remove member", "libvirt: start cp3", "cp3: /usr/bin/labnode join")
	})
}

// A control plane that fails to join keeps the next one's machine from being made.
func TestStaggeredMachineWaitsForRepair(t *testing.T) {
	inWorld(t, labtest.Three, func(c *config.Cluster) { staggered(c); c.Tuning.CPJoinRetryAttempts = 1 }, func(t *testing.T, w *world) {
		w.box("cp2").outage = &join.Outcome{Symptom: symptom.KubeletConfigMissing, Evidence: "no kubelet", Phase: "kubelet-start"}
		err := w.lab.Up(t.Context(), bringup.StageProof)
		if err == nil || !strings.Contains(err.Error(), "no kubelet") || w.box("cp3").state != machine.Absent {
			t.Errorf("%v, cp3 is %s", err, w.box("cp3").state)
		}
	})
}

func TestStaggeredUpKilled(t *testing.T) {
	changes := 0
	inWorld(t, labtest.Three, staggered, func(t *testing.T, w *world) {
		w.up()
		changes = w.changes
	})
	for at := 2; at <= changes; at += 12 * pace { // TestUpKilledAtEveryChange has the others
		inWorld(t, labtest.Three, staggered, func(t *testing.T, w *world) {
			w.dieAt = at
			_ = w.lab.Up(t.Context(), bringup.StageProof)
			last := w.calls[len(w.calls)-1]
			w.reborn()
			if err := w.lab.Up(t.Context(), bringup.StageProof); err != nil {
				t.Errorf("killed before change %d (%s): %v", at, last, err)
				return
			}
			w.wantHealthy()
		})
	}
}

// leave has the join of a killed labctl be at work on the node.
func (w *world) leave(name string, end func(*box) join.Outcome) {
	w.lose(name)
	w.change(func() {
		b := w.box(name)
		w.members = slices.DeleteFunc(w.members, func(m *member) bool { return m.node == name })
		delete(w.objects, "/api/v1/nodes/"+name)
		w.addToken("atwork", "labctl: join of "+name)
		b.facts.JoinUnit, b.facts.Dirty = "activating", true
		b.atWork = func() join.Outcome { return end(b) }
	})
}

// ends is a join that succeeds.
func (w *world) ends(b *box) join.Outcome {
	if w.objects["/api/v1/namespaces/kube-system/secrets/bootstrap-token-atwork"] == nil {
		return join.Outcome{Symptom: joinSymptom("token-expired"), Evidence: "the token is unknown"}
	}
	b.facts.Joined, b.facts.CA = true, "ca"
	if b.node.Role == config.ControlPlane {
		b.voter = true
		w.addMember(b.node.Name, false)
	}
	w.addNode(b)
	return join.Outcome{Joined: true, Finished: true}
}

// A join that a killed labctl left at work is followed to its end; none is started beside it.
func TestJoinAtWorkIsFollowed(t *testing.T) {
	verbs := map[string]func(*testing.T, *world, string) error{
		"up":   func(t *testing.T, w *world, _ string) error { return w.lab.Up(t.Context(), bringup.StageProof) },
		"join": func(t *testing.T, w *world, name string) error { return w.lab.Join(t.Context(), name) },
		"repair": func(t *testing.T, w *world, _ string) error {
			_, err := w.lab.Repair(t.Context(), false, repair.Restart)
			return err
		},
	}
	for verb, do := range verbs {
		for _, name := range []string{"cp2", "w1"} {
			inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
				w.up()
				w.leave(name, w.ends)
				w.clean()
				if err := do(t, w, name); err != nil {
					t.Errorf("%s, %s: %v", verb, name, err)
				}
				if n := w.count(name+": /usr/bin/labnode join") + w.count(name+": /usr/bin/labnode reset"); n > 0 {
					t.Errorf("%s, %s: it was joined or reset beside the join at work: %q", verb, name, w.lab.Changes())
				}
				w.wantHealthy()
			})
		}
	}
}

// What a join at work comes to when it fails is repaired as any other failure is.
func TestJoinAtWorkThatFails(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.leave("cp2", func(*box) join.Outcome {
			return join.Outcome{Symptom: symptom.KubeletConfigMissing, Evidence: "no kubelet", Phase: "kubelet-start", ExitCode: 1}
		})
		w.clean()
		w.up()
		w.wantOrder("cp2: /usr/bin/labnode reset", "cp2: /usr/bin/labnode join")
		w.wantHealthy()
	})
}

// Another verb leaves a join at work its token, and a dry run of a repair says that it is there.
func TestJoinAtWorkKeepsItsToken(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.leave("w2", w.ends)
		w.clean()
		found, err := w.lab.Repair(t.Context(), true, repair.Restart)
		if err != nil || !slices.ContainsFunc(found, func(r repair.Repaired) bool { return r.Node == "w2" && r.Symptom == "kubeadm-running" && r.Left != "" }) {
			t.Errorf("%+v, %v", found, err)
		}
		if err := w.lab.Rejoin(t.Context(), "w1"); err != nil {
			t.Fatal(err)
		}
		if left := w.tokens(); !slices.Equal(left, []string{"labctl: join of w2"}) {
			t.Errorf("tokens %q", left)
		}
		w.up()
		w.wantHealthy()
	})
}

// kubeadm init at work from a killed labctl comes to its end; it is not begun a second time, but after a failure.
func TestInitAtWork(t *testing.T) {
	for _, works := range []bool{true, false} {
		inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
			if err := w.lab.Up(t.Context(), bringup.StageMachines); err != nil {
				t.Fatal(err)
			}
			w.change(func() {
				b := w.box("cp1")
				b.facts.KubeadmUnit, b.facts.Dirty = "active", true
				b.atWork = func() join.Outcome {
					if works {
						b.facts.Dirty = false
						w.kubeadmInit(b)
					}
					return join.Outcome{}
				}
			})
			w.clean()
			w.up()
			w.expire = true // nobody knows the certificates that the killed labctl uploaded
			w.wantHealthy()
			if got := w.count("cp1: systemd-run"); got != map[bool]int{true: 0, false: 1}[works] {
				t.Errorf("works %v: %d more inits", works, got)
			}
		})
	}
}

// kubeadm's own words say why there is no cluster, without its secrets; the next run cleans up and begins again.
func TestInitThatFails(t *testing.T) {
	inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
		w.box("cp1").initFails = "[certs] Generating\nerror execution phase wait-control-plane: no API server\ntoken abcdef.0123456789abcdef\n"
		err := w.lab.Up(t.Context(), bringup.StageProof)
		if err == nil || !strings.Contains(err.Error(), "error execution phase wait-control-plane: no API server") || strings.Contains(err.Error(), "Generating") ||
			strings.Contains(err.Error(), "0123456789abcdef") || !strings.Contains(err.Error(), "next: labctl ssh cp1 cat /var/log/k8slab-kubeadm.log") {
			t.Errorf("got %v", err)
		}
		w.clean()
		w.up()
		w.wantOrder("cp1: /usr/bin/labnode reset", "cp1: systemd-run")
		w.wantHealthy()
	})
}

// claimed has a machine that is none of the lab's have the Node of w1, whose own machine was made anew.
func (w *world) claimed(alive bool) {
	w.lose("w1")
	w.change(func() {
		w.objects["/api/v1/nodes/w1"]["status"].(object)["nodeInfo"] = object{"machineID": "5717a263e5717a263e5717a263e57170"}
		w.alive["w1"] = alive
		w.renew("w1")
	})
	w.clean()
}

// The Node of a machine that lives is not taken from it, however often somebody asks, and what is in the way is told.
func TestNodeNameOfAnotherLiveMachine(t *testing.T) {
	inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
		w.up()
		w.claimed(true)
		for range 2 {
			begin := time.Now()
			err := w.lab.Join(t.Context(), "w1")
			if err == nil || !strings.Contains(err.Error(), "which is alive: it renewed its Lease") || !strings.Contains(err.Error(), "another name for this machine") {
				t.Errorf("got %v", err)
			}
			if took := time.Since(begin); took > 5*time.Minute {
				t.Errorf("it took %s", took)
			}
		}
		if w.objects["/api/v1/nodes/w1"] == nil || w.count("w1: /usr/bin/labnode join") > 0 {
			t.Errorf("its Node was deleted, or kubeadm ran: %q", w.lab.Changes())
		}
	})
}

// A Node whose machine has not renewed the Lease for long is deleted for the one that joins.
func TestNodeNameOfAMachineThatIsGone(t *testing.T) {
	inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
		w.up()
		w.claimed(false)
		time.Sleep(time.Minute)
		if err := w.lab.Join(t.Context(), "w1"); err != nil {
			t.Error(err)
		}
		w.wantHealthy()
	})
}

// A virtual machine that was made anew has another UUID: its earlier self may live for as long as its Lease is fresh, and is waited for.
func TestNodeOfAnEarlierSelf(t *testing.T) {
	inWorld(t, labtest.Small, ofVMs, func(t *testing.T, w *world) {
		if w.lab.found.URI != host.VirtualMachines {
			t.Fatal(w.lab.found.URI)
		}
		w.up()
		w.change(func() { w.renew("w1"); w.box("w1").uuid = "another" })
		w.lose("w1")
		w.clean()
		begin := time.Now()
		if err := w.lab.Join(t.Context(), "w1"); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took < 30*time.Second || took > 5*time.Minute {
			t.Errorf("it took %s, and the Lease of its earlier self holds 40s", took)
		}
		w.wantHealthy()
	})
}

// The member of a machine that was lost goes before its machine is made again: etcd would never be healthy with it.
func TestStaggeredMachineThatWasLost(t *testing.T) {
	inWorld(t, labtest.Three, staggered, func(t *testing.T, w *world) {
		w.up()
		w.lose("cp3")
		w.change(func() { w.box("cp3").state = machine.Absent })
		w.clean()
		w.up()
		w.wantHealthy()
		w.wantOrder("etcd remove member", "libvirt: start cp3", "cp3: /usr/bin/labnode join")
	})
}
