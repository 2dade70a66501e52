package join

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"k8slab/lab/symptom"
)

// A firewall is read as chains of rules and asked what becomes of a new connection from another machine. Only what is certain counts as
// blocked: a rule with a condition that cannot be judged here (a source, an interface, a mark) may let packets through, but it never drops.

// flow is a new connection of which one packet meets the rules.
type flow struct {
	proto string // tcp or udp
	port  int    // destination
}

func (f flow) String() string { return fmt.Sprintf("%d/%s", f.port, f.proto) }

type portRange struct{ from, to int }

// fwRule is one rule, as far as it matters.
type fwRule struct {
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

// fwChain is a chain; one with a hook is where packets enter.
type fwChain struct {
	name   string // as people read it
	hook   string // input, output or ""
	policy verdict
	rules  []fwRule
}

// fwTable maps names to chains.
type fwTable map[string]*fwChain

func (r fwRule) matches(f flow) bool {
	if r.never || r.proto != "" && r.proto != f.proto {
		return false
	}
	return len(r.ports) == 0 || slices.ContainsFunc(r.ports, func(p portRange) bool { return p.from <= f.port && f.port <= p.to })
}

// deepest bounds chains that jump in a circle, which no kernel accepts but a text may show.
const deepest = 20

// decide follows a flow through a chain.
func (t fwTable) decide(chain string, f flow, depth int) verdict {
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

// blocks says where the table drops a flow at a hook, "" when it does not for certain.
func (t fwTable) blocks(hook string, f flow) string {
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

func sortedNames(t fwTable) []string {
	names := make([]string, 0, len(t))
	for name := range t {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func checkFirewall(ctx context.Context, p *preflight) Check {
	tables, sources, err := p.m.firewalls(ctx)
	if err != nil {
		return unmade(err)
	}
	var closed, overlay []string
	see := func(hook string, f flow, list *[]string) {
		for i, t := range tables {
			if where := t.blocks(hook, f); where != "" {
				*list = append(*list, fmt.Sprintf("%s %s by %s %s", hook, f, sources[i], where))
				return
			}
		}
	}
	for _, port := range neededPorts(p.t)[:openPorts(p.t)] {
		see("input", flow{"tcp", port}, &closed)
	}
	if _, port, err := net.SplitHostPort(p.t.Endpoint); err == nil {
		if n, err := strconv.Atoi(port); err == nil {
			see("output", flow{"tcp", n}, &closed)
		}
	}
	see("input", flow{"udp", 8472}, &overlay)
	return judgeFirewall(p.t, closed, overlay)
}

// openPorts is how many of the needed ports others must reach: the last two of a control plane's are asked by itself alone.
func openPorts(t Target) int {
	if t.ControlPlane {
		return 4
	}
	return 1
}

func judgeFirewall(t Target, closed, overlay []string) Check {
	ports := "10250/tcp 8472/udp"
	if t.ControlPlane {
		ports = "6443/tcp 2379-2380/tcp " + ports
	}
	hint := "open " + ports + ": firewall-cmd --permanent --add-port=PORT/PROTO && firewall-cmd --reload; or ufw allow PORT/PROTO; or iptables -I INPUT"
	switch {
	case len(closed) > 0:
		return blocked(symptom.FirewallBlocked, hint, "%s", strings.Join(append(closed, overlay...), "; "))
	case len(overlay) > 0:
		return warn(symptom.FirewallBlocked, hint, "%s: flannel's pods will not reach other nodes", strings.Join(overlay, "; "))
	}
	return ok("no rule for certain blocks %s", ports)
}

// firewalls reads every table of rules that this machine's tools show; firewalld's and ufw's rules are among them. A tool that is not
// installed has made no rules; one that fails leaves its own unread.
func (m Machine) firewalls(ctx context.Context) ([]fwTable, []string, error) {
	var tables []fwTable
	var sources []string
	var failures []error
	for _, reader := range []struct {
		name  string
		argv  []string
		parse func(string) ([]fwTable, error)
	}{
		{"nftables", []string{"nft", "--json", "list", "ruleset"}, parseNFT},
		{"iptables", []string{"iptables-save"}, parseIPTables},
		{"iptables", []string{"iptables-legacy-save"}, parseIPTables},
	} {
		if m.Find(reader.argv[0]) == "" {
			continue
		}
		out, err := m.Run(ctx, reader.argv...)
		if errors.Is(err, exec.ErrNotFound) {
			continue
		}
		if err == nil {
			var found []fwTable
			found, err = reader.parse(out)
			for _, t := range found {
				tables, sources = append(tables, t), append(sources, reader.name)
			}
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", reader.argv[0], err))
		}
	}
	if len(tables) > 0 { // some rules are better than none
		return tables, sources, nil
	}
	return nil, nil, errors.Join(failures...)
}
