package join

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8slab/lab/join/firewall"
	"k8slab/lab/symptom"
)

// proxyTime is how old kube-proxy's container is when its rules must be there.
const proxyTime = time.Minute

// Forwarding finds what keeps this member from passing packets on: from pod to pod, here and to other nodes, and from Services to their
// pods. It sends none. Its error is a question that was not answered.
func Forwarding(ctx context.Context, m Machine) ([]Defect, error) {
	var found []Defect
	for _, link := range []string{bridgeLink, tunnelLink} {
		name := "net.ipv4.conf." + link + ".forwarding"
		file := "/proc/sys/net/ipv4/conf/" + link + "/forwarding" // the link's name has a dot, as sysctl's names have
		if m.Exists(file) && m.Line(file) == "0" {
			d := wrong(symptom.KernelPrereqMissing, name, "it is 0: packets that come in there are not passed on")
			d.Hint = "echo 1 >" + file
			found = append(found, d)
		}
	}
	printed, err := m.rulesets(ctx)
	if err != nil {
		return found, err
	}
	tables, sources, err := parseRulesets(printed)
	if err != nil {
		return found, err
	}
	found = append(found, m.stops(tables, sources)...)
	proxy, err := m.services(ctx, printed)
	return append(found, proxy...), err
}

// stops finds the rules that drop packets of pods.
func (m Machine) stops(tables []firewall.Table, sources []string) []Defect {
	var found []Defect
	for _, way := range m.podWays() {
		for i, t := range tables {
			for _, f := range []firewall.Flow{{Proto: "tcp"}, {Proto: "udp", Port: 53}} {
				at := t.Stops(way, f)
				if at.Where == "" || slices.ContainsFunc(found, func(d Defect) bool { return strings.HasSuffix(d.Text, " "+at.Where) }) {
					continue
				}
				d := wrong(symptom.FirewallBlocked, sources[i], "a packet from pod %s to pod %s (%s, from %s to %s) is dropped by %s",
					way.From, way.To, f.Proto, way.In, way.Out, at.Where)
				d.Hint = letThrough(at) + "nft list ruleset; iptables -S FORWARD: remove the rule, or set the chain's policy to accept"
				found = append(found, d)
			}
		}
	}
	return found
}

// podWays are the ways of packets between pods: between two of this node, to another node and from there; none without flannel.
func (m Machine) podWays() []firewall.Way {
	if !m.Flannel() {
		return nil
	}
	env := m.SubnetEnv()
	own, err := netip.ParsePrefix(env["FLANNEL_SUBNET"])
	all, allErr := netip.ParsePrefix(env["FLANNEL_NETWORK"])
	if err != nil || allErr != nil || !own.Addr().Is4() || !all.Addr().Is4() || own.Bits() > 30 {
		return nil
	}
	gateway := own.Addr()
	here := gateway.Next()
	ways := []firewall.Way{{From: here, To: here.Next(), In: bridgeLink, Out: bridgeLink}}
	if there := outside(own.Masked(), all.Masked()); there.IsValid() {
		ways = append(ways, firewall.Way{From: here, To: there, In: bridgeLink, Out: tunnelLink},
			firewall.Way{From: there, To: here, In: tunnelLink, Out: bridgeLink})
	}
	return ways
}

// outside is an address of a network that is not in a part of it, the zero one when the part is all of it.
func outside(part, network netip.Prefix) netip.Addr {
	first := network.Addr().As4()
	base := binary.BigEndian.Uint32(first[:])
	for _, n := range []uint32{base + 2, base | ^uint32(0)>>network.Bits() - 1} {
		var raw [4]byte
		binary.BigEndian.PutUint32(raw[:], n)
		if a := netip.AddrFrom4(raw); !part.Contains(a) {
			return a
		}
	}
	return netip.Addr{}
}

// rulesElsewhere reports whether kube-proxy's rules may be where the machine's tools do not show them: in IPVS, or in the older tables of a
// machine that has only tools for nftables.
func (m Machine) rulesElsewhere() bool {
	if m.made() { // whose tools and whose kube-proxy are known
		return false
	}
	if strings.Count(m.Line("/proc/net/ip_vs"), "\n") > 2 { // below three lines of heading
		return true
	}
	return m.Line("/proc/net/ip_tables_names") != "" && m.Find("iptables-legacy-save") == ""
}

// services judges whether packets to Services meet kube-proxy's rules, where it has run long enough to have written them.
func (m Machine) services(ctx context.Context, printed []string) ([]Defect, error) {
	_, containers, err := Containers(ctx, m)
	if err != nil {
		return nil, nil // without a runtime nobody knows, and the runtime has checks of its own
	}
	runs := slices.ContainsFunc(containers, func(c Container) bool {
		return c.Name == "kube-proxy" && c.State == "CONTAINER_RUNNING" && m.Now().Sub(time.Unix(c.Created, 0)) > proxyTime
	})
	if !runs || strings.Join(printed, "") == "" || m.rulesElsewhere() { // or no tool shows the rules
		return nil, nil
	}
	for i, f := range filters {
		if printed[i] == "" {
			continue
		}
		there := firewall.TranslatesIPTables(printed[i])
		if f.name == "nftables" {
			if there, err = firewall.Translates(printed[i]); err != nil {
				return nil, fmt.Errorf("nft: %w", err)
			}
		}
		if there {
			return nil, nil
		}
	}
	d := wrong(symptom.KubeProxyCrash, "kube-proxy", "it runs, and its rules are not in the packet filter: no Service works on this node")
	d.Hint = "kubectl -n kube-system delete pod -l k8s-app=kube-proxy --field-selector spec.nodeName=NODE: the new one writes them"
	return []Defect{d}, nil
}
