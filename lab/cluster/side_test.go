package cluster

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"k8slab/lab/kube"
	"k8slab/lab/session"
)

// What was seen before a join's token was made does not show it: the join must not take its own token for a lost one.
func TestSideIsNotOlderThanTheToken(t *testing.T) {
	set := fake.NewClientset()
	set.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, a.(clienttesting.CreateAction).GetObject(), nil
	})
	c := &Run{Admin: &session.Admin{Kube: kube.Of(set)}}
	if _, err := c.side(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	token, err := c.Admin.Kube.CreateBootstrapToken(t.Context(), time.Hour, "a join's")
	if err != nil {
		t.Fatal(err)
	}
	seen, err := c.side(t.Context(), time.Now())
	if err != nil || !slices.Contains(seen.Tokens, token[:6]) {
		t.Errorf("saw %q, %v", seen.Tokens, err)
	}
	again, err := c.side(t.Context(), time.Time{})
	if err != nil || !slices.Equal(again.Tokens, seen.Tokens) {
		t.Errorf("saw %q, %v", again.Tokens, err)
	}
}
