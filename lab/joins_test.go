package lab

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/addon"
	"k8slab/lab/bringup"
	"k8slab/lab/join"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/session"
	"k8slab/lab/state"
	"k8slab/lab/symptom"
)

// failed is how an attempt to join ends.
func failed(id symptom.ID) join.Outcome {
	return join.Outcome{Symptom: id, Evidence: "what kubeadm said", Phase: "kubeadm", ExitCode: 1, Hint: "what to do"}
}

// A join that fails once for a cause that can be removed is made again, with what it needs, and leaves nothing.
func TestJoinsThatFailOnce(t *testing.T) {
	tests := []struct {
		node    string
		symptom symptom.ID
		uploads int // of certificates; init's own are the first
	}{
		{"cp2", symptom.CertificateKeyExpired, 1},
		{"cp2", symptom.TokenExpiredOrInvalid, 0},
		{"cp2", symptom.EtcdLearnerNotInSync, 0},
		{"cp3", symptom.EtcdTooManyLearners, 0},
		{"w1", symptom.TokenExpiredOrInvalid, 0},
		{"w1", symptom.KubeletNotRunning, 0},
		{"w1", "", 0}, // a cause that nobody knows
	}
	for _, tt := range tests {
		inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
			w.box(tt.node).failures = []join.Outcome{failed(tt.symptom)}
			w.up()
			if n := w.count(tt.node + ": /usr/bin/labnode join"); n != 2 {
				t.Errorf("%s, %s: %d attempts", tt.node, tt.symptom, n)
			}
			if n := w.count("cp1: kubeadm init phase upload-certs"); n != tt.uploads {
				t.Errorf("%s, %s: %d uploads", tt.node, tt.symptom, n)
			}
			w.wantOrder(tt.node+": /usr/bin/labnode join", tt.node+": /usr/bin/labnode reset", tt.node+": /usr/bin/labnode join")
			w.wantHealthy()
		})
	}
}

// A cause that needs a person ends the join at once; what is reported is the first cause, and what a later attempt met is not.
func TestJoinsThatEnd(t *testing.T) {
	tests := []struct {
		name     string
		failures []join.Outcome
		attempts int
		want     string
	}{
		{"a person is needed", []join.Outcome{failed(symptom.DiskFull)}, 1, string(symptom.DiskFull)},
		{"the first cause is told", []join.Outcome{failed(symptom.KubeletNotRunning), failed(symptom.LeftoverState)}, 2, string(symptom.KubeletNotRunning)},
	}
	for _, tt := range tests {
		inWorld(t, labtest.Three, func(c *config.Cluster) { c.Tuning.WorkerJoinRetryAttempts = 2 }, func(t *testing.T, w *world) {
			w.box("w1").failures = tt.failures
			err := w.lab.Up(t.Context(), bringup.StageProof)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "next: what to do") {
				t.Errorf("%s: %v", tt.name, err)
			}
			if n := w.count("w1: /usr/bin/labnode join"); n != tt.attempts {
				t.Errorf("%s: %d attempts", tt.name, n)
			}
			if left := slices.DeleteFunc(w.tokens(), func(text string) bool { return !strings.Contains(text, "join of") }); len(left) > 0 {
				t.Errorf("%s: tokens %q", tt.name, left)
			}
			w.reborn()
			w.expire = true // init's certificates are left to their expiry by an up that failed, too
			w.up()
			w.wantHealthy()
		})
	}
}

// A member that is healthy is left as it is, and one that is not is told of, not joined again.
func TestJoinOfAMember(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		if err := w.lab.Join(t.Context(), "cp2"); err != nil || len(w.lab.Changes()) > 0 {
			t.Errorf("%v, changed %q", err, w.lab.Changes())
		}
		w.change(func() { w.box("cp2").crashing = "kube-scheduler" })
		err := w.lab.Join(t.Context(), "cp2")
		if err == nil || !strings.Contains(err.Error(), "cp2: it is a member that is not healthy: scheduler") || !strings.Contains(err.Error(), "labctl rejoin cp2") || len(w.lab.Changes()) > 0 {
			t.Errorf("%v, changed %q", err, w.lab.Changes())
		}
	})
}

// A machine of vagrant's stays, with its node in the cluster.
func TestRemoveOfAnothersMachine(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		w.change(func() { w.box("w1").maker = machine.Vagrant })
		if err := w.lab.Remove(t.Context(), "w1"); err == nil || !strings.Contains(err.Error(), "vagrant destroy w1") || len(w.lab.Changes()) > 0 {
			t.Errorf("%v, changed %q", err, w.lab.Changes())
		}
	})
}

// A Node whose machine was lost while a control plane restored from a snapshot speaks for the cluster is none of the old cluster's.
func TestStaleControlPlanesJoinTheRestoredCluster(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		s := labtest.Of(w.lab.found)
		if err := s.Restored(labtest.Node(t, w.lab.found, "cp2")); err != nil {
			t.Fatal(err)
		}
		w.change(func() { w.members = slices.DeleteFunc(w.members, func(m *member) bool { return m.node != "cp2" }) })
		w.clean()
		w.up()
		w.wantOrder("cp1: /usr/bin/labnode reset", "cp1: /usr/bin/labnode join")
		w.wantOrder("cp3: /usr/bin/labnode reset", "cp3: /usr/bin/labnode join")
		if n := w.count("cp2: /usr/bin/labnode reset"); n > 0 || len(w.members) != 3 {
			t.Errorf("members %+v, changed %q", w.members, w.lab.Changes())
		}
		if s.IsRestored(labtest.Node(t, w.lab.found, "cp2")) {
			t.Error("the restore is not forgotten")
		}
		w.wantHealthy()
	})
}

// Add-ons are done in the plan when their pods are ready and, of Flux, when it has applied what the Git repository has.
func TestPlanWithAddons(t *testing.T) {
	inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
		w.up()
		w.lab.described.Addons = []string{"flux"}
		w.reborn()
		addons, err := addon.Resolve([]string{"flux"})
		if err != nil {
			t.Fatal(err)
		}
		done := func() bool {
			t.Helper()
			steps, err := w.lab.Plan(t.Context())
			if err != nil {
				t.Error(err)
			}
			i := slices.IndexFunc(steps, func(s bringup.Step) bool { return s.Stage == bringup.StageAddons })
			return steps[i].Done
		}
		if done() {
			t.Error("without its pods they are done")
		}
		ready := func(status string) object {
			return object{"metadata": object{"name": "lab", "generation": 1}, "apiVersion": "v1", "kind": "Kustomization",
				"status": object{"observedGeneration": 1, "conditions": []object{{"type": "Ready", "status": status, "reason": "Why", "message": "why"}}}}
		}
		w.change(func() {
			for _, a := range addons {
				for _, l := range a.Workloads {
					w.objects["/apis/apps/v1/namespaces/"+l.Namespace+"/deployments/"+l.Name] = object{"apiVersion": "apps/v1", "kind": "Deployment",
						"metadata": object{"name": l.Name}, "spec": object{"replicas": 1}, "status": object{"readyReplicas": 1, "updatedReplicas": 1}}
				}
			}
			w.objects["/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories/lab"] = ready("True")
			w.objects["/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/lab"] = ready("False")
		})
		if done() {
			t.Error("with objects that Flux has not applied they are done")
		}
		w.change(func() {
			w.objects["/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/lab"] = ready("True")
		})
		if !done() {
			t.Error("with all of it they are not done")
		}
	})
}

// The way to the Git repository is open until the lab is closed, and is none without its Service.
func TestGitOpsInMemory(t *testing.T) {
	inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
		w.up()
		if err := w.lab.found.Write("git/password", []byte("secret")); err != nil {
			t.Fatal(err)
		}
		if _, err := w.lab.GitOps(t.Context()); err == nil || !strings.Contains(err.Error(), "labctl addons install git") {
			t.Errorf("without its Service: %v", err)
		}
		w.change(func() {
			w.objects["/api/v1/namespaces/gitops/services/git"] = object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "git"}, "spec": object{"clusterIP": "10.96.0.7"}}
		})
		g, err := w.lab.GitOps(t.Context())
		if err != nil || g.URL != addon.GitURL || g.Branch != "main" || g.PasswordFile != w.lab.found.Path("git", "password") {
			t.Fatalf("%+v, %v", g, err)
		}
		conn, err := g.Dial(t.Context(), "tcp", "git.gitops.svc.cluster.local:8080") // the world's probes listen everywhere
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	})
}

// Who makes faults has the faults of the lab alone, beside a labctl that has the lab.
func TestLockFaultsOfTheLab(t *testing.T) {
	l := newLab(t, labtest.Small)
	release, err := l.LockFaults("labctl fault run")
	if err != nil {
		t.Fatal(err)
	}
	var locked *state.LockedError
	if _, err := l.LockFaults("labctl fault soak"); !errors.As(err, &locked) || locked.Lab != "small" || !strings.Contains(err.Error(), "labctl fault run") {
		t.Errorf("twice: %v", err)
	}
	free, err := state.Lock(l.Name(), "labctl join")
	if err != nil {
		t.Errorf("the lab itself: %v", err)
	} else {
		free()
	}
	release()
	if release, err = l.LockFaults("labctl fault soak"); err != nil {
		t.Error(err)
	} else {
		release()
	}
	if l.TimeScale() != session.TimeScale(l.found.URI) || l.Events() == nil {
		t.Error("no time scale or events")
	}
}

// A token's description is what tells whose it is: those of others stay.
func TestOthersTokensStay(t *testing.T) {
	inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
		w.up()
		w.change(func() { w.addToken("others", "made by an administrator") })
		w.clean()
		if err := w.lab.Rejoin(t.Context(), "w1"); err != nil {
			t.Error(err)
		}
		if left := w.tokens(); !slices.Equal(left, []string{"made by an administrator"}) {
			t.Errorf("tokens %q", left)
		}
	})
}
