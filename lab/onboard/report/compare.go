package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
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

func compare(before, after *Cluster) comparison {
	c := comparison{}
	if before == nil && after == nil {
		return c
	}
	if before != nil {
		c.Before = moment(before.Time)
	}
	if after != nil {
		c.After = moment(after.Time)
	}
	add := func(name string, of func(*Cluster) string) {
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
	for _, name := range keys(before, after, func(c *Cluster) (names []string) {
		for _, n := range c.Nodes {
			names = append(names, n.Name)
		}
		return names
	}) {
		add("Node "+name, func(c *Cluster) string { return c.node(name) })
	}
	for _, phase := range keys(before, after, func(c *Cluster) []string { return slices.Collect(maps.Keys(c.Pods)) }) {
		add("Pods "+phase, func(c *Cluster) string { return fmt.Sprint(c.Pods[phase]) })
	}
	add("API latency", func(c *Cluster) string { return measured(c.APILatency) })
	add("Start of a pod", func(c *Cluster) string { return measured(c.PodStart) })
	return c
}

// keys are the names that occur in one of the clusters, in order.
func keys(before, after *Cluster, of func(*Cluster) []string) []string {
	var all []string
	for _, c := range []*Cluster{before, after} {
		if c != nil {
			all = append(all, of(c)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// node is a node in a few words.
func (c *Cluster) node(name string) string {
	i := slices.IndexFunc(c.Nodes, func(n Node) bool { return n.Name == name })
	if i < 0 {
		return absent
	}
	ready := "Ready"
	if !c.Nodes[i].Ready {
		ready = "not Ready"
	}
	return fmt.Sprintf("%s, %s, %s", ready, c.Nodes[i].Role, cmp.Or(c.Nodes[i].Version, "version "+unknown))
}

func measured(d time.Duration) string {
	if d == 0 {
		return unknown
	}
	return span(d)
}
