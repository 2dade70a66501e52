package reader

import (
	"slices"

	"k8slab/lab/symptom"
)

// The error that ends a command is a chain: each function puts what it was doing before what it was told. So the cause that a chain names
// last is what happened, and those before it only name the step that failed, unless one of them brings the last about.

// markFrames marks the finds of a chain that only name a step.
func markFrames(chain []find) {
	for i := range chain {
		f := &chain[i]
		f.frame = f.states() && slices.ContainsFunc(chain, func(g find) bool {
			return g.states() && g.at > f.at && g.known.id != f.known.id && !symptom.Brings(f.known.id, g.known.id)
		})
	}
}

// states reports whether a find states a cause.
func (f find) states() bool {
	return f.known.kind == ofCause && f.known.pattern.strength != weak && !f.warning
}
