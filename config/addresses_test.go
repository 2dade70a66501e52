package config

import (
	"net/netip"
	"strings"
	"testing"
)

// addressed is a file with this network and these nodes.
func addressed(t *testing.T, network, nodes string) *Cluster {
	t.Helper()
	c, _, err := Parse("f", []byte("network: {"+network+"}\nnodes:\n"+nodes))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const bare = "- {name: w1, role: worker}\n- {name: cp1, role: control-plane}\n- {name: cp2, role: control-plane, onboard: true}\n"

func addressesOf(c *Cluster) string {
	all := []string{c.Network.CIDR.String(), c.Network.VirtualIP.String()}
	for _, n := range c.Nodes {
		all = append(all, n.Name+"="+n.IP.String())
	}
	return strings.Join(all, " ")
}

func TestAddressesThatAreNotInTheFile(t *testing.T) {
	for _, tt := range []struct{ name, network, nodes, want string }{
		{"none at all", "", bare, "10.30.0.0/24 10.30.0.10 w1=10.30.0.21 cp1=10.30.0.11 cp2=10.30.0.12"},
		{"auto", "cidr: auto", bare, "10.30.0.0/24 10.30.0.10 w1=10.30.0.21 cp1=10.30.0.11 cp2=10.30.0.12"},
		{"a network", "cidr: 10.9.0.0/16", bare, "10.9.0.0/16 10.9.0.10 w1=10.9.0.21 cp1=10.9.0.11 cp2=10.9.0.12"},
		{"a small network", "cidr: 10.9.0.0/28", bare, "10.9.0.0/28 10.9.0.10 w1=10.9.0.2 cp1=10.9.0.11 cp2=10.9.0.12"},
		{"some", "virtual_ip: 10.30.0.12", "- {name: cp1, role: control-plane}\n- {name: cp2, role: control-plane, ip: 10.30.0.11}\n",
			"10.30.0.0/24 10.30.0.12 cp1=10.30.0.13 cp2=10.30.0.11"},
	} {
		if got := addressesOf(addressed(t, tt.network, tt.nodes)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	_, _, err := Parse("f", []byte("network: {cidr: auto}\nnodes:\n- {name: cp1, role: control-plane, ip: 10.30.0.11}\n"))
	if err == nil || !strings.Contains(err.Error(), "f:1: network.cidr: auto chooses addresses too") {
		t.Errorf("auto and an address: %v", err)
	}
	full := "- {name: cp1, role: control-plane}\n"
	for i := range 13 {
		full += "- {name: w" + string(rune('a'+i)) + ", role: worker}\n"
	}
	if _, _, err = Parse("f", []byte("network: {cidr: 10.9.0.0/28}\nnodes:\n"+full)); err == nil || !strings.Contains(err.Error(), "no address left") {
		t.Errorf("more nodes than addresses: %v", err)
	}
}

func TestAutomaticAddressesMove(t *testing.T) {
	c := addressed(t, "", bare)
	c.MoveTo(Networks()[3])
	if got, want := addressesOf(c), "10.33.0.0/24 10.33.0.10 w1=10.33.0.21 cp1=10.33.0.11 cp2=10.33.0.12"; got != want {
		t.Errorf("moved: %s", got)
	}
	c.Reassign(func(name string) (netip.Addr, bool) {
		return netip.MustParseAddr("10.33.0.11"), name == "w1"
	})
	if got, want := addressesOf(c), "10.33.0.0/24 10.33.0.10 w1=10.33.0.11 cp1=10.33.0.12 cp2=10.33.0.13"; got != want {
		t.Errorf("beside a node that has one: %s", got)
	}
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := Parse("made", text)
	if err != nil || addressesOf(again) != addressesOf(c) || again.Network.Auto || again.Nodes[0].Auto {
		t.Errorf("written down and read again: %+v, %v", again, err)
	}
}
