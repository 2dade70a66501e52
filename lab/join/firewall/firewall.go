// Package firewall reads a machine's packet filter as its tools print it, as chains of rules, and says what becomes of a new connection
// from or to another machine, or through this one. It runs nothing. Only what is certain counts as blocked: a rule with a condition that
// cannot be judged here (a source, an interface, a mark) may let packets through, but it never drops.
package firewall

import (
	"fmt"
	"maps"
	"net/netip"
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

// packet is a flow's first one. Of a packet from or to the machine itself only the flow is known.
type packet struct {
	Flow
	from, to netip.Addr
	in, out  string // interfaces
}

type portRange struct{ from, to int }

// condition is one on a packet's way: the value of its side must be one of these, or must not.
type condition struct {
	side   side
	values []string // addresses, prefixes, or interfaces, of which + or * is any end
	not    bool
}

type side string

const (
	source      side = "source"
	destination side = "destination"
	inbound     side = "in"
	outbound    side = "out"
)

// rule is one rule, as far as it matters.
type rule struct {
	proto    string      // "" is any
	ports    []portRange // destination; none is any
	way      []condition
	never    bool // cannot match a new connection from or to another machine
	narrowed bool // has a condition that is not judged
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

// matches reports whether the packet may meet the rule, and whether it does for certain.
func (r rule) matches(p packet) (may, certain bool) {
	if r.never || r.proto != "" && r.proto != p.Proto {
		return false, false
	}
	if len(r.ports) > 0 && !slices.ContainsFunc(r.ports, func(has portRange) bool { return has.from <= p.Port && p.Port <= has.to }) {
		return false, false
	}
	certain = !r.narrowed
	for _, c := range r.way {
		meets, known := c.holds(p)
		if known && !meets {
			return false, false
		}
		certain = certain && known
	}
	return true, certain
}

// holds reports whether the packet meets the condition, if that is known.
func (c condition) holds(p packet) (meets, known bool) {
	var is func(value string) (same, known bool)
	switch c.side {
	case source:
		is = within(p.from)
	case destination:
		is = within(p.to)
	case inbound:
		is = named(p.in)
	case outbound:
		is = named(p.out)
	}
	known = true
	for _, value := range c.values {
		same, sure := is(value)
		if same {
			return !c.not, true
		}
		known = known && sure
	}
	return c.not, known
}

func within(a netip.Addr) func(string) (same, known bool) {
	return func(value string) (bool, bool) {
		prefix, err := netip.ParsePrefix(value)
		if one, oneErr := netip.ParseAddr(value); oneErr == nil {
			prefix, err = netip.PrefixFrom(one, one.BitLen()), nil
		}
		return err == nil && a.IsValid() && prefix.Contains(a), err == nil && a.IsValid()
	}
}

func named(device string) func(string) (same, known bool) {
	return func(value string) (bool, bool) {
		begin, open := strings.CutSuffix(strings.TrimSuffix(value, "*"), "+")
		open = open || strings.HasSuffix(value, "*")
		known := device != "" && !strings.HasPrefix(value, "@") // a set by its name
		return known && (device == value || open && strings.HasPrefix(device, begin)), known
	}
}

// deepest bounds chains that jump in a circle, which no kernel accepts but a text may show.
const deepest = 20

// decide follows a packet through a chain.
func (t Table) decide(chain string, p packet, depth int) verdict {
	c := t[chain]
	// The cluster's own chains decide about packets through this machine, and about no others.
	if c == nil || depth > deepest || clusterChain(chain) && p.in == "" {
		return returns
	}
	for _, r := range c.rules {
		may, certain := r.matches(p)
		if !may {
			continue
		}
		result := r.verdict
		if result == jumps || result == gotos {
			result = t.decide(r.target, p, depth+1)
			if result == returns && (r.verdict == jumps || !certain) {
				continue
			}
		}
		if result == proceeds || result == drops && !certain {
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
func (t Table) Blocks(hook string, f Flow) string { return t.blocks(hook, packet{Flow: f}) }

// Way is how a packet goes through this machine.
type Way struct {
	From, To netip.Addr
	In, Out  string // interfaces
}

// Stops says where the table drops a flow that is forwarded, "" when it does not for certain.
func (t Table) Stops(w Way, f Flow) string {
	return t.blocks("forward", packet{f, w.From, w.To, w.In, w.Out})
}

func (t Table) blocks(hook string, p packet) string {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		c := t[name]
		if c.hook != hook {
			continue
		}
		switch t.decide(name, p, 0) {
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
