package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// startNext is the next step where there is nobody to try a route.
const startNext = "first fix what keeps test pods from starting"

// started is the finding about the test pods themselves.
func (t trial) started() Finding {
	if t.skipped != "" {
		return warn(imageNext, "%s", t.skipped)
	}
	var all tally
	for _, node := range slices.Sorted(maps.Keys(t.bad)) {
		all.faults = append(all.faults, node+": "+t.bad[node])
	}
	if t.removed != nil {
		all.warnings = append(all.warnings, t.removed.Error())
	}
	all.good = []string{"ready on " + strings.Join(slices.Sorted(maps.Keys(t.pods)), ", ") + t.without()}
	return all.finding("look at the pod's last event and the kubelet's journal on its Node; if the image is missing, " + imageNext)
}

// without says which Nodes were not tried.
func (t trial) without() string {
	if len(t.left) == 0 {
		return ""
	}
	return fmt.Sprintf("; without %s, not Ready", strings.Join(t.left, ", "))
}

// finding is what became of the routes of one way.
func (t trial) finding(w way) Finding {
	if t.skipped != "" {
		return warn(imageNext, "%s", t.skipped)
	}
	if t.failed || t.bad[t.node] != "" {
		return fail(startNext, "not tried: no test pod runs on %s", where(t.node))
	}
	var all tally
	tried := 0
	for _, r := range t.routes {
		if r.way != w.id {
			continue
		}
		tried++
		if r.failure != "" {
			all.faults = append(all.faults, r.String())
		}
	}
	switch {
	case tried == 0 && len(t.bad) > 0:
		return fail(startNext, "not tried: too few test pods run")
	case tried == 0:
		return absent("there is one Node that is Ready, and no other to reach%s", t.without())
	}
	all.good = []string{fmt.Sprintf("all %d ways work%s", tried, t.without())}
	return all.finding(w.next)
}
