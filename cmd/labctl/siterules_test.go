package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8slab/lab/diagnose"
	"k8slab/lab/diagnose/siterule"
	"k8slab/lab/golden"
)

const nasRule = `causes: [{id: nas-offline, meaning: The NAS does not answer., fix: "Ask the storage team, page 7."}]
phrases:
  - {cause: nas-offline, contains: server nas not responding, level: fail, examples: ["x: server nas not responding"], not: ["x: server nas OK"]}
`

// ruleFile writes a file of the user's own rules.
func ruleFile(t *testing.T, name, text string) string {
	t.Helper()
	dir, err := siterule.Dir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDiagnoseWithOwnRules(t *testing.T) {
	alone(t)
	log := textFile(t, "kernel: nfs: server nas not responding\n")
	if status, stdout, _ := labctl(t, "diagnose", "--from", log); status != 0 || strings.Contains(stdout, "nas-offline") {
		t.Errorf("without rules: %d %s", status, stdout)
	}
	ruleFile(t, "home.yaml", nasRule)
	bad := ruleFile(t, "bad.yaml", "hints: [{cause: disk-full}]\nphrase: []\n")
	status, stdout, stderr := labctl(t, "diagnose", "--from", log, "-o", "json")
	var r diagnose.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || status != exitFailed || r.Findings[0].Symptom != "nas-offline" || r.Findings[0].Rule != "home.yaml:3" {
		t.Errorf("%d %v %s", status, err, stdout)
	}
	for _, want := range []string{"warning: " + bad + ":1: hints[0].text: ", "warning: " + bad + ":2: phrase: unknown key"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("stderr %q lacks %q", stderr, want)
		}
	}
}

func TestTestRules(t *testing.T) {
	alone(t)
	if status, stdout, stderr := labctl(t, "diagnose", "--test-rules"); status != exitUsage || stdout != "" || !strings.Contains(stderr, "rules.d: no file") {
		t.Errorf("no rules: %d %q %q", status, stdout, stderr)
	}
	file := ruleFile(t, "home.yaml", nasRule)
	for _, args := range [][]string{nil, {file}} {
		status, stdout, stderr := labctl(t, append([]string{"diagnose", "--test-rules"}, args...)...)
		if want := "home.yaml:3  nas-offline  1 of 1    1 of 1  ok\n"; status != 0 || !strings.HasSuffix(stdout, want) || stderr != "" {
			t.Errorf("%q: %d %q %q", args, status, stdout, stderr)
		}
	}
	other := ruleFile(t, "other.yaml", strings.NewReplacer("nas-offline", "nas-away", "x: server nas OK", "my server nas not responding").Replace(nasRule))
	status, stdout, _ := labctl(t, "diagnose", "--test-rules")
	if want := "other.yaml:3: must not match, and does: my server nas not responding\n"; status != exitFailed || !strings.HasSuffix(stdout, want) {
		t.Errorf("%d %s", status, stdout)
	}
	status, stdout, _ = labctl(t, "diagnose", "--test-rules", other, "-o", "json")
	schema := golden.ReadSchema(t, "../../docs/schema/test-rules.v1.json")
	schema.CheckType(t, reflect.TypeFor[siterule.Tested]())
	schema.Check(t, json.RawMessage(stdout))
	var tested []siterule.Tested
	if err := json.Unmarshal([]byte(stdout), &tested); err != nil || status != exitFailed || len(tested) != 1 || tested[0].OK || len(tested[0].Matched) != 1 {
		t.Errorf("%d %v %s", status, err, stdout)
	}
	bad := ruleFile(t, "bad.yaml", "hints: [{cause: disk-full}]\n")
	if status, stdout, stderr := labctl(t, "diagnose", "--test-rules"); status != exitUsage || stdout != "" || !strings.Contains(stderr, bad+":1: hints[0].text: ") {
		t.Errorf("%d %q %q", status, stdout, stderr)
	}
}
