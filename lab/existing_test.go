package lab

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"k8slab/config"
	"k8slab/lab/backup"
	"k8slab/lab/cluster"
	"k8slab/lab/event"
	"k8slab/lab/guard"
	"k8slab/lab/health"
	"k8slab/lab/labtest"
	"k8slab/lab/repair"
	"k8slab/lab/session"
)

// home is the cluster of the world as one that labctl did not make.
func (w *world) home(confirm func(context.Context, guard.Change) error, sinks ...event.Sink) *Lab {
	w.t.Helper()
	made, c := w.lab.described, config.Existing()
	c.Name, c.Kubernetes.Version, c.Network, c.Nodes = "home", made.Kubernetes.Version, made.Network, slices.Clone(made.Nodes)
	for i := range c.Nodes {
		c.Nodes[i].Auto = false
	}
	c.Network.CIDR, c.Network.LoadBalancer, c.Network.Auto, c.Network.Uplink = netip.Prefix{}, netip.Prefix{}, false, "" // the machines have a network
	l, err := New(c, Options{Confirm: confirm, Events: event.NewStream(sinks...)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.attach(l)
	w.lab = l
	return l
}

// packed is what a machine's tar writes when there is nothing to save, and the mark after it.
func packed(mark string) string {
	var b bytes.Buffer
	_ = tar.NewWriter(&b).Close()
	return b.String() + mark
}

func backups(t *testing.T, l *Lab) []backup.Backup {
	t.Helper()
	all, err := backup.List(l.Closed().Dir)
	if err != nil {
		t.Error(err)
	}
	return all
}

// A verb that only reads cannot change a cluster that labctl did not make, whatever its code tries.
func TestExistingIsReadOnly(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		l := w.home(func(context.Context, guard.Change) error { t.Error("somebody is asked"); return nil })
		calls := len(w.calls)
		wantRefused := func(what string, err error) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), "this command only reads") {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := askAdmin(t.Context(), l, access{}, func(ctx context.Context, s *session.Session, v *session.Admin) (struct{}, error) {
			w1 := s.Nodes["w1"]
			wantRefused("a command", session.Do(ctx, w1, "systemctl", "stop", "kubelet"))
			wantRefused("a file", w1.Copy(ctx, "/etc/motd", 0o644, strings.NewReader("x")))
			_, err := v.Kube.CreateBootstrapToken(ctx, time.Minute, "x")
			wantRefused("the API", err)
			members, err := v.Etcd.Members(ctx)
			if err == nil {
				wantRefused("etcd", v.Etcd.Remove(ctx, members[0].ID))
			}
			return struct{}{}, err
		})
		if err != nil {
			t.Error(err)
		}
		if st, err := l.Status(t.Context()); err != nil || len(st.Nodes) != 5 {
			t.Errorf("status: %+v, %v", st, err)
		}
		if _, err := l.Diagnose(t.Context(), health.DiagnoseOptions{}); err != nil {
			t.Errorf("diagnose: %v", err)
		}
		if len(l.Changes()) > 0 || len(w.calls) > calls || len(backups(t, l)) > 0 {
			t.Errorf("changes %q, calls %q", l.Changes(), w.calls[calls:])
		}
	})
}

// A change is shown and agreed to before anything else. Then other administrators are kept out, and what is there is saved, before the first
// change is made.
func TestExistingIsChangedAsAgreed(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		no := errors.New("no, thanks")
		for _, declined := range []struct {
			confirm func(context.Context, guard.Change) error
			want    string
		}{
			{nil, "this command only reads"},
			{func(context.Context, guard.Change) error { return no }, no.Error()},
		} {
			l := w.home(declined.confirm)
			if _, err := l.JoinCommand(t.Context(), false); err == nil || !strings.Contains(err.Error(), declined.want) || len(l.Changes()) > 0 {
				t.Errorf("%v, want %q; changes %q", err, declined.want, l.Changes())
			}
			if len(backups(t, l)) > 0 {
				t.Error("a change that was declined makes a backup")
			}
		}
		var l *Lab
		l = w.home(func(_ context.Context, c guard.Change) error {
			if c.Verb != "labctl join-command" || c.Cluster != "home" || len(c.Steps) != 1 || !strings.Contains(c.Steps[0], "kubeadm token create") {
				t.Errorf("it shows %+v", c)
			}
			if len(l.Changes()) > 0 {
				t.Errorf("before anybody agreed: %q", l.Changes())
			}
			return nil
		})
		command, err := l.JoinCommand(t.Context(), false)
		if err != nil || !strings.HasPrefix(command.Command, "kubeadm join ") {
			t.Fatalf("%+v, %v", command, err)
		}
		saved := backups(t, l)
		if len(saved) != 1 || saved[0].Verb != "labctl join-command" || len(saved[0].Saved()) != 5 || saved[0].Etcd == nil {
			t.Errorf("%+v", saved)
		}
		var made []string
		for _, change := range l.Changes() {
			for _, kind := range []string{"leases", "secrets"} {
				if strings.Contains(change, kind) {
					made = append(made, kind)
				}
			}
		}
		if !slices.Equal(made, []string{"leases", "secrets", "leases"}) {
			t.Errorf("changes %q", l.Changes())
		}
		// The verb has ended, and nothing may be changed any more.
		if err := l.mutated("more"); err == nil {
			t.Error("after the verb the next change passes")
		}
	})
}

// While another administrator holds the Lease nothing is changed, and the other one is named.
func TestExistingIsHeldByAnother(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		l := w.home(func(context.Context, guard.Change) error { return nil })
		w.change(func() {
			now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
			w.objects["/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/k8slab"] = object{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
				"metadata": object{"name": "k8slab", "namespace": "kube-system", "uid": "u", "resourceVersion": "1"},
				"spec":     object{"holderIdentity": "ops@desk (labctl rejoin w2)", "leaseDurationSeconds": 60, "acquireTime": now, "renewTime": now}}
		})
		if _, err := l.JoinCommand(t.Context(), false); err == nil || !strings.Contains(err.Error(), "ops@desk (labctl rejoin w2)") {
			t.Errorf("%v", err)
		}
		if len(l.Changes()) > 0 || len(backups(t, l)) > 0 {
			t.Errorf("changes %q", l.Changes())
		}
	})
}

// A cluster that labctl did not make keeps its own configuration of kubeadm, and without it kubeadm is told nothing.
func TestExistingConfiguration(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		l := w.home(nil)
		_, err := askAdmin(t.Context(), l, access{}, func(ctx context.Context, s *session.Session, v *session.Admin) (struct{}, error) {
			n, _ := s.Cluster.Node("cp2")
			text, err := cluster.Configuration(ctx, s, v, n, "", nil)
			if err != nil || !strings.Contains(text, "kind: ClusterConfiguration") || !strings.Contains(text, "kind: KubeletConfiguration") ||
				!strings.Contains(text, "name: cp2") || strings.Contains(text, "criSocket") || strings.Contains(text, "bootstrapTokens") {
				t.Errorf("%v:\n%s", err, text)
			}
			if text, err = cluster.Configuration(ctx, s, v, n, "abcdef.0123456789abcdef", nil); err != nil || !strings.Contains(text, "abcdef.0123456789abcdef") {
				t.Errorf("with a token: %v:\n%s", err, text)
			}
			wrong := func(name string) func(string) bool { return func(is string) bool { return is == name } }
			if text, err = cluster.Configuration(ctx, s, v, n, "", wrong("kubelet-config")); err != nil || strings.Contains(text, "KubeletConfiguration") {
				t.Errorf("without kubelet's: %v:\n%s", err, text)
			}
			_, err = cluster.Configuration(ctx, s, v, n, "", wrong("kubeadm-config"))
			if err == nil || !strings.Contains(err.Error(), "put the ConfigMap kubeadm-config back") {
				t.Errorf("without kubeadm's: %v", err)
			}
			return struct{}{}, nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// words are the details of events.
type words struct{ all []string }

func (w *words) Emit(e event.Event) { w.all = append(w.all, e.Detail) }

// Repairs that put back what labctl made are not for a cluster that it did not make. Seeing what would be repaired changes nothing.
func TestExistingRepairs(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		said := &words{}
		l := w.home(nil, said)
		if _, err := l.Repair(t.Context(), true, repair.Services); err != nil {
			t.Error(err)
		}
		for stage, want := range map[string]bool{"files of the image": false, "container images of add-ons": false, "static pods": true, "etcd members": true} {
			if got := slices.Contains(said.all, stage); got != want {
				t.Errorf("stage %q: %v in %q", stage, got, said.all)
			}
		}
		if len(l.Changes()) > 0 {
			t.Errorf("changes %q", l.Changes())
		}
	})
}
