package lab

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/state"
)

func TestNotUp(t *testing.T) {
	l := newLab(t, labtest.Onboard)
	defer l.Close()
	s, err := l.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Healthy || len(s.Problems) != 1 || s.Problems[0] != state.ErrNotUp.Error() || len(s.Nodes) != 4 {
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
		"kubeconfig": func() error { _, err := l.Closed().Kubeconfig(); return err },
		"kubectl":    func() error { _, err := l.Closed().Kubectl(); return err },
	}
	for name, ask := range asks {
		if err := ask(); !errors.Is(err, state.ErrNotUp) {
			t.Errorf("%s: %v, want state.ErrNotUp", name, err)
		}
	}
	if l.found.Exists() || len(l.Changes()) > 0 {
		t.Errorf("looking left something: %q", l.Changes())
	}
	// Nothing there is nothing to remove.
	if err := l.Down(t.Context(), false); err != nil {
		t.Errorf("down: %v", err)
	}
}

func TestChanges(t *testing.T) {
	l := newLab(t, labtest.Three)
	l.mutated("one")
	got := l.Changes()
	got[0] = "changed"
	l.mutated("two")
	if got := strings.Join(l.Changes(), " "); got != "one two" {
		t.Errorf("got %q", got)
	}
}

// "image" and "logs" are names that a lab may have.
func TestLabsWithUnluckyNames(t *testing.T) {
	newLab(t, labtest.Small)
	path, err := state.RunLog("image", "up")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := state.ImagesInUse(); err != nil {
		t.Errorf("the logs of a lab called image: %q, %v", got, err)
	}
	logs, err := state.Open("logs")
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(path, logs.Path()+"/") {
		t.Errorf("removing a lab called logs, %s, removes every lab's logs, such as %s", logs.Path(), path)
	}
}

func TestRunLog(t *testing.T) {
	newLab(t, labtest.Small)
	first, err := state.RunLog("small", "up")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(first)
	if !regexp.MustCompile(`/\.logs/small/\d{8}T\d{6}-up-\d+\.jsonl$`).MatchString(first) {
		t.Errorf("got %s", first)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 60 {
		name := begin.Add(time.Duration(i)*time.Hour).Format("20060102T150405") + "-up-1.jsonl"
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := state.RunLog("small", "up"); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 49 || filepath.Base(left[0]) != "20010101T110000-up-1.jsonl" {
		t.Errorf("%d logs are left, the oldest %s, %v; want 49 and the new one", len(left), left[0], err)
	}
}
