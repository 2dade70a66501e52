package addon

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/labtest"
)

func TestImagesOf(t *testing.T) {
	got := ImagesOf([]Addon{{Images: []string{"b", "a"}}, {}, {Images: []string{"a", "c"}}})
	if !slices.Equal(got, []string{"b", "a", "c"}) {
		t.Errorf("got %q", got)
	}
}

func TestMissingImages(t *testing.T) {
	refs := []string{"k8slab/prometheus:lab", "k8slab/git:lab"}
	tests := []struct {
		name, list string
		want       []string
	}{
		{"empty store", "", refs},
		{"all", "docker.io/k8slab/git:lab\ndocker.io/k8slab/prometheus:lab\nregistry.k8s.io/pause:3.10.2\n", []string{}},
		{"one", "docker.io/k8slab/git:lab\n", refs[:1]},
		{"short names", "k8slab/git:lab\nk8slab/prometheus:lab\n", []string{}},
		{"others that look like it", "docker.io/k8slab/git:lab2\nmirror.example/k8slab/git:lab\nsha256:0123\ndocker.io/k8slab/prometheus\n", refs},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := missingImages(refs, strings.Fields(tt.list)); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if refs[0] != "k8slab/prometheus:lab" {
		t.Error("asking changed the list")
	}
}

// Without add-ons nothing is asked: there is no node and no API server here that could answer.
func TestNoAddonsAskNothing(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	addons, err := Wanted(s)
	if err != nil || len(addons) > 0 {
		t.Fatalf("got %v, %v", addons, err)
	}
	if err := Install(context.Background(), s, nil, addons); err != nil {
		t.Error(err)
	}
	if err := ImportImages(context.Background(), s, s.Cluster.Members(), addons); err != nil {
		t.Error(err)
	}
	if err := BuildImages(context.Background(), s); err != nil {
		t.Error(err)
	}
}
