package main

import (
	"bytes"
	"testing"

	"k8slab/lab/inventory"
)

func TestWriteDifferences(t *testing.T) {
	one := []inventory.Difference{{Path: "/usr/sbin/runc", Kind: inventory.Changed, What: "it is empty", Component: "containerd", Needs: "ab"}}
	for _, tt := range []struct {
		output string
		found  []inventory.Difference
		want   string
	}{
		{"text", one, "/usr/sbin/runc: it is empty\n"},
		{"text", nil, ""},
		{"json", one, `[{"path":"/usr/sbin/runc","kind":"changed","what":"it is empty","component":"containerd","needs":"ab"}]` + "\n"},
		{"json", nil, "[]\n"},
	} {
		var out bytes.Buffer
		if err := (&app{stdout: &out}).writeDifferences(tt.found, tt.output); err != nil || out.String() != tt.want {
			t.Errorf("%s: %v, %q, want %q", tt.output, err, out.String(), tt.want)
		}
	}
}
