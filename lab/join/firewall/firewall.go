// Package firewall reads a machine's packet filter as its tools print it, as chains of rules, and says what becomes of a new connection
// from or to another machine. It runs nothing. Only what is certain counts as blocked: a rule with a condition that cannot be judged here
// (a source, an interface, a mark) may let packets through, but it never drops.
package firewall

import (
	"fmt"
	"slices"
	"strings"
)

// Flow is a new connection of which one packet meets the rules.
type Flow struct {
	Proto string // tcp or udp
	Port  int    // destination
}

// String is the form that people know, such as "10250/tcp".
func (f Flow) String() string { return fmt.Sprintf("%d/%s", f.Port, f.Proto) }

type portRange struct{ from, to int }

// rule is one rule, as far as it matters.
type rule struct {
	proto    string      // "" is any
	ports    []portRange // destination; none is any
	never    bool        // cannot match a new connection from or to another machine
	narrowed bool        // has a condition that is not judged
	verdict  verdict
	target   string // chain, of jumps and gotos
}

type verdict string

const (
	accepts  verdict = "accept"
	drops    verdict = "drop" // reject too
	jumps    verdict = "jump"
	gotos    verdict = "goto"
	returns  verdict = "return" // also: the chain's end
	proceeds verdict = ""       // counters, logs
)

// chain is a chain; one with a hook is where packets enter.
type chain struct {
	name   string // as people read it
	hook   string // input, output or ""
	policy verdict
	rules  []rule
}

// Table has the chains of one table of rules, by name.
type Table map[string]*chain

func (r rule) matches(f Flow) bool {
	if r.never || r.proto != "" && r.proto != f.Proto {
		return false
	}
	return len(r.ports) == 0 || slices.ContainsFunc(r.ports, func(p portRange) bool { return p.from <= f.Port && f.Port <= p.to })
}

// deepest bounds chains that jump in a circle, which no kernel accepts but a text may show.
const deepest = 20

// decide follows a flow through a chain.
func (t Table) decide(chain string, f Flow, depth int) verdict {
	c := t[chain]
	if c == nil || depth > deepest || clusterChain(chain) {
		return returns
	}
	for _, r := range c.rules {
		if !r.matches(f) {
			continue
		}
		result := r.verdict
		if result == jumps || result == gotos {
			result = t.decide(r.target, f, depth+1)
			if result == returns && (r.verdict == jumps || r.narrowed) {
				continue
			}
		}
		if result == proceeds || result == drops && r.narrowed {
			continue
		}
		return result
	}
	return returns
}

// clusterChain says whether a chain is kube-proxy's, kubelet's, flannel's or a CNI plugin's: they are no firewalls.
func clusterChain(name string) bool {
	upper := strings.ToUpper(name)
	return slices.ContainsFunc([]string{"KUBE-", "FLANNEL-", "CNI-"}, func(prefix string) bool { return strings.HasPrefix(upper, prefix) })
}

// Blocks says where the table drops a flow at a hook, "" when it does not for certain.
func (t Table) Blocks(hook string, f Flow) string {
	for _, name := range sortedNames(t) {
		c := t[name]
		if c.hook != hook {
			continue
		}
		switch t.decide(name, f, 0) {
		case drops:
			return c.name
		case returns:
			if c.policy == drops {
				return c.name + " (policy)"
			}
		}
	}
	return ""
}

func sortedNames(t Table) []string {
	names := make([]string, 0, len(t))
	for name := range t {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
