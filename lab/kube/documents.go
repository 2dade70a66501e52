package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Want is what the cluster's own documents must say. Empty values say nothing.
type Want struct {
	Version                  string   // of Kubernetes, as "v1.36.3"
	Endpoint                 string   // HOST:PORT of the API server, as nodes should reach it
	Servers                  []string // URLs at which the API server may be asked
	PodSubnet, ServiceSubnet string   // CIDR
}

// WrongDocument is a ConfigMap of the cluster's own that would break the next join, upgrade, or start of a component.
type WrongDocument struct {
	Namespace, Name string
	Path            string // of the value, "" for all of it
	Missing         bool   // the ConfigMap itself
	What            string // in words, with what it should be
	Phase           string // of `kubeadm init phase` that makes it
}

// String names it, and says what is wrong.
func (d WrongDocument) String() string {
	return fmt.Sprintf("ConfigMap %s/%s: %s", d.Namespace, d.Name, d.What)
}

// wrongValue is a value that cannot stay.
type wrongValue struct{ path, what string }

func (e *wrongValue) Error() string { return e.what }

// document is a value of a ConfigMap. Its judge returns a *wrongValue.
type document struct {
	namespace, name, key, phase string
	judge                       func(c *Client, text string, want Want) error
}

// documents are what joins, upgrades and the add-ons of kubeadm live by. Of those that MissingForJoins asks for, it says what is missing or is
// no document at all.
var documents = []document{
	{metav1.NamespaceSystem, kubeadmConfig, "ClusterConfiguration", phaseUploadKubeadm, judgeCluster},
	{metav1.NamespaceSystem, kubeletConfig, "kubelet", phaseUploadKubelet, judgeKubelet},
	{metav1.NamespacePublic, clusterInfo, "kubeconfig", PhaseBootstrapToken, judgeClusterInfo},
	{metav1.NamespaceSystem, "kube-proxy", "config.conf", "addon kube-proxy", judgeProxy},
	{metav1.NamespaceSystem, "kube-proxy", "kubeconfig.conf", "addon kube-proxy", judgeProxyLogin},
	{metav1.NamespaceSystem, "coredns", "Corefile", "addon coredns", judgeCorefile},
}

// WrongDocuments lists the documents that say something else than they must. Everything else in them is an administrator's to set. It changes
// nothing.
func (c *Client) WrongDocuments(ctx context.Context, want Want) (wrong []WrongDocument, err error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	if want.Version, err = c.version(ctx); err != nil { // what runs, if somebody has upgraded it
		return nil, err
	}
	for _, d := range documents {
		m, err := c.set.CoreV1().ConfigMaps(d.namespace).Get(ctx, d.name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("get ConfigMap %s/%s: %w", d.namespace, d.name, err)
		}
		found := &wrongValue{what: "it is missing"}
		if err == nil {
			text, there := m.Data[d.key]
			if found.what = "it has no " + d.key; there {
				found, _ = errors.AsType[*wrongValue](d.judge(c, text, want))
			}
		}
		joins := slices.ContainsFunc(joinConfigs, func(j joinConfig) bool { return j.name == d.name })
		if found == nil || found.path == "" && joins {
			continue
		}
		w := WrongDocument{d.namespace, d.name, found.path, apierrors.IsNotFound(err), found.what, d.phase}
		if !slices.ContainsFunc(wrong, func(o WrongDocument) bool { return o.String() == w.String() }) {
			wrong = append(wrong, w)
		}
	}
	return wrong, nil
}

// version is that of the API server, as "v1.36.3".
func (c *Client) version(ctx context.Context) (string, error) {
	text, err := c.set.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	var is struct{ GitVersion string }
	if err == nil {
		err = json.Unmarshal(text, &is)
	}
	if err != nil {
		return "", fmt.Errorf("ask the api server for its version: %w", err)
	}
	return is.GitVersion, nil
}

// Version is that of the API server, as "v1.36.3".
func (c *Client) Version(ctx context.Context) (string, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	return c.version(ctx)
}

// Document is a value of a ConfigMap.
func (c *Client) Document(ctx context.Context, namespace, name, key string) (string, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	m, err := c.set.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("get ConfigMap %s/%s: %w", namespace, name, err)
	}
	return m.Data[key], nil
}

// DropClusterInfo deletes the public cluster-info, because kubeadm leaves one that is there as it is.
func (c *Client) DropClusterInfo(ctx context.Context) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	err := c.set.CoreV1().ConfigMaps(metav1.NamespacePublic).Delete(ctx, clusterInfo, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete ConfigMap %s/%s: %w", metav1.NamespacePublic, clusterInfo, err)
	}
	return nil
}

// setting is a value of a YAML document, as it is printed.
type setting struct {
	path, want string
	optional   bool // the default, if it is absent, is the same
}

// judgeYAML judges the settings of a document of the kind.
func judgeYAML(text, kind string, settings ...setting) error {
	doc, err := documentOf(text, kind)
	if err != nil {
		return &wrongValue{"", err.Error()}
	}
	for _, s := range settings {
		is, there := any(doc), true
		for _, key := range strings.Split(s.path, ".") {
			m, _ := is.(map[string]any)
			if is, there = m[key]; !there {
				break
			}
		}
		switch {
		case s.want == "", !there && s.optional, there && fmt.Sprint(is) == s.want:
		case !there:
			return &wrongValue{s.path, fmt.Sprintf("it has no %s, which is %s", s.path, s.want)}
		default:
			return &wrongValue{s.path, fmt.Sprintf("its %s is %v, not %s", s.path, is, s.want)}
		}
	}
	return nil
}

// documentOf reads a YAML document of the kind.
func documentOf(text, kind string) (doc map[string]any, err error) {
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, fmt.Errorf("it is no YAML of kind %s: %w", kind, err)
	}
	if doc["kind"] != kind {
		return nil, errors.New("it is no " + kind)
	}
	return doc, nil
}

func judgeCluster(_ *Client, text string, want Want) error {
	return judgeYAML(text, "ClusterConfiguration",
		setting{"kubernetesVersion", want.Version, false}, setting{"controlPlaneEndpoint", want.Endpoint, false},
		setting{"networking.podSubnet", want.PodSubnet, false}, setting{"networking.serviceSubnet", want.ServiceSubnet, false},
		setting{"networking.dnsDomain", dnsDomain, true}, setting{"certificatesDir", "/etc/kubernetes/pki", true},
		setting{"etcd.local.dataDir", "/var/lib/etcd", true})
}

const dnsDomain = "cluster.local"

func judgeKubelet(_ *Client, text string, want Want) error {
	err := judgeYAML(text, "KubeletConfiguration",
		setting{"staticPodPath", "/etc/kubernetes/manifests", false}, setting{"authentication.x509.clientCAFile", "/etc/kubernetes/pki/ca.crt", false},
		setting{"cgroupDriver", "systemd", false}, setting{"clusterDomain", dnsDomain, false},
		setting{"failSwapOn", "false", true}, setting{"failCgroupV1", "false", true})
	if err != nil {
		return err
	}
	var is struct{ ClusterDNS []string }
	_ = yaml.Unmarshal([]byte(text), &is) // another type has no address
	for _, a := range is.ClusterDNS {
		if ip, err := netip.ParseAddr(a); err == nil && ip.IsLinkLocalUnicast() {
			return nil // a cache on each node
		}
	}
	return judgeYAML(text, "KubeletConfiguration", setting{"clusterDNS", "[" + want.dns() + "]", false})
}

// dns is the address that kubeadm gives the cluster's DNS: the tenth of the Services.
func (w Want) dns() string {
	subnet, err := netip.ParsePrefix(w.ServiceSubnet)
	if err != nil {
		return ""
	}
	ip := subnet.Masked().Addr()
	for range 10 {
		ip = ip.Next()
	}
	return ip.String()
}

func judgeClusterInfo(c *Client, text string, want Want) error {
	_, cluster, err := currentCluster([]byte(text))
	if err != nil {
		return &wrongValue{"", err.Error()}
	}
	if len(c.ca) > 0 && !bytes.Equal(bytes.TrimSpace(cluster.CertificateAuthorityData), bytes.TrimSpace(c.ca)) {
		return &wrongValue{"certificate-authority-data", "it does not trust the cluster's authority"}
	}
	return judgeServer(cluster.Server, want)
}

func judgeServer(is string, want Want) error {
	if len(want.Servers) > 0 && !slices.Contains(want.Servers, is) {
		return &wrongValue{"server", fmt.Sprintf("its server is %s, not %s", is, want.Servers[0])}
	}
	return nil
}

// proxyModes are those that kube-proxy knows; an administrator may choose among them.
var proxyModes = []string{"", "iptables", "ipvs", "nftables"}

func judgeProxy(_ *Client, text string, want Want) error {
	err := judgeYAML(text, "KubeProxyConfiguration", setting{"clientConnection.kubeconfig", "/var/lib/kube-proxy/kubeconfig.conf", false},
		setting{"clusterCIDR", want.PodSubnet, false})
	var is struct{ Mode string }
	if err == nil && (yaml.Unmarshal([]byte(text), &is) != nil || !slices.Contains(proxyModes, is.Mode)) {
		err = &wrongValue{"mode", fmt.Sprintf("its mode is %q, which kube-proxy does not know", is.Mode)}
	}
	return err
}

func judgeProxyLogin(_ *Client, text string, want Want) error {
	_, cluster, err := currentCluster([]byte(text))
	if err != nil {
		return &wrongValue{"", err.Error()}
	}
	return judgeServer(cluster.Server, want)
}

// judgeCorefile looks only for what a CoreDNS of any cluster has: blocks that end, and names of Services.
func judgeCorefile(_ *Client, text string, _ Want) error {
	depth := 0
	services := false
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		services = services || len(words) > 1 && (words[0] == "import" || words[0] == "kubernetes" && slices.Contains(words, dnsDomain))
		depth += strings.Count(line, "{") - strings.Count(line, "}")
		if depth < 0 {
			break
		}
	}
	switch {
	case depth != 0:
		return &wrongValue{"Corefile", "its Corefile has a brace too few or too many"}
	case !services:
		return &wrongValue{"Corefile", "its Corefile answers for no Service of " + dnsDomain}
	}
	return nil
}
