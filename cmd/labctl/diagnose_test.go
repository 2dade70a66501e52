package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8slab/lab/diagnose"
)

const refused = "error execution phase preflight: couldn't validate the identity of the API Server: could not find a JWS signature in the cluster-info ConfigMap for token ID \"abcdef\"\n"

func textFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeadm.log")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDiagnoseFrom(t *testing.T) {
	alone(t)
	t.Chdir(t.TempDir()) // no cluster.yaml is needed
	broken, healthy := textFile(t, refused), textFile(t, "all is well\n")
	tests := []struct {
		name   string
		args   []string
		status int
		want   string
	}{
		{"text", []string{broken}, exitFailed, "token-expired-or-invalid"},
		{"page", []string{broken, "-o", "html"}, exitFailed, "<title>"},
		{"json", []string{broken, "-o", "json"}, exitFailed, `"symptom": "token-expired-or-invalid"`},
		{"healthy", []string{healthy, "-o", "json"}, 0, `"findings": []`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, stdout, stderr := labctl(t, append([]string{"diagnose", "--from"}, tt.args...)...)
			if status != tt.status || !strings.Contains(stdout, tt.want) || stderr != "" {
				t.Errorf("%d %s %s", status, stdout, stderr)
			}
		})
	}
	_, stdout, _ := labctl(t, "diagnose", "--from", healthy, "-o", "json")
	var r diagnose.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || !r.Healthy || r.Source != healthy {
		t.Errorf("%+v %v", r, err)
	}
}

func TestDiagnoseStandardInput(t *testing.T) {
	alone(t)
	in, err := os.Open(textFile(t, refused))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out, errs strings.Builder
	if status := run([]string{"diagnose", "--from", "-", "-o", "json"}, in, &out, &errs); status != exitFailed || !strings.Contains(out.String(), `"source": "-"`) {
		t.Errorf("%d %s %s", status, out.String(), errs.String())
	}
}

func TestDiagnoseUsage(t *testing.T) {
	alone(t)
	tests := map[string][]string{
		"html":                          {"-o", "xml"},
		"takes no NODE":                 {"--from", "x", "cp1"},
		"--bundle":                      {"--from", "x", "--bundle", "y"},
		"must be positive":              {"--timeout", "0s"},
		"must not be":                   {"--since", "-1h"},
		"invalid argument":              {"--since", "yesterday"},
		"--from analyses existing text": {"--from", "x", "--since", "1h"},
	}
	for want, args := range tests {
		status, stdout, stderr := labctl(t, append([]string{"diagnose"}, args...)...)
		if status != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%q: %d %q %q", args, status, stdout, stderr)
		}
	}
}

func TestDiagnoseWithoutALab(t *testing.T) {
	alone(t)
	for want, args := range map[string][]string{"labctl up": nil, `no node "nobody"`: {"nobody"}} {
		status, stdout, stderr := labctl(t, append([]string{"-c", three, "diagnose"}, args...)...)
		if status != exitFailed || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%d %q %q", status, stdout, stderr)
		}
	}
}

// A mistyped path, or a pipe whose first command failed, must not be told that nothing is wrong.
func TestDiagnoseNothingToRead(t *testing.T) {
	alone(t)
	empty := textFile(t, "\n")
	for _, output := range reportOutputs {
		for want, from := range map[string]string{"no such file or directory": filepath.Join(t.TempDir(), "absent"), "it is empty": empty, "standard input is empty": "-"} {
			in, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			var out, errs strings.Builder
			status := run([]string{"diagnose", "--from", from, "-o", output}, in, &out, &errs)
			if status != exitFailed || out.String() != "" || !strings.Contains(errs.String(), want) {
				t.Errorf("%s -o %s: %d %q %q", from, output, status, out.String(), errs.String())
			}
		}
	}
}

func TestDiagnoseCompletesNodesOnce(t *testing.T) {
	alone(t)
	_, stdout, _ := labctl(t, "-c", three, "__complete", "diagnose", "cp1", "")
	if strings.Contains(stdout, "cp1\n") || !strings.Contains(stdout, "cp2\n") {
		t.Error(stdout)
	}
}
