package metrics

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"k8slab/lab/golden"
)

func TestSet(t *testing.T) {
	s := &Set{}
	s.Gauge("k8slab_a", "What it \\ is.\nSecond line.", 0.5, "node", "cp1", "text", "a \"quoted\" \\ and\nbroken \xff line")
	s.Counter("k8slab_b_total", "Things.", 1e6)
	s.Gauge("k8slab_a", "", 3, "node", "cp2")
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "set.prom", b.String())
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(&b)
	if err != nil || len(families) != 2 || len(families["k8slab_a"].Metric) != 2 {
		t.Fatalf("%v, %v", families, err)
	}
	if got := label(families["k8slab_a"].Metric[0], "text"); got != "a \"quoted\" \\ and\nbroken ? line" {
		t.Errorf("the label came back as %q", got)
	}
}

func attempt(cause string, s int64) Attempt {
	return Attempt{Joined: cause == "", Cause: cause, Took: 1500 * time.Millisecond, Ended: time.Unix(s, 0)}
}

func TestAttemptsAreCounted(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077)) // as the join's unit has it
	dir := filepath.Join(t.TempDir(), "textfile")
	for _, a := range []Attempt{
		attempt("tls-bootstrap-timeout", 1000), attempt("tls-bootstrap-timeout", 1010), attempt("", 1020), attempt("swap-enabled", 2000), {Took: time.Minute, Ended: time.Unix(2100, 0)},
	} {
		if err := CountAttempt(dir, a); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, joinFile))
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, joinFile, string(data))
	for path, want := range map[string]os.FileMode{dir: 0o755, filepath.Join(dir, joinFile): 0o644} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left in the directory: %v", entries)
	}
}

func TestAnUnreadableFileIsBegunAnew(t *testing.T) {
	const counter = "# TYPE k8slab_join_attempts_total counter\nk8slab_join_attempts_total{result=\"joined\",cause=\"\"} "
	for name, old := range map[string]string{
		"torn": counter + "4", "no metrics": "{\"a\": 1}\n", "negative": counter + "-1\n", "half": counter + "0.5\n", "endless": counter + "+Inf\n", "no number": counter + "NaN\n",
		"another type": strings.ReplaceAll(counter, " counter", " gauge") + "1\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, joinFile)
			if err := os.WriteFile(path, []byte(old), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := CountAttempt(dir, attempt("", 5)); err == nil || !strings.Contains(err.Error(), "starts at zero again: "+path) {
				t.Errorf("the error is %v", err)
			}
			if j, err := readJoins(path); err != nil || j.attempts[ending{result: joined}] != 1 || j.last[joined] != 5 {
				t.Errorf("%+v, %v", j, err)
			}
			if err := CountAttempt(dir, attempt("", 6)); err != nil {
				t.Errorf("the next attempt: %v", err)
			}
		})
	}
}

func TestWhatCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CountAttempt(dir, attempt("", 5)); err == nil {
		t.Error("no error")
	}
}
