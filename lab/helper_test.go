package lab

import (
	"fmt"
	"os"
	"testing"

	"k8slab/config"
	"k8slab/lab/host"
)

// TestMain is also the other process of the lock's tests: it takes the lock, says so and waits for its end.
func TestMain(m *testing.M) {
	if name := os.Getenv("K8SLAB_TEST_LOCK"); name != "" {
		if _, err := lock(name, "labctl up"); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("locked")
		_, _ = os.Stdin.Read(make([]byte, 1))
		return
	}
	os.Exit(m.Run())
}

const (
	three   = "../config/testdata/three.yaml"
	small   = "../config/testdata/small.yaml"
	onboard = "../config/testdata/onboard.yaml"
)

func cluster(t *testing.T, path string) *config.Cluster {
	t.Helper()
	c, _, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newLab is a lab whose state is the test's own.
func newLab(t *testing.T, path string) *Lab {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	l, err := New(cluster(t, path), Options{})
	if err != nil {
		t.Fatal(err)
	}
	l.id = "6f1d0f5c-2f4e-4c53-9a55-0d6f3c1e2b7a"
	if l.described.Libvirt.URI == "auto" {
		l.uri = host.Containers
	}
	return l
}

func nodeOf(t *testing.T, l *Lab, name string) config.Node {
	t.Helper()
	n, ok := l.cluster.Node(name)
	if !ok {
		t.Fatalf("no node %s", name)
	}
	return n
}
