package etcdadmin

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8slab/config"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/session"
)

const running = `/etc/kubernetes/manifests/etcd.yaml spec
/etc/kubernetes/manifests/kube-apiserver.yaml api
/etc/kubernetes/manifests/kube-scheduler.yaml scheduler
`

func TestRestoreOn(t *testing.T) {
	tests := []struct {
		name    string
		content string // "" for the node's own data
		arrange func(f *fakeShell, cancel context.CancelFunc)
		err     string
		want    string // the node afterwards
		kept    string
	}{
		{"a snapshot", "saved", nil, "", running +
			"/var/lib/etcd.before-S/member/snap/db old\n/var/lib/etcd/member/snap/db restored from saved", "/var/lib/etcd.before-S"},
		{"its own data", "", nil, "", running +
			"/var/lib/etcd.before-S/member/snap/db old\n/var/lib/etcd/member/snap/db restored from old", "/var/lib/etcd.before-S"},
		{"a snapshot where the data is lost", "saved", func(f *fakeShell, _ context.CancelFunc) { delete(f.files, session.EtcdData+"/member/snap/db") }, "",
			running + "/var/lib/etcd/member/snap/db restored from saved", ""},
		{"again after an interruption", "saved", func(f *fakeShell, _ context.CancelFunc) {
			f.rename(session.ManifestDir+"/etcd.yaml", ParkDir+"/etcd.yaml")
			f.rename(session.ManifestDir+"/kube-apiserver.yaml", ParkDir+"/kube-apiserver.yaml")
			f.files["/var/lib/etcd.new/member/half"] = "x"
		}, "", running + "/var/lib/etcd.before-S/member/snap/db old\n/var/lib/etcd/member/snap/db restored from saved", "/var/lib/etcd.before-S"},
		// An older manifest that was parked long ago must not come back.
		{"beside a manifest parked before", "saved", func(f *fakeShell, _ context.CancelFunc) { f.files[ParkDir+"/etcd.yaml"] = "ancient" }, "",
			running + "/var/lib/etcd.before-S/member/snap/db old\n/var/lib/etcd/member/snap/db restored from saved", "/var/lib/etcd.before-S"},
		// Whatever fails, the node runs what it ran.
		{"its own data where it is lost", "", func(f *fakeShell, _ context.CancelFunc) { delete(f.files, session.EtcdData+"/member/snap/db") },
			"no such file", strings.TrimSpace(running), ""},
		{"no kubelet", "saved", func(f *fakeShell, _ context.CancelFunc) { f.kubelet = "failed" },
			"kubelet does not start", running + "/var/lib/etcd/member/snap/db old", ""},
		{"no etcd here", "saved", func(f *fakeShell, _ context.CancelFunc) { delete(f.files, session.ManifestDir+"/etcd.yaml") },
			"it has no etcd to restore", strings.TrimPrefix(running, "/etc/kubernetes/manifests/etcd.yaml spec\n") + "/var/lib/etcd/member/snap/db old", ""},
		{"it does not stop", "saved", func(f *fakeShell, _ context.CancelFunc) { f.lingers = 1 << 30 },
			"etcd and the API server to end: 1m0s budget ran out", running + "/var/lib/etcd/member/snap/db old", ""},
		{"etcdutl refuses", "saved", failing("etcdutl snapshot"), "etcdutl snapshot breaks", running + "/var/lib/etcd/member/snap/db old", ""},
		{"the old data cannot be moved", "saved", failing("mv -T /var/lib/etcd "), "breaks", running +
			"/var/lib/etcd.new/member/snap/db restored from saved\n/var/lib/etcd/member/snap/db old", ""},
		{"the new data cannot be moved", "saved", failing("mv -T /var/lib/etcd.new"), "breaks", running +
			"/var/lib/etcd.new/member/snap/db restored from saved\n/var/lib/etcd/member/snap/db old", ""},
		{"Ctrl-C", "saved", func(f *fakeShell, cancel context.CancelFunc) {
			f.fail = func(line string) error {
				if strings.HasPrefix(line, "etcdutl snapshot") {
					cancel()
					return context.Canceled
				}
				return nil
			}
		}, "context canceled", running + "/var/lib/etcd/member/snap/db old", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				f := newShell(t)
				if tt.arrange != nil {
					tt.arrange(f, cancel)
				}
				var content io.Reader
				if tt.content != "" {
					content = strings.NewReader(tt.content)
				}
				replaced := false
				kept, err := restoreOn(ctx, f, restoration{content: content, stamp: "S", pace: time.Second, progress: func(string) {}, replaced: func() error {
					replaced = true
					if f.runs() || !strings.HasPrefix(f.files[session.EtcdData+"/member/snap/db"], "restored") {
						t.Error("it is said to be replaced too early or too late")
					}
					return nil
				}})
				if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				if got := f.state(); got != tt.want || kept != tt.kept {
					t.Errorf("kept %q, the node has\n%s\nwant %q and\n%s", kept, got, tt.kept, tt.want)
				}
				if replaced != (tt.err == "") {
					t.Errorf("replaced: %v", replaced)
				}
			})
		})
	}
}

// failing breaks the first command that begins like this.
func failing(prefix string) func(*fakeShell, context.CancelFunc) {
	return func(f *fakeShell, _ context.CancelFunc) {
		f.fail = func(line string) error {
			if strings.HasPrefix(line, prefix) {
				return errors.New(prefix + " breaks")
			}
			return nil
		}
	}
}

// The lost cluster's members must not take the new one for theirs.
func TestRestoreHasATokenOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShell(t)
		if _, err := restoreOn(t.Context(), f, restoration{stamp: "20260102T030405", pace: time.Second, progress: func(string) {}, replaced: func() error { return nil }}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(f.calls, "\n"), "--initial-cluster-token k8slab-20260102T030405 ") {
			t.Errorf("commands:\n%s", strings.Join(f.calls, "\n"))
		}
	})
}

func TestRefuseRestore(t *testing.T) {
	other := func(name string, state machine.State, answers bool) otherControlPlane {
		return otherControlPlane{config.Node{Name: name}, state, answers}
	}
	tests := []struct {
		name   string
		quorum bool
		others []otherControlPlane
		want   []string // of the refusal; none for none
	}{
		{"alone", false, nil, nil},
		{"the others are gone", false, []otherControlPlane{other("cp2", machine.Absent, false), other("cp3", machine.Off, false)}, nil},
		{"the others answer and have no etcd", false, []otherControlPlane{other("cp2", machine.Running, true), other("cp3", machine.Crashed, false)}, nil},
		{"a quorum", true, []otherControlPlane{other("cp2", machine.Running, true)}, []string{"etcd has a quorum", "--force"}},
		{"one that may come back", false, []otherControlPlane{other("cp2", machine.Paused, false), other("cp3", machine.Off, false)}, []string{"cp2 (paused)", "--force"}},
		{"two that may have a quorum", false, []otherControlPlane{other("cp2", machine.Running, false), other("cp3", machine.Running, false)}, []string{"cp2 (running), cp3 (running)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := refuseRestore(tt.quorum, tt.others)
			if (err == nil) != (len(tt.want) == 0) {
				t.Fatalf("got %v", err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v lacks %q", err, part)
				}
			}
		})
	}
}

func TestRestoredText(t *testing.T) {
	n := config.Node{Name: "cp1"}
	others := []otherControlPlane{{node: config.Node{Name: "cp2"}}, {node: config.Node{Name: "cp3"}}}
	want := "etcd of cp1 is a new cluster of one, from a.db; its earlier data is kept there in /kept\nnext: labctl up resets cp2, cp3 and joins them again"
	if got := restoredText(n, Restore{File: "a.db"}, "/kept", others); got != want {
		t.Errorf("got %q", got)
	}
	if got := restoredText(n, Restore{}, "", nil); got != "etcd of cp1 is a new cluster of one, from its own data" {
		t.Errorf("got %q", got)
	}
}

func TestRestoreOnNoControlPlane(t *testing.T) {
	l := labtest.Closed(t, labtest.Three)
	for _, name := range []string{"w1", "cp9", ""} {
		err := Restore{Node: name}.Check(l)
		if err == nil || !strings.Contains(err.Error(), "is not a control plane of the cluster; cluster.yaml has cp1, cp2, cp3") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
