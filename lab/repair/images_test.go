package repair

import (
	"context"
	"errors"
	"slices"
	"testing"

	"k8slab/config"
	"k8slab/lab/cluster"
	"k8slab/lab/join"
	"k8slab/lab/labtest"
)

// Members that lost images get them, but for those on which kubeadm or a person is at work: their containerd may take none.
func TestImages(t *testing.T) {
	facts := map[string]join.Facts{
		"cp1": {Joined: true}, "cp2": {Joined: true, JoinUnit: "active"}, "cp3": {}, "w1": {Joined: true}, "w2": {Joined: true},
	}
	broken := errors.New("the cache has no such image")
	for _, tt := range []struct {
		name   string
		dryRun bool
		err    error
		want   Repaired
	}{
		{"imported", false, nil, Repaired{Did: "imported them, and pinned them"}},
		{"only told", true, nil, Repaired{Would: "import them"}},
		{"not in the cache", false, broken, Repaired{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := labtest.Session(t, labtest.Three)
			var asked []string
			c := cluster.New(s, facts, func(_ context.Context, nodes []config.Node, dryRun bool) (map[string][]string, error) {
				if asked = config.Names(nodes); dryRun != tt.dryRun {
					t.Errorf("asked with dry run %v", dryRun)
				}
				return map[string][]string{"cp1": {"a:1", "b:2"}}, tt.err
			})
			c.DryRun = tt.dryRun
			r := &repairRun{Run: c, step: s.Events.Start("", "repair", 0), found: []Repaired{{Node: "w2", Symptom: "disk-full", Left: "free space"}}}
			err := r.images(t.Context())
			if !errors.Is(err, tt.err) || !slices.Equal(asked, []string{"cp1", "w1"}) {
				t.Errorf("%v, asked %q", err, asked)
			}
			found := r.found[1:]
			if tt.err != nil {
				if len(found) > 0 {
					t.Errorf("found %+v", found)
				}
				return
			}
			tt.want.Node, tt.want.Symptom = "cp1", "image-pull-failure"
			tt.want.Evidence = "containerd does not have a:1, b:2, which the lab had given it"
			if len(found) != 1 || found[0].String() != tt.want.String() {
				t.Errorf("found %v, want %v", found, tt.want)
			}
		})
	}
}
