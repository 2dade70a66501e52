package join

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"k8slab/lab/join/firewall"
	"k8slab/lab/symptom"
)

func checkFirewall(ctx context.Context, p *preflight) Check {
	tables, sources, err := p.m.firewalls(ctx)
	if err != nil {
		return unmade(err)
	}
	var closed, overlay []string
	undo, peers := "", p.peers()
	see := func(hook string, f firewall.Flow, peers []netip.Addr, list *[]string) {
		said := false
		for _, peer := range append([]netip.Addr{{}}, peers...) {
			for i, t := range tables {
				at := t.Blocks(hook, f, peer)
				if at.Where == "" {
					continue
				}
				if !said {
					*list = append(*list, fmt.Sprintf("%s %s by %s %s", hook, f, sources[i], at.Where))
					said = true
				}
				// A policy for packets to the machine itself is there for more than the cluster's ports.
				if one := letThrough(at); !at.Policy && !strings.Contains(undo, one) {
					undo += one
				}
			}
		}
	}
	for _, port := range neededPorts(p.t)[:openPorts(p.t)] {
		flow := firewall.Flow{Proto: "tcp", Port: port}
		see("input", flow, peers, &closed)
		if p.t.ControlPlane { // they ask each other's etcd, and every kubelet
			see("output", flow, peers, &closed)
		}
	}
	if _, port, err := net.SplitHostPort(p.t.Endpoint); err == nil {
		if n, err := strconv.Atoi(port); err == nil {
			see("output", firewall.Flow{Proto: "tcp", Port: n}, nil, &closed)
		}
	}
	flannel := p.m.MayBeFlannel()
	if flannel {
		see("input", firewall.Flow{Proto: "udp", Port: 8472}, peers, &overlay)
	}
	c := judgeFirewall(p.t, flannel, closed, overlay)
	if c.Result != OK {
		c.Hint = undo + c.Hint
	}
	return c
}

// peers are the addresses of the cluster's other control planes, as far as they are known. Of the ports that are looked at, each needs all.
func (p *preflight) peers() (found []netip.Addr) {
	for _, peer := range p.t.Peers {
		if a, err := netip.ParseAddr(peer); err == nil && peer != p.t.Address {
			found = append(found, a)
		}
	}
	return found
}

// letThrough is the command by which a packet is no longer dropped there, and "or"; "" for the tables of programs, which have their own.
func letThrough(at firewall.Drop) string {
	ofIPTables := at.Family == "ip" && slices.Contains([]string{"filter", "nat", "mangle", "raw", "security"}, at.Table)
	switch {
	case at.Family == "", at.Table == "firewalld", ofIPTables:
		return ""
	case at.Policy:
		return symptom.AcceptPackets.With(at.Family, at.Table, at.Chain) + ", or "
	case at.Handle > 0:
		return symptom.DeleteRule.With(at.Family, at.Table, at.Chain, strconv.Itoa(at.Handle)) + ", or "
	}
	return ""
}

// openPorts is how many of the needed ports others must reach: the last two of a control plane's are asked by itself alone.
func openPorts(t Target) int {
	if t.ControlPlane {
		return 4
	}
	return 1
}

func judgeFirewall(t Target, flannel bool, closed, overlay []string) Check {
	ports := "10250/tcp"
	if flannel {
		ports += " 8472/udp"
	}
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

// filters are the tools that show a packet filter, and how to read what each prints. The rules of firewalld and ufw are among them.
var filters = []struct {
	name  string
	argv  []string
	parse func(string) ([]firewall.Table, error)
	loads bool // the kernel loads nf_tables to answer it
}{
	{"nftables", []string{"nft", "--json", "list", "ruleset"}, firewall.ParseNFT, true},
	{"iptables", []string{"iptables-save"}, firewall.ParseIPTables, true},
	{"iptables", []string{"iptables-legacy-save"}, firewall.ParseIPTables, false},
}

// rulesets are what the tools print, "" for those that are not there or fail. A missing tool is no error.
func (m Machine) rulesets(ctx context.Context) ([]string, error) {
	printed := make([]string, len(filters))
	var failures []error
	unloaded := m.kernel().Unloaded("nf_tables") // a kernel without it has no such rules, and a question changes nothing
	for i, f := range filters {
		if m.Find(f.argv[0]) == "" || f.loads && unloaded {
			continue
		}
		out, err := m.Run(ctx, f.argv...)
		if err != nil && !errors.Is(err, exec.ErrNotFound) {
			failures = append(failures, fmt.Errorf("%s: %w", f.argv[0], err))
		}
		if err == nil {
			printed[i] = out
		}
	}
	return printed, errors.Join(failures...)
}

// firewalls reads every table of rules that this machine's tools show. The tables of a tool that fails are left out.
func (m Machine) firewalls(ctx context.Context) ([]firewall.Table, []string, error) {
	printed, err := m.rulesets(ctx)
	tables, sources, unread := parseRulesets(printed)
	if len(tables) > 0 { // some rules are better than none
		return tables, sources, nil
	}
	return nil, nil, errors.Join(err, unread)
}

func parseRulesets(printed []string) (tables []firewall.Table, sources []string, err error) {
	var failures []error
	for i, f := range filters {
		if printed[i] == "" {
			continue
		}
		found, err := f.parse(printed[i])
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", f.argv[0], err))
		}
		for _, t := range found {
			tables, sources = append(tables, t), append(sources, f.name)
		}
	}
	return tables, sources, errors.Join(failures...)
}
