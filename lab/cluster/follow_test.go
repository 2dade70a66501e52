package cluster

import (
	"slices"
	"testing"

	"k8slab/lab/event"
	"k8slab/lab/node"
)

// details keeps what events of progress say.
type details []string

func (d *details) Emit(e event.Event) {
	if e.State == event.Progress {
		*d = append(*d, e.Detail)
	}
}

// A second attempt's node tells of the first one again: that was shown. The lines come in pieces of any size.
func TestHearingShowsEachEventOnce(t *testing.T) {
	var shown details
	h := &joinReader{step: event.NewStream(&shown).Start("w1", "join", 0), before: 1}
	lines := &node.Lines{Each: h.line}
	for _, piece := range []string{
		`{"phase":"preflight","state":"progress","detail":"shown before"}` + "\n" + `{"phase":"preflight","state":"prog`,
		`ress","detail":"cause: swap-enabled: on"}` + "\n",
		`{"phase":"kubeadm","state":"progress","detail":"kubelet: noise"}` + "\n" + `{"outcome":{"joined":true}}` + "\n",
	} {
		if _, err := lines.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(shown, []string{"cause: swap-enabled: on"}) || h.lines != 3 || h.outcome == nil || !h.outcome.Joined {
		t.Errorf("shown %q, %d lines, outcome %+v", shown, h.lines, h.outcome)
	}
}
