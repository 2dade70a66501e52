package lab

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/bringup"
	"k8slab/lab/labtest"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// madeFrom describes a lab of containers.
const madeFrom = `libvirt: {uri: "lxc:///system"}
nodes:
  - {name: cp1, role: control-plane, ip: 10.30.0.11}
  - {name: w1, role: worker, ip: 10.30.0.21}
  - {name: w2, role: worker, ip: 10.30.0.22, onboard: true}
`

// madeLab is a lab whose machines were made, and the cluster.yaml that it was made from.
func madeLab(t *testing.T) *Lab {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(path, []byte(madeFrom), 0o600); err != nil {
		t.Fatal(err)
	}
	labtest.Own(t)
	c, _, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	l := newOf(t, c)
	if _, err := l.found.ID(); err != nil {
		t.Fatal(err)
	}
	if err := l.found.Settle(l.found.Cluster.Members()...); err != nil {
		t.Fatal(err)
	}
	return l
}

// edited is a lab that exists, with another cluster.yaml.
func edited(t *testing.T, l *Lab, edit func(*config.Cluster)) *Lab {
	t.Helper()
	c := *l.described
	c.Nodes = slices.Clone(c.Nodes)
	edit(&c)
	return newOf(t, &c)
}

// What cannot change in place, and a node that would leave without consent, is refused before anything is touched.
func TestUpRefusesAChange(t *testing.T) {
	for name, edit := range map[string]func(*config.Cluster){
		"version": func(c *config.Cluster) { c.Kubernetes.Version = "v1.36.2" },
		"a disk":  func(c *config.Cluster) { c.Resources.Worker.Disk = 30 },
		"a node":  func(c *config.Cluster) { c.Nodes = slices.Delete(c.Nodes, 1, 2) },
	} {
		now := edited(t, madeLab(t), edit)
		var changed *state.ChangedError
		if err := now.Up(t.Context(), bringup.StageProof); !errors.As(err, &changed) || len(changed.Differences) != 1 || len(now.Changes()) > 0 {
			t.Errorf("%s: %v, changed %q", name, err, now.Changes())
		}
	}
}

// Without its daemon a lab that the computer's libvirtd has is not taken for one that is not there, nor made a second time.
func TestDaemonIsSettled(t *testing.T) {
	l := madeLab(t)
	if _, err := session.Connect(l.found); err == nil || errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "systemctl start") {
		t.Errorf("got %v", err)
	}
	if err := l.Down(t.Context(), false); err == nil || !l.found.Exists() {
		t.Errorf("down: %v; the state is needed to remove the machines", err)
	}
	if err := os.MkdirAll(l.found.Path("libvirt"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Connect(l.found); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("with a daemon of its own that ended: %v", err)
	}
	// Killed in the middle, down goes on: of its daemon the directory is left until nothing else is.
	if err := l.Down(t.Context(), false); err != nil {
		t.Errorf("down: %v", err)
	}
	if _, err := os.Stat(l.found.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left", l.found.Path())
	}
}
