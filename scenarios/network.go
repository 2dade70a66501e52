package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8slab/config"
)

// wall adds nftables rules for incoming and outgoing packets on the node. A node can have only one wall.
func (t Target) wall(ctx context.Context, input, output string) error {
	return t.run(ctx, "nft", wallText(input, output))
}

func wallText(input, output string) string {
	return fmt.Sprintf("table inet fault { chain input { type filter hook input priority -5; %s; }; "+
		"chain output { type filter hook output priority -5; %s; }; }", input, output)
}

// openWall removes the rules, if there are any.
var openWall = on("nft", "add table inet fault; delete table inet fault")

// others is the addresses of the other nodes, as an nftables set.
func (t Target) others() string {
	var all []string
	for _, m := range t.Members {
		if m.Name != t.Node {
			all = append(all, m.Address)
		}
	}
	return "{ " + strings.Join(all, ", ") + " }"
}

func (t Target) controlPlanes() []Member {
	return slices.DeleteFunc(slices.Clone(t.Members), func(m Member) bool { return m.Role != config.ControlPlane })
}

// otherControlPlanes are the control planes but the node.
func (t Target) otherControlPlanes() []Member {
	return slices.DeleteFunc(t.controlPlanes(), func(m Member) bool { return m.Name == t.Node })
}

// threeControlPlanes is for faults that stop one control plane: with fewer than three, etcd would lose its quorum.
func threeControlPlanes(t Target) string {
	if len(t.otherControlPlanes()) < 2 {
		return "with fewer than three control planes etcd loses its quorum"
	}
	return ""
}

// anotherControlPlane is for faults of a control plane that the cluster can be asked about only through another one.
func anotherControlPlane(t Target) string {
	if t.ControlPlane == t.Node {
		return "with no other control plane nothing can ask the cluster meanwhile"
	}
	return ""
}

// seenFromOutside is for faults that show when another node connects to the node's pods.
func seenFromOutside(t Target) string {
	if t.ControlPlane == t.Node {
		return "with no other control plane nothing connects to the node's pods from outside"
	}
	return ""
}

// shaper is the handle of a tc queue that slows a link down. tc takes hexadecimal handles only.
const shaper = "fa17:"

// slowPeers limits the etcd peer traffic from the other control planes to the node to rate.
func (t Target) slowPeers(ctx context.Context, rate string) error {
	for _, m := range t.otherControlPlanes() {
		err := t.shell(ctx, m.Name, `
			dev=$(ip -oneline route get "$1" | sed -n 's/.* dev \([^ ]*\) .*/\1/p')
			tc qdisc replace dev "$dev" root handle "$3" htb
			tc class add dev "$dev" parent "$3" classid "${3}1" htb rate "$2"
			tc qdisc add dev "$dev" parent "${3}1" tbf rate "$2" burst 32k latency 1s
			for side in sport dport; do
				tc filter add dev "$dev" parent "$3" protocol ip u32 match ip dst "$1/32" match ip "$side" 2380 0xffff flowid "${3}1"
			done`, t.Address, rate, shaper)
		if err != nil {
			return err
		}
	}
	return nil
}

// freePeers undoes slowPeers.
func (t Target) freePeers(ctx context.Context) error {
	for _, m := range t.otherControlPlanes() {
		err := t.shell(ctx, m.Name, `
			dev=$(ip -oneline route get "$1" | sed -n 's/.* dev \([^ ]*\) .*/\1/p')
			! tc qdisc show dev "$dev" | grep -qw "$2" || tc qdisc del dev "$dev" root`, t.Address, shaper)
		if err != nil {
			return err
		}
	}
	return nil
}
