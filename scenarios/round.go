package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"k8slab/config"
	"k8slab/lab/symptom"
)

// Placement is a fault and the node that it is injected on; "" is the last node of a role that the fault is for.
type Placement struct {
	Fault Fault
	Node  string
}

// Round is the faults that one experiment injects at the same time, one or several. It is written NAME[@NODE][+NAME[@NODE]]….
type Round []Placement

func (r Round) String() string {
	var parts []string
	for _, p := range r {
		part := p.Fault.Name
		if p.Node != "" {
			part += "@" + p.Node
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "+")
}

// MarshalText writes the round as String does.
func (r Round) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r Round) names() string {
	var names []string
	for _, p := range r {
		names = append(names, p.Fault.Name)
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
		r = append(r, Placement{f, node})
	}
	return r, nil
}

// compose says why the faults cannot be injected at the same time. Each must have its effect, be diagnosed and recover as if it were alone.
// So no two may be on one node, where one could hide the other; at most one may be on a control plane, so that etcd keeps its quorum; and none
// may need a person, break the quorum or affect several nodes.
func compose(faults []placed) error {
	if len(faults) == 1 {
		return nil
	}
	nodes := map[string]bool{}
	controlPlanes := 0
	for _, f := range faults {
		switch {
		case nodes[f.target.Node]:
			return fmt.Errorf("%w: two faults on %s at the same time", errNotApplicable, f.target.Node)
		case f.Upgrade != "":
			return fmt.Errorf("%w: %s is of an upgrade, so it runs alone", errNotApplicable, f.Name)
		case f.Stops():
			return fmt.Errorf("%w: %s needs a person to act, so it runs alone", errNotApplicable, f.Name)
		case slices.Contains(f.May, Quorum):
			return fmt.Errorf("%w: %s breaks etcd's quorum, so it runs alone", errNotApplicable, f.Name)
		case slices.Contains(f.May, Others):
			return fmt.Errorf("%w: %s affects several nodes, so it runs alone", errNotApplicable, f.Name)
		}
		nodes[f.target.Node] = true
		if f.target.role(f.target.Node) == config.ControlPlane {
			controlPlanes++
		}
	}
	if controlPlanes > 1 {
		return fmt.Errorf("%w: faults on %d control planes at the same time could break etcd's quorum", errNotApplicable, controlPlanes)
	}
	return nil
}

// statement is what a diagnosis says: a symptom with its kind, and the node that has it or "" for the cluster. The zero statement is that
// nothing is wrong.
type statement struct {
	symptom symptom.ID
	detail  string // "" in what is wanted is any
	of      string
}

func (s statement) String() string {
	if s.symptom == "" {
		return "nothing"
	}
	text := string(s.symptom)
	if s.detail != "" {
		text += " (" + s.detail + ")"
	}
	if s.of != "" {
		text += " on " + s.of
	}
	return text
}

// wants reports whether the statement is what is wanted.
func (s statement) wants(says statement) bool {
	return s.symptom == says.symptom && s.of == says.of && (s.detail == "" || s.detail == says.detail)
}

// statements are what a diagnosis may say first. A fault from which the cluster recovers alone has none, unless no other fault has one.
func statements(faults []placed) (all []statement) {
	for _, f := range faults {
		if f.Symptom == "" {
			continue
		}
		of := []string{f.target.Node}
		if f.Of != nil {
			of = f.Of(f.target)
		}
		for _, node := range of {
			all = append(all, statement{f.Symptom, f.Detail, node})
		}
	}
	if all == nil {
		return []statement{{}}
	}
	return all
}
