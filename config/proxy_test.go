package config

import (
	"strings"
	"testing"
)

func TestProxy(t *testing.T) {
	const use = "; use one such as http://proxy.example:3128"
	tests := []struct{ network, more, want string }{
		{"proxy: 'http://10.0.0.1:3128', no_proxy: [.home.lan, 192.168.4.0/24, nas], ca_file: /etc/ca.pem", "addons: [proxy]\n", ""},
		{"ca_file: /etc/ca.pem", "", ""},
		{"proxy: 'https://10.0.0.1:3128'", "", "2: network.proxy: it is not the http:// URL of a proxy" + use},
		{"proxy: '10.0.0.1:3128'", "", "2: network.proxy: it is not the http:// URL of a proxy" + use},
		{"proxy: 'http://me:secret@10.0.0.1:3128'", "", "2: network.proxy: it has a user or a password, which every pod could read" + use},
		{"proxy: 'http://10.0.0.1:3128/x'", "", "2: network.proxy: it has more than a host and a port" + use},
		{"proxy: 'http://127.0.0.1:3128'", "", "2: network.proxy: nodes have a loopback address of their own"},
		{"proxy: 'http://localhost:3128'", "", "2: network.proxy: nodes have a loopback address of their own"},
		{"proxy: 'http://p:1', no_proxy: ['a b']", "", `2: network.no_proxy[0]: "a b" is neither a host`},
		{"no_proxy: [a]", "", "2: network.no_proxy: there is no network.proxy"},
		{"ca_file: ca.pem", "", "2: network.ca_file: "},
		{"cni: flannel", "addons: [proxy]\n", "3: addons: proxy tells pods of network.proxy, and there is none"},
		{"proxy: 'http://p:1'", "addons: [proxy]\nkubernetes: {version: v1.35.4}\n", "3: addons: proxy needs Kubernetes v1.36.0 or later"},
	}
	for _, tt := range tests {
		t.Run(tt.network, func(t *testing.T) {
			_, _, err := Parse("f", []byte(plane+"network: {"+tt.network+"}\n"+tt.more))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), "f:"+tt.want) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestProxyExceptions(t *testing.T) {
	c, _, err := Parse("f", []byte(plane+"network: {cidr: 10.30.0.0/24, proxy: 'http://p:1', no_proxy: [.home.lan]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "localhost 127.0.0.0/8 10.30.0.0/24 10.244.0.0/16 10.96.0.0/16 .svc .cluster.local cp1 .home.lan"
	if got := strings.Join(c.ProxyExceptions(), " "); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
