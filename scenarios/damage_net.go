package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
)

// Damage of a node's packet filter.

var netGroups = []group{{"port", []string{"drop-in", "drop-out"}}, {"chain", []string{"flush", "drop"}}}

// lastPort is below those that the kernel gives to clients, which are others every time.
const lastPort = 32767

// listNet lists the ports that something listens on, or that the node is connected to, as tcp/PORT; or the chains of the packet filter, as
// FAMILY/TABLE/CHAIN.
func listNet(ctx context.Context, t Target, group, how string) ([]string, error) {
	if group == "port" {
		which := []string{"--listening"}
		if how == "drop-out" {
			which = []string{"state", "established"}
		}
		out, err := t.Run(ctx, t.Node, append([]string{"ss", "--no-header", "--tcp", "--udp", "--numeric"}, which...)...)
		return portsOf(out), err
	}
	out, err := t.Run(ctx, t.Node, "nft", "--json", "list", "chains")
	var list struct {
		Nftables []struct {
			Chain struct{ Family, Table, Name string }
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &list)
	}
	var chains []string
	for _, n := range list.Nftables {
		if c := n.Chain; c.Name != "" && (how == "flush" || c.Table != "nat") { // translation of addresses drops nothing
			chains = append(chains, c.Family+"/"+c.Table+"/"+c.Name)
		}
	}
	return chains, err
}

// portsOf reads what ss prints: the protocol, the state, two queues, and the local address and port; for a given state, the protocol, two
// queues, the local address, and the other one.
func portsOf(text string) []string {
	ports := map[string]bool{}
	for _, line := range nonEmptyLines(text) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		_, port, err := net.SplitHostPort(fields[4])
		n := 0
		if _, scanErr := fmt.Sscan(port, &n); err == nil && scanErr == nil && n > 0 && n <= lastPort {
			ports[fmt.Sprintf("%s/%d", fields[0], n)] = true
		}
	}
	return slices.Sorted(maps.Keys(ports))
}

func makeNet(ctx context.Context, t Target, d Damage) error {
	if proto, port, found := strings.Cut(d.What, "/"); found && strings.HasPrefix(d.How, "drop-") {
		drop := proto + " dport " + port + " drop"
		if d.How == "drop-in" {
			return t.wall(ctx, drop, "accept")
		}
		return t.wall(ctx, "accept", drop)
	}
	chain := strings.SplitN(d.What, "/", 3)
	if d.How == "flush" {
		return t.run(ctx, append([]string{"nft", "flush", "chain"}, chain...)...)
	}
	return t.run(ctx, append(append([]string{"nft", "insert", "rule"}, chain...), "drop", "comment", `"fault"`)...)
}

// undoNet removes the wall, or the rule that drops. Nobody kept the rules of a flushed chain: kube-proxy and flannel make them again when
// the machine starts.
func undoNet(ctx context.Context, t Target, d Damage, force bool) error {
	switch {
	case strings.HasPrefix(d.How, "drop-"):
		return openWall(ctx, t)
	case d.How == "drop":
		return t.shell(ctx, t.Node, `
			nft --handle list chain "$1" "$2" "$3" 2>/dev/null | sed -n 's/.*comment "fault".*# handle \([0-9]*\)$/\1/p' | while read -r handle; do
				nft delete rule "$1" "$2" "$3" handle "$handle"
			done`, strings.SplitN(d.What, "/", 3)...)
	case force:
		_, err := t.Labctl(ctx, "power", "off", t.Node)
		return err
	}
	return nil
}
