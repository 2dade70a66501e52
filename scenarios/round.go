package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"k8slab/config"
	"k8slab/lab/symptom"
)

// Target is a fault and the node that it is made on; "" is the last node of a role that the fault is for.
type Target struct {
	Fault Fault
	Node  string
}

// Round are the faults that one circle makes at the same time: one, or several that compose. It is written NAME[@NODE][+NAME[@NODE]]….
type Round []Target

func (r Round) String() string {
	var parts []string
	for _, t := range r {
		part := t.Fault.Name
		if t.Node != "" {
			part += "@" + t.Node
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "+")
}

// MarshalText writes the round as String does.
func (r Round) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r Round) names() string {
	var names []string
	for _, t := range r {
		names = append(names, t.Fault.Name)
	}
	return strings.Join(names, "+")
}

// ParseRound reads what String wrote.
func ParseRound(text string) (Round, error) {
	var r Round
	for part := range strings.SplitSeq(text, "+") {
		name, node, _ := strings.Cut(part, "@")
		f, known := Lookup(name)
		if !known {
			return nil, Unknown(name)
		}
		r = append(r, Target{f, node})
	}
	return r, nil
}

// compose says why the faults cannot be made at the same time. Each must still bite, be named and be ended as if it were alone: so no two are
// on one node, where one could hide the other; at most one is on a control plane, so that etcd keeps its quorum; and none is among them that
// stops for a person, costs the quorum or is about several nodes.
func compose(faults []placed) error {
	if len(faults) == 1 {
		return nil
	}
	nodes := map[string]bool{}
	controlPlanes := 0
	for _, f := range faults {
		switch {
		case nodes[f.site.Node]:
			return fmt.Errorf("%w: two faults on %s at the same time", errNotApplicable, f.site.Node)
		case f.Stops:
			return fmt.Errorf("%w: %s needs a person to act, so it runs alone", errNotApplicable, f.Name)
		case slices.Contains(f.May, Quorum):
			return fmt.Errorf("%w: %s breaks etcd's quorum, so it runs alone", errNotApplicable, f.Name)
		case slices.Contains(f.May, Others):
			return fmt.Errorf("%w: %s affects several nodes, so it runs alone", errNotApplicable, f.Name)
		}
		nodes[f.site.Node] = true
		if f.site.role(f.site.Node) == config.ControlPlane {
			controlPlanes++
		}
	}
	if controlPlanes > 1 {
		return fmt.Errorf("%w: faults on %d control planes at the same time could break etcd's quorum", errNotApplicable, controlPlanes)
	}
	return nil
}

// saying is what a diagnosis says: a symptom, and the node that has it or "" for the cluster. The zero saying is that nothing is wrong.
type saying struct {
	symptom symptom.ID
	of      string
}

func (s saying) String() string {
	switch {
	case s.symptom == "":
		return "nothing"
	case s.of == "":
		return string(s.symptom)
	}
	return string(s.symptom) + " on " + s.of
}

// sayings are what a diagnosis may say first. A fault that the cluster gets over alone leaves the word to the others.
func sayings(faults []placed) (all []saying) {
	for _, f := range faults {
		if f.Symptom == "" {
			continue
		}
		of := []string{f.site.Node}
		if f.Of != nil {
			of = f.Of(f.site)
		}
		for _, node := range of {
			all = append(all, saying{f.Symptom, node})
		}
	}
	if all == nil {
		return []saying{{}}
	}
	return all
}
