package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8slab/config"
	"k8slab/lab/diagnose"
	"k8slab/lab/golden"
	"k8slab/lab/symptom"
)

func TestEachLab(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 10 {
			names = append(names, fmt.Sprintf("lab%d", i))
		}
		var now, most atomic.Int32
		began := time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 15*time.Second, errors.New("too late"))
		defer cancel()
		all := eachLab(ctx, names, func(ctx context.Context, name string) (diagnose.Report, error) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer now.Add(-1)
			if name == "lab0" { // it does not answer
				<-ctx.Done()
				return diagnose.Report{}, context.Cause(ctx)
			}
			time.Sleep(4 * time.Second)
			return diagnose.Report{Lab: name, Healthy: true}, nil
		})
		if took := time.Since(began); most.Load() != labsAtOnce || took != 15*time.Second {
			t.Errorf("%d at once, %s", most.Load(), took)
		}
		for i, one := range all {
			late := i == 0
			if one.Name != names[i] || (one.Report == nil) != late || (one.Error == "too late") != late {
				t.Errorf("%+v", one)
			}
		}
	})
}

func TestPrintDiagnosedLabs(t *testing.T) {
	broken := diagnose.Report{
		Nodes:    []diagnose.NodeRow{{Name: "cp1"}, {Name: "w1", SSH: "no route to host"}},
		Findings: []symptom.Finding{{Symptom: symptom.NodeUnreachable, Level: symptom.Fail, Node: "w1"}},
	}
	var out strings.Builder
	printDiagnosedLabs(&out, []diagnosedLab{
		{Name: "home", Report: &diagnose.Report{Healthy: true, Nodes: broken.Nodes[:1]}, took: 2100 * time.Millisecond},
		{Name: "rack", Report: &broken, took: 5 * time.Second}, {Name: "logs", Report: &diagnose.Report{Undetermined: []string{"x"}}},
		{Name: "gone", Error: "no answer\n\x1b[31m", took: 30 * time.Second},
	})
	want := `NAME  NODES   HEALTHY  WORST FINDING           TIME
home  1 of 1  yes      none                    2.1s
rack  1 of 2  no       node-unreachable on w1  5s
logs  0 of 0  no       undetermined            0s
gone  –       unknown  –                       30s
gone: no answer ` + "\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestDiagnoseAll(t *testing.T) {
	alone(t)
	t.Chdir(t.TempDir()) // no cluster.yaml is needed
	if status, stdout, stderr := labctl(t, "diagnose", "--all"); status != exitFailed || stdout != "" || !strings.Contains(stderr, "this user has no lab") {
		t.Errorf("%d %q %q", status, stdout, stderr)
	}
}

// A lab that cannot be opened is a row.
func TestDiagnoseAllOfLabsThatAreNotUp(t *testing.T) {
	alone(t)
	for _, name := range []string{"one", "two"} {
		madeOf(t, small, func(c *config.Cluster) { c.Name = name })
	}
	status, stdout, stderr := labctl(t, "diagnose", "--all", "-o", "json")
	var all []diagnosedLab
	if err := json.Unmarshal([]byte(stdout), &all); err != nil || status != exitFailed || stderr != "" {
		t.Fatalf("%d %v %q %s", status, err, stderr, stdout)
	}
	schema := golden.ReadSchema(t, "../../docs/schema/diagnose-all.v1.json")
	schema.Check(t, all)
	_, one, _ := labctl(t, "diagnose", "--from", textFile(t, refused), "-o", "json")
	schema.Check(t, []map[string]any{{"name": "home", "report": json.RawMessage(one)}})
	if len(all) != 2 || all[0].Name != "one" || all[1].Name != "two" || all[0].Error == "" || all[0].Report != nil {
		t.Errorf("%s", stdout)
	}
	if _, stdout, _ = labctl(t, "diagnose", "--all"); !strings.HasPrefix(stdout, "NAME ") || !strings.Contains(stdout, "\ntwo   –      unknown") {
		t.Error(stdout)
	}
}

func TestDiagnoseAllUsage(t *testing.T) {
	alone(t)
	for _, args := range [][]string{{"w1"}, {"-c", small}, {"--lab", "lab"}, {"--from", "x"}, {"--bundle", "x"}, {"-o", "html"}, {"--test-rules"}} {
		status, stdout, stderr := labctl(t, append([]string{"diagnose", "--all"}, args...)...)
		if status != exitUsage || stdout != "" || !strings.Contains(stderr, "--all diagnoses all labs") {
			t.Errorf("%q: %d %q %q", args, status, stdout, stderr)
		}
	}
	for _, args := range [][]string{{"-c", small}, {"--from", "x"}, {"--bundle", "x"}, {"--since", "1m"}, {"-o", "html"}} {
		status, stdout, stderr := labctl(t, append([]string{"diagnose", "--test-rules"}, args...)...)
		if status != exitUsage || stdout != "" || !strings.Contains(stderr, "--test-rules diagnoses nothing") {
			t.Errorf("%q: %d %q %q", args, status, stdout, stderr)
		}
	}
}
