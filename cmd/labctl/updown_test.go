package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/state"
)

// madeOf writes the state of a lab that was made of the file, with an edit. It returns the state's directory.
func madeOf(t *testing.T, file string, edit func(*config.Cluster)) string {
	t.Helper()
	c, _, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	c.Libvirt.URI = "lxc:///system"
	edit(c)
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	root, err := state.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, c.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"cluster.yaml": string(text), "id": "6f1d0f5c-2f4e-4c53-9a55-0d6f3c1e2b7a"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A refused up leaves a lab alone that it did not make, also with --keep=false.
func TestUpRefusesAnEditedFile(t *testing.T) {
	alone(t)
	dir := madeOf(t, small, func(c *config.Cluster) { c.Resources.Worker.Disk = 30 })
	for _, keep := range []string{"--keep", "--keep=false"} {
		status, stdout, stderr := labctl(t, "-c", small, "up", keep)
		if status != exitFailed || stdout != "" || !strings.Contains(stderr, "\n  resources.worker.disk: made with 30, now 20; a disk keeps its size; to apply it: labctl down, then labctl up\n") {
			t.Errorf("%s: status %d, stdout %q, stderr %q", keep, status, stdout, stderr)
		}
		if strings.Contains(stderr, "left as it is") || strings.Contains(stderr, "was removed") {
			t.Errorf("%s: %s", keep, stderr)
		}
		if _, err := os.Stat(filepath.Join(dir, "cluster.yaml")); err != nil {
			t.Errorf("%s removed the lab: %v", keep, err)
		}
	}
}

// Nodes that the file no longer has are removed by nobody who has not agreed to it.
func TestUpAsksBeforeItRemoves(t *testing.T) {
	alone(t)
	madeOf(t, small, func(c *config.Cluster) {
		c.Nodes = append(c.Nodes, config.Node{Name: "w8", Role: config.Worker, IP: netip.MustParseAddr("10.31.0.28")})
	})
	status, _, stderr := labctl(t, "-c", small, "up")
	if status != exitFailed || !strings.Contains(stderr, "\n  nodes[w8]: made with worker 10.31.0.28, no longer in the file; to apply it: labctl up --prune") {
		t.Errorf("without --prune: status %d, stderr %q", status, stderr)
	}
	status, stdout, _ := labctl(t, "-c", small, "up", "--dry-run")
	if status != 0 || !strings.Contains(stdout, "nodes[w8]: made with worker") || !strings.Contains(stdout, "\nremove") || strings.Contains(stdout, "refuses") {
		t.Errorf("dry run: status %d\n%s", status, stdout)
	}
}

func TestPlanShowsDifferences(t *testing.T) {
	alone(t)
	madeOf(t, small, func(c *config.Cluster) { c.Kubernetes.Version = "v1.36.3" })
	status, stdout, _ := labctl(t, "-c", small, "plan")
	if status != 0 || !strings.Contains(stdout, "kubernetes.version: made with v1.36.3, now v1.37.2") || !strings.Contains(stdout, "image for Kubernetes v1.36.3") || !strings.Contains(stdout, "up refuses until") {
		t.Errorf("status %d\n%s", status, stdout)
	}
	// What the lab was made with describes it without the file.
	status, stdout, stderr := labctl(t, "--lab", "small", "plan")
	if status != 0 || strings.Contains(stdout, "made with") {
		t.Errorf("by name: status %d, stderr %q\n%s", status, stderr, stdout)
	}
	if status, _, stderr := labctl(t, "--lab", "smal", "plan"); status == 0 || !strings.Contains(stderr, `no lab "smal"`) {
		t.Errorf("no such lab: status %d, stderr %q", status, stderr)
	}
	if status, _, _ := labctl(t, "--lab", "small", "-c", small, "plan"); status != exitUsage {
		t.Errorf("both: status %d", status)
	}
}

func TestDownWithoutALab(t *testing.T) {
	alone(t)
	status, stdout, stderr := labctl(t, "-c", small, "down")
	if status != 0 || stdout != "" || !strings.Contains(stderr, "nothing to remove: lab \"small\" does not exist\n") {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}
