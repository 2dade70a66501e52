package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/host"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/machine"
)

func TestOwnsPeer(t *testing.T) {
	l := newLab(t, three)
	n := nodeOf(t, l, "cp1") // 10.30.0.11
	tests := []struct {
		name string
		urls []string
		want bool
	}{
		{"its own", []string{"https://10.30.0.11:2380"}, true},
		{"one of several", []string{"https://10.30.9.9:2380", "https://10.30.0.11:2380"}, true},
		{"another's", []string{"https://10.30.0.12:2380"}, false},
		{"one that begins like it", []string{"https://10.30.0.111:2380", "https://10.30.0.1:2380"}, false},
		{"client port", []string{"https://10.30.0.11:2379"}, false},
		{"none", nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ownsPeer(n, etcd.Member{PeerURLs: tt.urls}); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestIsMember(t *testing.T) {
	l := newLab(t, three)
	reference := join.Facts{Joined: true, CA: "ca", MachineID: "m1"}
	known := []kube.Node{{Name: "cp1", MachineID: "m1"}, {Name: "w1", MachineID: "m4"}}
	tests := []struct {
		name  string
		fact  join.Facts
		nodes []kube.Node
		want  bool
	}{
		{"member", join.Facts{Joined: true, CA: "ca", MachineID: "m4"}, known, true},
		{"new machine", join.Facts{MachineID: "m4"}, known, false},
		{"interrupted join", join.Facts{Dirty: true, CA: "ca", MachineID: "m4"}, known, false},
		{"of another cluster", join.Facts{Joined: true, CA: "other", MachineID: "m4"}, known, false},
		{"the Node is another machine's", join.Facts{Joined: true, CA: "ca", MachineID: "m5"}, known, false},
		{"its Node was deleted", join.Facts{Joined: true, CA: "ca", MachineID: "m4"}, known[:1], false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &forming{lab: l, facts: map[string]join.Facts{"cp1": reference, "w1": tt.fact}}
			if got := c.isMember(nodeOf(t, l, "w1"), tt.nodes); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestJoinedControlPlanes(t *testing.T) {
	l := newLab(t, three)
	c := &forming{lab: l, facts: map[string]join.Facts{"cp3": {Joined: true}, "w1": {Joined: true}, "cp1": {Dirty: true}}}
	if got := c.joinedControlPlanes(); len(got) != 1 || got[0].Name != "cp3" {
		t.Errorf("got %v", got)
	}
	// Asking must not change what the cluster has.
	if got := len(l.cluster.ControlPlanes()); got != 3 {
		t.Errorf("then the cluster has %d control planes", got)
	}
}

func TestTogether(t *testing.T) {
	nodes := newLab(t, three).cluster.Members()
	var running atomic.Int32
	all := make(chan struct{})
	err := together(nodes, func(n config.Node) error {
		if int(running.Add(1)) == len(nodes) {
			close(all)
		}
		select {
		case <-all:
		case <-time.After(5 * time.Second):
			return errors.New("the nodes wait for each other")
		}
		if n.Role == config.ControlPlane {
			return fmt.Errorf("%s broke", n.Name)
		}
		return nil
	})
	if err == nil || err.Error() != "cp1 broke\ncp2 broke\ncp3 broke" {
		t.Errorf("got %v, want every error in the order of cluster.yaml", err)
	}
	if err := together(nodes, func(config.Node) error { return nil }); err != nil {
		t.Errorf("no failure: %v", err)
	}
	if err := together(nil, func(config.Node) error { return errors.New("x") }); err != nil {
		t.Errorf("no nodes: %v", err)
	}
}

func TestManifests(t *testing.T) {
	for _, uri := range []string{host.Containers, host.VirtualMachines} {
		l := newLab(t, onboard)
		l.uri = uri
		t.Run(uri, func(t *testing.T) { testManifests(t, l) })
	}
}

func testManifests(t *testing.T, l *Lab) {
	text, err := l.manifests()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{"Namespace /kube-system": true}
	for _, doc := range bytes.Split(text, []byte("\n---\n")) {
		var o struct {
			APIVersion, Kind string
			Metadata         struct{ Name, Namespace string }
			Data             map[string]string
		}
		if _, err := yaml.YAMLToJSONStrict(doc); err != nil {
			t.Errorf("%v:\n%s", err, doc)
		}
		if err := yaml.Unmarshal(doc, &o); err != nil || o.APIVersion == "" || o.Kind == "" || o.Metadata.Name == "" {
			t.Errorf("%+v, %v:\n%s", o, err, doc)
		}
		id := o.Kind + " " + o.Metadata.Namespace + "/" + o.Metadata.Name
		if seen[id] {
			t.Errorf("%s is there twice", id)
		}
		seen[id] = true
		// A namespace has to be there before what is in it.
		if ns := o.Metadata.Namespace; ns != "" && !seen["Namespace /"+ns] {
			t.Errorf("%s comes before its namespace", id)
		}
		if conf, ok := o.Data["net-conf.json"]; ok {
			var net struct{ Network string }
			if err := yaml.Unmarshal([]byte(conf), &net); err != nil || net.Network != "10.200.0.0/20" {
				t.Errorf("flannel's network %q, %v", net.Network, err)
			}
		}
	}
	for _, id := range []string{"DaemonSet kube-flannel/flannel", "DaemonSet " + probeNamespace + "/probe", "Service " + probeNamespace + "/probe"} {
		if !seen[id] {
			t.Errorf("no %s", id)
		}
	}
	if got := seen["DaemonSet kube-system/kube-proxy"]; got != l.emulated() {
		t.Errorf("kube-proxy's pods ask for processor time: %v", got)
	}
	if !bytes.Contains(text, []byte(`value: "10.32.3.254"`)) || bytes.Contains(text, []byte("{{")) || bytes.Contains(text, []byte("<no value>")) {
		t.Errorf("not filled in:\n%s", text)
	}
}

func TestNotUp(t *testing.T) {
	l := newLab(t, onboard)
	defer l.Close()
	s, err := l.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Healthy || len(s.Problems) != 1 || s.Problems[0] != ErrNotUp.Error() || len(s.Nodes) != 4 {
		t.Errorf("got %+v", s)
	}
	for _, n := range s.Nodes {
		if n.Machine != machine.Absent || n.Etcd != "none" || n.Ready {
			t.Errorf("%+v", n)
		}
		if later := n.Name == "w2" || n.Name == "cp2"; later != (n.Note != "") {
			t.Errorf("%s: note %q", n.Name, n.Note)
		}
	}
	asks := map[string]func() error{
		"node":       func() error { _, err := l.Node("cp1"); return err },
		"host":       func() error { _, err := l.Host(); return err },
		"kubeconfig": func() error { _, err := l.Kubeconfig(); return err },
		"kubectl":    func() error { _, err := l.Kubectl(); return err },
	}
	for name, ask := range asks {
		if err := ask(); !errors.Is(err, ErrNotUp) {
			t.Errorf("%s: %v, want ErrNotUp", name, err)
		}
	}
	if l.state.exists() || len(l.Changes()) > 0 {
		t.Errorf("looking left something: %q", l.Changes())
	}
	// Nothing there is nothing to remove.
	if err := l.Down(t.Context(), false); err != nil {
		t.Errorf("down: %v", err)
	}
}

func TestChanges(t *testing.T) {
	l := newLab(t, three)
	l.mutated("one")
	got := l.Changes()
	got[0] = "changed"
	l.mutated("two")
	if got := strings.Join(l.Changes(), " "); got != "one two" {
		t.Errorf("got %q", got)
	}
}

// Without facts a node that did not answer is left alone, unless machines are made one after another.
func TestSilentNodesAreNotJoined(t *testing.T) {
	c := &forming{facts: map[string]join.Facts{"cp1": {}}}
	if cp1, cp2 := (config.Node{Name: "cp1"}), (config.Node{Name: "cp2"}); c.silent(cp1) || !c.silent(cp2) {
		t.Error("a repair would join a node that it cannot ask")
	}
	c.boot = func(context.Context, config.Node) error { return nil }
	if c.silent(config.Node{Name: "cp2"}) {
		t.Error("a machine that waits for its turn would never be made")
	}
}

// What a join at work has made so far looks like what an earlier life left. Without a view the forming cannot touch etcd.
func TestJoinAtWorkIsNotCleared(t *testing.T) {
	l := newLab(t, three)
	c := &forming{lab: l, facts: map[string]join.Facts{"cp1": {Joined: true}, "cp2": {Dirty: true, JoinUnit: "active"}}}
	j := &joining{forming: c, node: nodeOf(t, l, "cp2"), number: 1, step: l.events.Start("cp2", "join", 0)}
	if _, err := j.clear(t.Context()); err == nil || !strings.Contains(err.Error(), "kubeadm is at work") {
		t.Errorf("got %v", err)
	}
}
