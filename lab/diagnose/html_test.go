package diagnose

import (
	"strings"
	"testing"

	"k8slab/lab/golden"
)

func pageOf(t *testing.T, r Report) string {
	t.Helper()
	var b strings.Builder
	if err := WriteHTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestHTML(t *testing.T) {
	for _, c := range reports {
		t.Run(c.name, func(t *testing.T) { golden.Check(t, "view-"+c.name+".html", pageOf(t, c.make())) })
	}
}
