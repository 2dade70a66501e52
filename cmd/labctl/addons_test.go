package main

import (
	"k8slab/lab/addon"
	"strings"
	"testing"
)

func TestPrintAddons(t *testing.T) {
	var out strings.Builder
	printAddons(&out, []addon.Status{
		{Name: "flux", Purpose: "a", Wanted: true, Installed: true, Ready: 1, Want: 2},
		{Name: "sops", Purpose: "b", Installed: true}, // has no pods
		{Name: "git", Purpose: "c"},
	})
	want := `ADD-ON  CLUSTER.YAML  INSTALLED  PODS READY  PURPOSE
flux    yes           yes        1 of 2      a
sops    no            yes        -           b
git     no            no         -           c
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}
