package kube

import (
	"fmt"
	"strings"
	"testing"
)

var wantDocuments = Want{Endpoint: "10.0.0.10:6443", Servers: []string{"https://10.0.0.10:6443", "https://10.0.0.11:6443"}, PodSubnet: "10.244.0.0/16", ServiceSubnet: "10.96.0.0/16"}

// soundDocuments are a cluster's, by ConfigMap and key.
var soundDocuments = map[string]map[string]string{
	"kube-system/kubeadm-config": {"ClusterConfiguration": "kind: ClusterConfiguration\nkubernetesVersion: v1.36.3\ncontrolPlaneEndpoint: 10.0.0.10:6443\n" +
		"certificatesDir: /etc/kubernetes/pki\nnetworking: {podSubnet: 10.244.0.0/16, serviceSubnet: 10.96.0.0/16}\n"},
	"kube-system/kubelet-config": {"kubelet": "kind: KubeletConfiguration\nstaticPodPath: /etc/kubernetes/manifests\ncgroupDriver: systemd\nclusterDomain: cluster.local\n" +
		"clusterDNS: [10.96.0.10]\nfailSwapOn: false\nauthentication: {x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}}\n"},
	"kube-public/cluster-info": {"kubeconfig": "kind: Config\nclusters: [{name: '', cluster: {server: 'https://10.0.0.11:6443'}}]\n"},
	"kube-system/kube-proxy": {"config.conf": "kind: KubeProxyConfiguration\nmode: nftables\nclusterCIDR: 10.244.0.0/16\nclientConnection: {kubeconfig: /var/lib/kube-proxy/kubeconfig.conf}\n",
		"kubeconfig.conf": "kind: Config\nclusters: [{name: '', cluster: {server: 'https://10.0.0.10:6443'}}]\n"},
	"kube-system/coredns": {"Corefile": ".:53 {\n  kubernetes cluster.local in-addr.arpa {\n    ttl 30\n  }\n  cache 30\n}\n"},
}

func TestWrongDocuments(t *testing.T) {
	tests := []struct {
		at, from, to string
		want         string // "" for nothing
	}{
		{"", "", "", ""},
		{"kube-system/kubeadm-config", "v1.36.3", "v1.29.0", "kubernetesVersion is v1.29.0, not v1.36.3"},
		{"kube-system/kubeadm-config", "controlPlaneEndpoint", "x", "no controlPlaneEndpoint, which is 10.0.0.10:6443"},
		{"kube-system/kubeadm-config", "certificatesDir: /etc/kubernetes/pki\n", "", ""},
		{"kube-system/kubeadm-config", "/etc/kubernetes/pki", "/x", "certificatesDir is /x"},
		{"kube-system/kubeadm-config", "10.244", "10.9", "networking.podSubnet is 10.9.0.0/16"},
		{"kube-system/kubeadm-config", "kind: ", "{", ""}, // MissingForJoins says so
		{"kube-system/kubelet-config", "10.96.0.10", "10.9.0.10", "clusterDNS is [10.9.0.10]"},
		{"kube-system/kubelet-config", "10.96.0.10", "169.254.20.10", ""},
		{"kube-system/kubelet-config", "failSwapOn: false", "failSwapOn: true", "failSwapOn is true"},
		{"kube-public/cluster-info", "10.0.0.11", "192.0.2.9", "server is https://192.0.2.9:6443"},
		{"kube-system/kube-proxy", "nftables", "ipvs", ""},
		{"kube-system/kube-proxy", "nftables", "userspace", `mode is "userspace"`},
		{"kube-system/kube-proxy", "10.0.0.10", "192.0.2.9", "server is https://192.0.2.9:6443"},
		{"kube-system/kube-proxy", "kind: KubeProxyConfiguration", "damaged", "it is no"},
		{"kube-system/coredns", "cache 30", "cache 9", ""},
		{"kube-system/coredns", "}", "", "a brace too few"},
		{"kube-system/coredns", "kubernetes", "#", "a brace too few"},
		{"kube-system/coredns", "cluster.local", "example.com", "no Service of cluster.local"},
	}
	for _, tt := range tests {
		f := newFakeAPI(t)
		f.on("GET /version", 200, fields{"gitVersion": "v1.36.3"})
		for at, data := range soundDocuments {
			edited := fields{}
			for key, text := range data {
				if edited[key] = text; at == tt.at {
					edited[key] = strings.Replace(text, tt.from, tt.to, 1)
				}
			}
			namespace, name, _ := strings.Cut(at, "/")
			f.on(fmt.Sprintf("GET /api/v1/namespaces/%s/configmaps/%s", namespace, name), 200, fields{"kind": "ConfigMap", "apiVersion": "v1", "data": edited})
		}
		c, rec := f.client()
		c.ca = nil // the authority has a test of its own
		got, err := c.WrongDocuments(t.Context(), wantDocuments)
		if err != nil || len(got) > 1 || (len(got) == 1) != (tt.want != "") || len(got) == 1 && !strings.Contains(got[0].String(), tt.want) {
			t.Errorf("%s: %s for %s: %+v, %v", tt.at, tt.to, tt.from, got, err)
		}
		rec.want(t)
	}
}
