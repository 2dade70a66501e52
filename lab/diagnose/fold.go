package diagnose

import (
	"strings"

	"k8slab/lab/event"
)

// How lines are broken is the same wherever people read them.
var (
	fold    = event.Fold
	chopped = event.Chop
)

// textLimit is the longest text of a piece of evidence, in bytes.
const textLimit = 400

func oneLine(s string) string {
	return cut(strings.Join(strings.Fields(s), " "))
}

func cut(s string) string { return strings.ToValidUTF8(s[:min(len(s), textLimit)], "") }
