package join

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
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
	see := func(hook string, f firewall.Flow, list *[]string) {
		for i, t := range tables {
			if where := t.Blocks(hook, f); where != "" {
				*list = append(*list, fmt.Sprintf("%s %s by %s %s", hook, f, sources[i], where))
				return
			}
		}
	}
	for _, port := range neededPorts(p.t)[:openPorts(p.t)] {
		see("input", firewall.Flow{Proto: "tcp", Port: port}, &closed)
	}
	if _, port, err := net.SplitHostPort(p.t.Endpoint); err == nil {
		if n, err := strconv.Atoi(port); err == nil {
			see("output", firewall.Flow{Proto: "tcp", Port: n}, &closed)
		}
	}
	see("input", firewall.Flow{Proto: "udp", Port: 8472}, &overlay)
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

// filters are the tools that show a packet filter, and how to read what each prints. The rules of firewalld and ufw are among them.
var filters = []struct {
	name  string
	argv  []string
	parse func(string) ([]firewall.Table, error)
}{
	{"nftables", []string{"nft", "--json", "list", "ruleset"}, firewall.ParseNFT},
	{"iptables", []string{"iptables-save"}, firewall.ParseIPTables},
	{"iptables", []string{"iptables-legacy-save"}, firewall.ParseIPTables},
}

// rulesets are what the tools print, "" for those that are not there or fail. A missing tool is no error.
func (m Machine) rulesets(ctx context.Context) ([]string, error) {
	printed := make([]string, len(filters))
	var failures []error
	for i, f := range filters {
		if m.Find(f.argv[0]) == "" {
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
