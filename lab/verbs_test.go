package lab

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/addon"
	"k8slab/lab/bringup"
	"k8slab/lab/etcdadmin"
	"k8slab/lab/host"
	"k8slab/lab/labtest"
	"k8slab/lab/provision"
	"k8slab/lab/state"
)

func TestAddonsOfNoLab(t *testing.T) {
	l := newLab(t, labtest.Onboard) // lists prometheus and local-path
	all, err := l.Addons(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var wanted []string
	for _, s := range all {
		if s.Wanted {
			wanted = append(wanted, s.Name)
		}
		if s.Installed {
			t.Errorf("%s is installed in a lab that is not up", s.Name)
		}
	}
	if len(all) != len(addon.All()) || !slices.Equal(wanted, []string{"local-path", "node-exporter", "prometheus"}) {
		t.Errorf("%d add-ons, of which are wanted %q", len(all), wanted)
	}
	if err := l.InstallAddons(context.Background(), []string{"istio"}); err == nil || !strings.Contains(err.Error(), `"istio"`) {
		t.Errorf("unknown: %v", err)
	}
	if err := l.InstallAddons(context.Background(), []string{"prometheus"}); err != state.ErrNotUp {
		t.Errorf("no lab: %v", err)
	}
}

// A lab that is too large is refused before anything of it is there, and one that exists is not.
func TestTooLargeIsRefusedFirst(t *testing.T) {
	l := newLab(t, labtest.Small)
	l.described.Resources.Worker.Memory = 1 << 20
	err := l.Up(t.Context(), bringup.StageProof)
	if err == nil || !strings.Contains(err.Error(), "reduce resources.worker.memory") {
		t.Errorf("got %v", err)
	}
	if l.found.Exists() {
		t.Error("the lab has a state")
	}
	if _, err := l.found.ID(); err != nil {
		t.Fatal(err)
	}
	if err := provision.CheckSize(l.found); err != nil {
		t.Errorf("a lab that exists: %v", err)
	}
}

// Up refuses before it installs or starts anything.
func TestUpOfStockImageInContainers(t *testing.T) {
	l := newLab(t, labtest.Small)
	l.described.Image.Base, l.described.Libvirt.URI = "/srv/images/debian.qcow2", host.Containers
	if err := l.Up(t.Context(), bringup.StageProof); err == nil || !strings.Contains(err.Error(), "remove image.base") {
		t.Errorf("got %v", err)
	}
	if changes := l.Changes(); len(changes) > 0 {
		t.Errorf("changed %q", changes)
	}
}

func TestSnapshotOfNoName(t *testing.T) {
	l := newLab(t, labtest.Three)
	if err := l.LabSnapshotSave(t.Context(), "no name"); err == nil || !strings.Contains(err.Error(), "a-z, 0-9") {
		t.Errorf("got %v", err)
	}
}

func TestUpAfterAnInterruptedRestore(t *testing.T) {
	l := newLab(t, labtest.Small)
	if err := l.found.Write("restoring", []byte("healthy")); err != nil {
		t.Fatal(err)
	}
	if err := l.Up(t.Context(), bringup.StageProof); err == nil || !strings.Contains(err.Error(), "next: labctl snapshot restore healthy") {
		t.Error(err)
	}
}

func TestRestoreOnNoControlPlane(t *testing.T) {
	l := newLab(t, labtest.Three)
	if _, err := l.found.ID(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"w1", "cp9", ""} {
		err := l.SnapshotRestore(t.Context(), etcdadmin.Restore{Node: name})
		if err == nil || !strings.Contains(err.Error(), "is not a control plane of the cluster; cluster.yaml has cp1, cp2, cp3") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
