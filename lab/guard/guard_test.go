package guard

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/labtest"
)

// Outside of a verb that changes the cluster, every change is refused.
func TestRefused(t *testing.T) {
	var g Guard
	if err := g.Mutated("kube POST /api/v1/nodes"); err == nil || !strings.Contains(err.Error(), "kube POST /api/v1/nodes") {
		t.Errorf("got %v", err)
	}
	ctx, end := context.WithCancelCause(t.Context())
	g.allow(ctx)
	if err := g.Mutated("x"); err != nil {
		t.Error(err)
	}
	end(errors.New("the Lease is lost"))
	if err := g.Mutated("x"); err == nil || !strings.Contains(err.Error(), "the Lease is lost") {
		t.Errorf("after the Lease was lost: %v", err)
	}
	g.refuse()
	if err := g.Mutated("x"); err == nil || strings.Contains(err.Error(), "Lease") {
		t.Errorf("after the verb: %v", err)
	}
}

// A person sees the verb, its steps with the node's name in them, and whether it is the end of the cluster; what they say goes.
func TestAgree(t *testing.T) {
	s := labtest.Session(t, labtest.Small)
	no := errors.New("no")
	for _, tt := range []struct {
		verb  Verb
		named bool
		says  string // one of the steps
	}{
		{Verb{Name: "labctl rejoin", Node: "w1"}, false, "join w1 (kubeadm join)"},
		{Verb{Name: "labctl join-command"}, false, "make a bootstrap token for 30 minutes (kubeadm token create)"},
		{Verb{Name: "labctl dismantle", Steps: []string{"reset everything"}, Ends: true}, true, "reset everything"},
	} {
		var shown Change
		g := Guard{Confirm: func(_ context.Context, c Change) error { shown = c; return no }}
		if err := g.agree(t.Context(), s, tt.verb); !errors.Is(err, no) {
			t.Errorf("%s: got %v", tt.verb, err)
		}
		if shown.Verb != tt.verb.String() || shown.Cluster != s.Cluster.Name || shown.Named != tt.named || !slices.Contains(shown.Steps, tt.says) {
			t.Errorf("%s: shown %+v", tt.verb, shown)
		}
		if err := new(Guard).agree(t.Context(), s, tt.verb); err == nil {
			t.Errorf("%s: nobody could be asked, and it was agreed to", tt.verb)
		}
		tt.verb.Agreed = true
		if err := new(Guard).agree(t.Context(), s, tt.verb); err != nil {
			t.Errorf("%s: asked twice: %v", tt.verb, err)
		}
	}
}
