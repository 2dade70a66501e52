package lab

import (
	"testing"

	"k8slab/config"
	"k8slab/lab/host"
	"k8slab/lab/labtest"
	"k8slab/lab/session"
)

// newLab is a lab whose state is the test's own, of containers where its cluster.yaml leaves that open.
func newLab(t *testing.T, file string) *Lab {
	t.Helper()
	labtest.Own(t)
	c := labtest.Cluster(t, file)
	if c.Libvirt.URI == "auto" {
		c.Libvirt.URI = host.Containers
	}
	return newOf(t, c)
}

func newOf(t *testing.T, c *config.Cluster) *Lab {
	t.Helper()
	l, err := New(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func memberNames(c *config.Cluster) string { return session.NamesOf(c.Members()) }
