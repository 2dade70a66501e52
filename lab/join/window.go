package join

import (
	"slices"
	"strings"
)

// learnerWindow follows this join's etcd learner through kubeadm's output: from the call that adds it to the word that it was promoted,
// kubeadm must not be killed, because nobody would then promote or remove the learner, and it keeps every other control plane out.
// The texts are those of kubeadm 1.31 to 1.37 at -v=5 (phases/etcd/local.go, util/etcd/etcd.go).
type learnerWindow struct{ at learnerState }

type learnerState int

const (
	notAdded learnerState = iota
	askedToAdd
	learnerAdded
	promoted
)

// refusals are etcd's answers that prove that it has not added the learner. A timeout proves nothing.
var refusals = []string{
	"too many learner members",
	"re-configuration failed due to not enough started members",
	"unhealthy cluster",
}

var (
	addedTexts = []string{
		"Announced new etcd member joining",
		"Skipping etcd member addition",
		"Fetching the existing etcd members",
		"Waiting for a learner to start",
	}
	promotedTexts = []string{
		"The learner was promoted as a voting member",
		"was already promoted",
		"is already a voting member",
		"Waiting for the new etcd member to join the cluster",
	}
)

// see takes in one line.
func (w *learnerWindow) see(text string) {
	switch {
	case containsAny(text, promotedTexts):
		w.at = promoted
	case w.at == promoted:
	case containsAny(text, addedTexts):
		w.at = learnerAdded
	case w.at == learnerAdded:
	case strings.Contains(text, "Adding etcd member") && strings.Contains(text, "as learner"):
		w.at = askedToAdd // printed before the call
	case w.at == askedToAdd && containsAny(text, refusals):
		w.at = notAdded
	}
}

// open tells whether kubeadm must be left alone.
func (w *learnerWindow) open() bool { return w.at == askedToAdd || w.at == learnerAdded }

// added tells whether the learner is, or was, in the cluster.
func (w *learnerWindow) added() bool { return w.at == learnerAdded || w.at == promoted }

func containsAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
}
