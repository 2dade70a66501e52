package report

import (
	"fmt"
	"maps"
	"slices"

	"k8slab/lab/validate"
)

// comparison is the cluster before and after.
type comparison struct {
	Before, After string // when somebody looked, "" for never
	Rows          []compared
}

// compared is one thing before and after.
type compared struct {
	Name, Before, After string
	Changed             bool
}

// absent stands for what was not there, unknown for what nobody looked at.
const (
	absent  = "–"
	unknown = "not known"
)

func compare(before, after *validate.Snapshot) comparison {
	c := comparison{}
	if before != nil {
		c.Before = moment(before.Time)
	}
	if after != nil {
		c.After = moment(after.Time)
	}
	if before == nil && after == nil {
		return c
	}
	add := func(name string, of func(*validate.Snapshot) string) {
		row := compared{Name: clean(name), Before: unknown, After: unknown}
		if before != nil {
			row.Before = clean(of(before))
		}
		if after != nil {
			row.After = clean(of(after))
		}
		row.Changed = before != nil && after != nil && row.Before != row.After
		c.Rows = append(c.Rows, row)
	}
	for _, name := range names(before, after, func(s *validate.Snapshot) map[string]bool { return s.Nodes }) {
		add("Node "+name, func(s *validate.Snapshot) string { return node(s, name) })
	}
	counts := func(what string, of func(*validate.Snapshot) map[string]int) {
		for _, name := range names(before, after, of) {
			add(what+" "+name, func(s *validate.Snapshot) string { return fmt.Sprint(of(s)[name]) })
		}
	}
	counts("Pods", func(s *validate.Snapshot) map[string]int { return s.Pods })
	counts("Ready pods of applications on", func(s *validate.Snapshot) map[string]int { return s.Workload })
	counts("Persistent volumes", func(s *validate.Snapshot) map[string]int { return s.PersistentVolumes })
	counts("Longhorn volumes", func(s *validate.Snapshot) map[string]int { return s.Longhorn })
	add("Reconciled by Flux", flux)
	add("API latency", latency)
	add("Start of a pod", podStart)
	return c
}

// names are the keys that occur in one of the snapshots, in order.
func names[V any](before, after *validate.Snapshot, of func(*validate.Snapshot) map[string]V) []string {
	all := map[string]bool{}
	for _, s := range []*validate.Snapshot{before, after} {
		if s == nil {
			continue
		}
		for name := range of(s) {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func node(s *validate.Snapshot, name string) string {
	switch ready, there := s.Nodes[name]; {
	case !there:
		return absent
	case ready:
		return "Ready"
	}
	return "not Ready"
}

func flux(s *validate.Snapshot) string {
	if s.Flux == nil {
		return "no Flux"
	}
	return fmt.Sprintf("%d of %d", s.Flux.Ready, s.Flux.Total)
}

func latency(s *validate.Snapshot) string {
	if s.API.Reads == 0 {
		return unknown
	}
	return fmt.Sprintf("median %.1f ms, 95 %% below %.1f ms, of %d reads", s.API.MedianMS, s.API.P95MS, s.API.Reads)
}

func podStart(s *validate.Snapshot) string {
	switch {
	case s.PodStartError != "":
		return "it did not become Ready: " + s.PodStartError
	case s.PodStartMS == 0:
		return unknown
	}
	return fmt.Sprintf("%.1f s", s.PodStartMS/1000)
}
