package diagnose

import "k8slab/lab/event"

// How lines are broken is the same wherever people read them.
var (
	fold    = event.Fold
	chopped = event.Chop
)
