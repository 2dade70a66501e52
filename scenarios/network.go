package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8slab/config"
)

// wall puts rules of nftables on the node, for packets that come in and for those that go out. It has no room for a second one.
func (t Target) wall(ctx context.Context, input, output string) error {
	return t.run(ctx, "nft", wallText(input, output))
}

func wallText(input, output string) string {
	return fmt.Sprintf("table inet fault { chain input { type filter hook input priority -5; %s; }; "+
		"chain output { type filter hook output priority -5; %s; }; }", input, output)
}

// openWall takes the rules away; that there are none is fine.
var openWall = on("nft", "add table inet fault; delete table inet fault")

// others are the addresses of the other nodes, as nftables writes a set.
func (t Target) others() string {
	var all []string
	for _, m := range t.Members {
		if m.Name != t.Node {
			all = append(all, m.Address)
		}
	}
	return "{ " + strings.Join(all, ", ") + " }"
}

func (t Target) controlPlanes() (all []Member) {
	for _, m := range t.Members {
		if m.Role == config.ControlPlane {
			all = append(all, m)
		}
	}
	return all
}

// otherControlPlanes are all but the node.
func (t Target) otherControlPlanes() []Member {
	return slices.DeleteFunc(t.controlPlanes(), func(m Member) bool { return m.Name == t.Node })
}

// threeControlPlanes says why a fault that takes one of them away cannot be made: etcd would have no quorum.
func threeControlPlanes(t Target) string {
	if len(t.otherControlPlanes()) < 2 {
		return "with fewer than three control planes etcd loses its quorum"
	}
	return ""
}

// shaper is the handle of a queue that slows a link down. tc knows hexadecimal ones only.
const shaper = "fa17:"

// slowPeers lets the other control planes send the node no more than rate of what etcd's members tell each other.
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

// freePeers ends slowPeers.
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
