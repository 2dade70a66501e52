package lab

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/addon"
)

func TestImagesOf(t *testing.T) {
	got := imagesOf([]addon.Addon{{Images: []string{"b", "a"}}, {}, {Images: []string{"a", "c"}}})
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
	l := newLab(t, three)
	addons, err := l.addons()
	if err != nil || len(addons) > 0 {
		t.Fatalf("got %v, %v", addons, err)
	}
	c := &forming{lab: l}
	if err := c.install(context.Background(), addons); err != nil {
		t.Error(err)
	}
	if err := l.importImages(context.Background(), l.cluster.Members(), addons); err != nil {
		t.Error(err)
	}
	if err := l.addonImages(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestAddonsOfNoLab(t *testing.T) {
	l := newLab(t, onboard) // lists prometheus and local-path
	all, err := l.Addons(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var wanted []string
	for _, s := range all {
		if s.Wanted {
			wanted = append(wanted, s.Name)
		}
		if s.Installed {
			t.Errorf("%s is installed in a lab that is not up", s.Name)
		}
	}
	if len(all) != len(addon.All()) || !slices.Equal(wanted, []string{"local-path", "node-exporter", "prometheus"}) {
		t.Errorf("%d add-ons, of which are wanted %q", len(all), wanted)
	}
	if err := l.InstallAddons(context.Background(), []string{"istio"}); err == nil || !strings.Contains(err.Error(), `"istio"`) {
		t.Errorf("unknown: %v", err)
	}
	if err := l.InstallAddons(context.Background(), []string{"prometheus"}); err != ErrNotUp {
		t.Errorf("no lab: %v", err)
	}
}
