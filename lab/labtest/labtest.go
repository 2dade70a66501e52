// Package labtest gives unit tests labs whose state is the test's own. They have no machines; the lab in memory, which has, is in the tests of
// package lab. Only tests import it.
package labtest

import (
	"os"
	"path/filepath"
	"testing"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/host"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// The clusters of the tests, files of config/testdata.
const (
	Three   = "three.yaml"   // three control planes and two workers
	Small   = "small.yaml"   // one control plane
	Onboard = "onboard.yaml" // nodes that are to be onboarded
	// WithOptions has every option of kubeadm and of nodes.
	WithOptions = "options.yaml"
)

// ID is the identity of the tests' sessions.
const ID = "6f1d0f5c-2f4e-4c53-9a55-0d6f3c1e2b7a"

// Own gives the test a state directory and a cache of its own.
func Own(t testing.TB) {
	t.Helper()
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"} {
		t.Setenv(name, t.TempDir())
	}
}

// Cluster is one of config/testdata.
func Cluster(t testing.TB, file string) *config.Cluster {
	t.Helper()
	c, _, err := config.Load(filepath.Join(root(t), "config", "testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// root is the directory of go.mod.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("no go.mod above the working directory")
	return ""
}

// Closed is a lab of which nothing was made, of containers where its cluster.yaml leaves that open.
func Closed(t testing.TB, file string) state.Lab {
	t.Helper()
	Own(t)
	c := Cluster(t, file)
	l, err := state.Read(c)
	if err != nil {
		t.Fatal(err)
	}
	if c.Libvirt.URI == "auto" {
		l.URI = host.Containers
	}
	return l
}

// Session is an opened lab without machines.
func Session(t testing.TB, file string) *session.Session {
	t.Helper()
	return Of(Closed(t, file))
}

// Of is the session of a closed lab, without machines.
func Of(l state.Lab) *session.Session {
	return &session.Session{
		Lab: l, ID: ID, Events: event.NewStream(), Nodes: map[string]session.Node{}, Options: session.Options{Mutated: func(string) error { return nil }},
	}
}

// Node is the lab's node of the name.
func Node(t testing.TB, l state.Lab, name string) config.Node {
	t.Helper()
	n, ok := l.Cluster.Node(name)
	if !ok {
		t.Fatalf("no node %s", name)
	}
	return n
}
