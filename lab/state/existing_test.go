package state

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
)

// attachedFrom describes a cluster that labctl did not make.
const attachedFrom = `machines: ssh
ssh: {user: ops, sudo: true}
kubernetes: {version: v1.35.4}
nodes:
  - {name: cp1, role: control-plane, ip: 192.168.4.61}
  - {name: w1, role: worker, ip: 192.168.4.71}
  - {name: w2, role: worker, ip: 192.168.4.72}
`

// attachedLab is such a cluster, written down in the state.
func attachedLab(t *testing.T) Lab {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(path, []byte(attachedFrom), 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLab(t, path)
	if l.URI != "ssh" {
		t.Errorf("URI %s before anything was written", l.URI)
	}
	if _, err := l.ID(); err != nil {
		t.Fatal(err)
	}
	if err := l.Settle(); err != nil {
		t.Fatal(err)
	}
	return l
}

// Of a cluster that labctl did not make the file says all: nodes and addresses change with it.
func TestTheFileDescribesWhatExists(t *testing.T) {
	l := attachedLab(t)
	made, err := l.Made()
	if err != nil || !reflect.DeepEqual(made, l.Described) {
		t.Errorf("written down %+v, want %+v, %v", made, l.Described, err)
	}
	now := edited(t, l, func(c *config.Cluster) {
		c.Kubernetes.Version, c.Network.VirtualIP = "v1.36.3", netip.MustParseAddr("192.168.4.60")
		c.Nodes[0].IP = netip.MustParseAddr("192.168.4.71") // which was w1's
		c.Nodes = slices.Delete(c.Nodes, 1, 2)
	})
	if len(now.Differences) > 0 || now.URI != "ssh" || !reflect.DeepEqual(now.Cluster, now.Described) {
		t.Errorf("got %s, %v, %+v", now.URI, now.Differences, now.Cluster)
	}
	if err := now.Settle(); err != nil {
		t.Fatal(err)
	}
	if made, err := now.Made(); err != nil || !reflect.DeepEqual(made, now.Described) {
		t.Errorf("written down %+v, want %+v, %v", made, now.Described, err)
	}
}

// A name cannot stand for machines that labctl made and later for others: `down` would not know which it may remove.
func TestAnotherSourceOfMachines(t *testing.T) {
	for _, tt := range []struct {
		name, key string
		lab       func(*testing.T) Lab
		file      string
	}{
		{"made, then over SSH", "machines: made with libvirt, now ssh", madeLab, attachedFrom},
		{"over SSH, then made", "machines: made with ssh, now libvirt", attachedLab, madeFrom},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := tt.lab(t)
			c, _, err := config.Parse("f", []byte(tt.file))
			if err != nil {
				t.Fatal(err)
			}
			now := read(t, c)
			if d := now.Differences; len(d) != 1 || d[0].String() != tt.key+"; to apply it: another name in the file, because it describes another cluster" {
				t.Errorf("got %v", d)
			}
			if made, err := l.Made(); err != nil || now.URI != l.URI || !reflect.DeepEqual(now.Cluster, made) {
				t.Errorf("the lab is no longer as it was made: %s, %+v", now.URI, now.Cluster.Nodes)
			}
			before, err := os.ReadFile(l.Path(MadeFile))
			if err != nil {
				t.Fatal(err)
			}
			if err := now.Settle(); err == nil || !strings.Contains(err.Error(), tt.key) {
				t.Errorf("written down as another: %v", err)
			}
			if after, err := os.ReadFile(l.Path(MadeFile)); err != nil || string(after) != string(before) {
				t.Errorf("%v\n%s", err, after)
			}
		})
	}
}
