package config

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/semver"
)

func TestWithVersion(t *testing.T) {
	const rest = "name: lab # mine\nnodes:\n  - {name: cp1, role: control-plane}\n"
	tests := []struct{ name, text, want string }{
		{"plain, with a comment", "kubernetes:\n  # pinned\n  version: v1.36.3  # for now\n" + rest, "kubernetes:\n  # pinned\n  version: v1.37.2  # for now\n" + rest},
		{"quoted", "kubernetes:\n  version: \"v1.36.3\"\n" + rest, "kubernetes:\n  version: \"v1.37.2\"\n" + rest},
		{"in one line", "kubernetes: {source: modules, version: v1.36.3}\n" + rest, "kubernetes: {source: modules, version: v1.37.2}\n" + rest},
		{"not there", rest + "kubernetes:\n    source: modules\n", rest + "kubernetes:\n    version: v1.37.2\n    source: modules\n"},
		{"no section", rest, rest + "\nkubernetes:\n  version: v1.37.2\n"},
		{"no end of line", strings.TrimSuffix(rest, "\n"), rest + "\nkubernetes:\n  version: v1.37.2\n"},
		{"beside the same text", "kubernetes:\n  version: v1.36.3\n  # not v1.36.3\n" + rest, "kubernetes:\n  version: v1.37.2\n  # not v1.36.3\n" + rest},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := WithVersion([]byte(tt.text), "v1.37.2")
			if err != nil || string(got) != tt.want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, tt.want)
			}
		})
	}
	for _, text := range []string{"", "kubernetes: {source: modules}\n" + rest, "kubernetes: [\n"} {
		if got, err := WithVersion([]byte(text), "v1.37.2"); err == nil {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestNextVersion(t *testing.T) {
	for from, want := range map[string]string{
		Pinned[0]: Pinned[1], "v1.36.0": "v1.37.2", "v1.36.9": "v1.37.2", "v1.37.2": "", "v1.38.0": "", "v1.37.0-rc.1": "",
	} {
		if got := NextVersion(from); got != want {
			t.Errorf("after %s comes %q, want %q", from, got, want)
		}
	}
	if !slices.IsSortedFunc(Pinned, semver.Compare) {
		t.Errorf("not sorted: %s", Pinned)
	}
}
