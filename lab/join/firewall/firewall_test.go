package firewall

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFirewalls(t *testing.T) {
	kubelet, overlay, etcd, ssh := Flow{"tcp", 10250}, Flow{"udp", 8472}, Flow{"tcp", 2380}, Flow{"tcp", 22}
	api := Flow{"tcp", 6443}
	tests := []struct {
		name  string
		file  string
		hook  string
		flow  Flow
		where string // "" is let through
	}{
		{"ufw drops what it does not name", "ufw.iptables", "input", kubelet, "INPUT (policy)"},
		{"ufw drops the overlay", "ufw.iptables", "input", overlay, "INPUT (policy)"},
		{"ufw lets ssh in", "ufw.iptables", "input", ssh, ""},
		{"ufw lets a range in", "ufw.iptables", "input", etcd, ""},
		{"ufw lets everything out", "ufw.iptables", "output", api, ""},
		{"kube-proxy is no firewall", "kube-proxy.iptables", "input", kubelet, ""},
		{"nor at the way out", "kube-proxy.iptables", "output", api, ""},
		{"a list of ports is rejected", "reject.iptables", "input", etcd, "INPUT"},
		{"others are not", "reject.iptables", "input", kubelet, ""},
		{"a source that is let in may be the peer", "reject.iptables", "input", overlay, ""},
		{"the way to the API server is closed", "reject.iptables", "output", api, "OUTPUT"},
		{"firewalld rejects at the end", "firewalld.nft.json", "input", kubelet, "inet firewalld filter_INPUT"},
		{"firewalld lets ssh in", "firewalld.nft.json", "input", ssh, ""},
		{"firewalld opens a set of ports", "firewalld.nft.json", "input", etcd, ""},
		{"firewalld lets everything out", "firewalld.nft.json", "output", api, ""},
		{"a verdict map over ports", "vmap.nft.json", "input", etcd, "inet guard in"},
		{"and what it lets in", "vmap.nft.json", "input", kubelet, ""},
		{"a policy of its own", "vmap.nft.json", "input", overlay, "inet guard in (policy)"},
		{"kube-proxy's and flannel's tables are no firewalls", "kube-proxy.nft.json", "input", kubelet, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", tt.file))
			if err != nil {
				t.Fatal(err)
			}
			parse := ParseIPTables
			if strings.HasSuffix(tt.file, ".json") {
				parse = ParseNFT
			}
			tables, err := parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			where := ""
			for _, table := range tables {
				if where = table.Blocks(tt.hook, tt.flow, netip.Addr{}).Where; where != "" {
					break
				}
			}
			if where != tt.where {
				t.Errorf("%s %s: blocked by %q, want %q", tt.hook, tt.flow, where, tt.where)
			}
		})
	}
}

// What a rule's conditions mean for a new connection from another machine.
func TestIPTablesRules(t *testing.T) {
	tests := []struct {
		rule    string
		blocked bool
	}{
		{"-A INPUT -j DROP", true},
		{"-A INPUT -p tcp -j REJECT --reject-with icmp-port-unreachable", true},
		{"-A INPUT -p udp -j DROP", false},
		{"-A INPUT -p tcp --dport 10000:10300 -j DROP", true},
		{"-A INPUT -p tcp -m multiport --dports 22,10250 -j DROP", true},
		{"-A INPUT -p tcp -m multiport --dports 22,443 -j DROP", false},
		{"-A INPUT -p tcp ! --dport 22 -j DROP", false}, // everything else, of which nothing certain is known
		{"-A INPUT -i lo -j DROP", false},
		{"-A INPUT ! -i lo -j DROP", true},
		{"-A INPUT -i eth1 -j DROP", false},
		{"-A INPUT -s 192.0.2.0/24 -j DROP", false},
		{"-A INPUT -m conntrack --ctstate INVALID -j DROP", false},
		{"-A INPUT -m conntrack --ctstate INVALID,NEW -j DROP", true},
		{"-A INPUT -m state --state RELATED,ESTABLISHED -j ACCEPT\n-A INPUT -j DROP", true},
		{"-A INPUT -s 10.0.0.0/8 -j ACCEPT\n-A INPUT -j DROP", false},
		{"-A INPUT -p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -j DROP", true},
		{"-A INPUT -p tcp -m tcp ! --syn -j DROP", false},
		{"-A INPUT -m mark --mark 0x8000/0x8000 -j DROP", false},
		{"-A INPUT -m comment --comment \"let nobody -j ACCEPT in\" -j DROP", true},
		{"-A INPUT -j LOG --log-prefix \"in: \"\n-A INPUT -j DROP", true},
		{"-A INPUT -j NOSUCH", false},
		{":own - [0:0]\n-A INPUT -j own\n-A own -p tcp -m tcp --dport 22 -j RETURN\n-A own -j DROP", true},
		{":own - [0:0]\n-A INPUT -j own\n-A own -p tcp -m tcp --dport 10250 -j RETURN\n-A own -j DROP", false},
		{":own - [0:0]\n-A INPUT -j own\n-A own -m addrtype --dst-type LOCAL -j RETURN\n-A own -j DROP", false},
		{":own - [0:0]\n-A INPUT -s 192.0.2.1/32 -j own\n-A own -j DROP", false},
		{":own - [0:0]\n-A INPUT -g own\n-A INPUT -j DROP\n-A own -p udp -j DROP", false},
		{":circle - [0:0]\n-A INPUT -j circle\n-A circle -j circle", false},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			tables, err := ParseIPTables("*nat\n:INPUT DROP [0:0]\nCOMMIT\n*filter\n:INPUT ACCEPT [0:0]\n" + tt.rule + "\nCOMMIT\n")
			if err != nil || len(tables) != 1 {
				t.Fatal(tables, err)
			}
			if got := tables[0].Blocks("input", Flow{"tcp", 10250}, netip.Addr{}); (got.Where != "") != tt.blocked {
				t.Errorf("blocked by %+v", got)
			}
		})
	}
}

func TestParseNFTRefusesOtherText(t *testing.T) {
	if _, err := ParseNFT("Error: syntax"); err == nil {
		t.Error("no error")
	}
}

// What a rule's conditions mean for a packet that is forwarded from a pod of this node to one of another.
func TestForwardedPackets(t *testing.T) {
	way := Way{From: netip.MustParseAddr("10.244.1.2"), To: netip.MustParseAddr("10.244.2.2"), In: "cni0", Out: "flannel.1"}
	tests := []struct {
		rules string
		stops bool
	}{
		{":FORWARD ACCEPT [0:0]", false},
		{":FORWARD DROP [0:0]", true},
		{":FORWARD ACCEPT [0:0]\n-A FORWARD -j DROP", true},
		{":FORWARD DROP [0:0]\n:FLANNEL-FWD - [0:0]\n-A FORWARD -j FLANNEL-FWD\n-A FLANNEL-FWD -s 10.244.0.0/16 -j ACCEPT\n-A FLANNEL-FWD -d 10.244.0.0/16 -j ACCEPT", false},
		{":FORWARD DROP [0:0]\n:FLANNEL-FWD - [0:0]\n-A FORWARD -j FLANNEL-FWD\n-A FLANNEL-FWD -s 10.99.0.0/16 -j ACCEPT", true},
		{":FORWARD ACCEPT [0:0]\n:KUBE-FORWARD - [0:0]\n-A FORWARD -j KUBE-FORWARD\n-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP", false},
		{":FORWARD ACCEPT [0:0]\n-A FORWARD -i cni0 -j DROP", true},
		{":FORWARD ACCEPT [0:0]\n-A FORWARD -i cni+ -j DROP", true},
		{":FORWARD ACCEPT [0:0]\n-A FORWARD -i eth0 -j DROP", false},
		{":FORWARD ACCEPT [0:0]\n-A FORWARD ! -o cni0 -j DROP", true},
		{":FORWARD ACCEPT [0:0]\n-A FORWARD ! -o flannel.1 -j DROP", false},
		{":FORWARD ACCEPT [0:0]\n-A FORWARD -d 10.244.2.2/32 -j DROP", true},
		{":FORWARD ACCEPT [0:0]\n-A FORWARD ! -s 10.244.0.0/16 -j DROP", false},
		{":FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -m tcp --dport 25 -j DROP", false},
		{":FORWARD ACCEPT [0:0]\n-A FORWARD -s 10.244.0.0/16 -m mark --mark 0x1/0x1 -j DROP", false},
		{":FORWARD DROP [0:0]\n-A FORWARD -m mark --mark 0x1/0x1 -j ACCEPT", false},
	}
	for _, tt := range tests {
		t.Run(tt.rules, func(t *testing.T) {
			tables, err := ParseIPTables("*filter\n" + tt.rules + "\nCOMMIT\n")
			if err != nil || len(tables) != 1 {
				t.Fatal(tables, err)
			}
			if got := tables[0].Stops(way, Flow{Proto: "tcp"}); (got.Where != "") != tt.stops {
				t.Errorf("stopped by %+v", got)
			}
		})
	}
}

func TestTranslatesIPTables(t *testing.T) {
	const jumps = "-A PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\n-A OUTPUT -j KUBE-SERVICES\n"
	for text, want := range map[string]bool{
		"*nat\n" + jumps + "COMMIT\n":                true,
		"*filter\n" + jumps + "COMMIT\n":             false,
		"*nat\n-A OUTPUT -j KUBE-SERVICES\nCOMMIT\n": false,
		"": false,
	} {
		if got := TranslatesIPTables(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
