package state

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/host"
)

// TestMain is also the other process of the lock's tests: it takes the lock, says so and waits for its end.
func TestMain(m *testing.M) {
	if name := os.Getenv("K8SLAB_TEST_LOCK"); name != "" {
		if _, err := Lock(name, "labctl up"); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("locked")
		_, _ = os.Stdin.Read(make([]byte, 1))
		return
	}
	os.Exit(m.Run())
}

// The clusters of the tests.
const (
	small   = "../../config/testdata/small.yaml"
	onboard = "../../config/testdata/onboard.yaml"
)

// ownState gives the test a state directory of its own. Package labtest imports this one, so that its helpers are not for these tests.
func ownState(t *testing.T) {
	t.Helper()
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"} {
		t.Setenv(name, t.TempDir())
	}
}

// newLab is a lab of which nothing was made, of containers where its cluster.yaml leaves that open.
func newLab(t *testing.T, path string) Lab {
	t.Helper()
	ownState(t)
	c, _, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	l := read(t, c)
	if c.Libvirt.URI == "auto" {
		l.URI = host.Containers
	}
	return l
}

// read reads the lab that the cluster describes, as another process would.
func read(t *testing.T, described *config.Cluster) Lab {
	t.Helper()
	l, err := Read(described)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func nodeOf(t *testing.T, l Lab, name string) config.Node {
	t.Helper()
	n, ok := l.Cluster.Node(name)
	if !ok {
		t.Fatalf("no node %s", name)
	}
	return n
}

func memberNames(c *config.Cluster) string {
	var names []string
	for _, n := range c.Members() {
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}
