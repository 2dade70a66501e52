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

// packet is a flow's first one. Of a packet from or to the machine itself no interface is known.
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
	handle   int    // nft's; 0 where it has several verdicts
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
	family string // nft's; "" is iptables'
	table  string // nft's
	hook   string // input, output or ""
	policy verdict
	rules  []rule
}

// Drop is where a flow ends. The zero one is nowhere.
type Drop struct {
	Where  string // the chain where it came in, as people read it
	Policy bool   // and it was that chain's policy, and no rule

	// How nft calls the chain, which can be another one, and the rule. Family is "" for iptables. Handle is 0 for what could not go without
	// letting other packets through, too: a rule for all packets, or one with several verdicts.
	Family, Table, Chain string
	Handle               int
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

// decide follows a packet through a chain. Where it is dropped is of use only if it is.
func (t Table) decide(chain string, p packet, depth int) (verdict, Drop) {
	c := t[chain]
	// The cluster's own chains decide about packets through this machine, and about no others.
	if c == nil || depth > deepest || clusterChain(chain) && p.in == "" {
		return returns, Drop{}
	}
	for _, r := range c.rules {
		may, certain := r.matches(p)
		if !may {
			continue
		}
		result, at := r.verdict, Drop{Family: c.family, Table: c.table, Chain: chain}
		if len(r.ports) > 0 || len(r.way) > 0 {
			at.Handle = r.handle
		}
		if result == jumps || result == gotos {
			result, at = t.decide(r.target, p, depth+1)
			if result == returns && (r.verdict == jumps || !certain) {
				continue
			}
		}
		if result == proceeds || result == drops && !certain {
			continue
		}
		return result, at
	}
	return returns, Drop{}
}

// clusterChain says whether a chain is kube-proxy's, kubelet's, flannel's or a CNI plugin's: they are no firewalls.
func clusterChain(name string) bool {
	upper := strings.ToUpper(name)
	return slices.ContainsFunc([]string{"KUBE-", "FLANNEL-", "CNI-"}, func(prefix string) bool { return strings.HasPrefix(upper, prefix) })
}

// Blocks says where the table drops a flow at the hook input or output, if it does for certain. peer is the other machine, the zero address
// when it may be any.
func (t Table) Blocks(hook string, f Flow, peer netip.Addr) Drop {
	if hook == "output" {
		return t.blocks(hook, packet{Flow: f, to: peer})
	}
	return t.blocks(hook, packet{Flow: f, from: peer})
}

// Way is how a packet goes through this machine.
type Way struct {
	From, To netip.Addr
	In, Out  string // interfaces
}

// Stops says where the table drops a flow that is forwarded, if it does for certain.
func (t Table) Stops(w Way, f Flow) Drop {
	return t.blocks("forward", packet{f, w.From, w.To, w.In, w.Out})
}

func (t Table) blocks(hook string, p packet) Drop {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		c := t[name]
		if c.hook != hook {
			continue
		}
		switch result, at := t.decide(name, p, 0); result {
		case drops:
			at.Where = c.name
			return at
		case returns:
			if c.policy == drops {
				return Drop{Where: c.name + " (policy)", Policy: true, Family: c.family, Table: c.table, Chain: name}
			}
		}
	}
	return Drop{}
}
