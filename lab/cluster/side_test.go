package cluster

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8slab/lab/kube"
)

// What was seen before a join's token was made does not show it: the join must not take its own token for a lost one.
func TestSideIsNotOlderThanTheToken(t *testing.T) {
	var s clusterSide
	var tokens []string
	looks := 0
	look := func(context.Context) (kube.JoinSide, error) {
		looks++
		return kube.JoinSide{Tokens: slices.Clone(tokens)}, nil
	}
	if _, err := s.get(t.Context(), time.Time{}, look); err != nil {
		t.Fatal(err)
	}
	tokens = []string{"abcdef"}
	for _, since := range []time.Time{time.Now(), {}} { // the second is content with what was seen for the first
		if seen, err := s.get(t.Context(), since, look); err != nil || !slices.Equal(seen.Tokens, tokens) {
			t.Errorf("saw %q, %v", seen.Tokens, err)
		}
	}
	if looks != 2 {
		t.Errorf("%d looks", looks)
	}
}
