package validate

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SecurityChecks check that a Node, or each with "", has no more rights than a node needs, and what is open in the cluster. The checks of
// network policies and of pods only warn, because what they report may be intended.
func (c *Cluster) SecurityChecks(node string) []Check {
	return []Check{
		check(AreaSecurity, "the Node authorizer keeps other nodes' secrets from "+where(node), c.onNodes(node, c.secretsKept)),
		check(AreaSecurity, "NodeRestriction keeps "+where(node)+" from changing other nodes", c.onNodes(node, c.restricted)),
		check(AreaSecurity, where(node)+" has the rights of a node only", c.onNodes(node, c.nodeRights)),
		check(AreaSecurity, "the kubelet of "+where(node)+" is set to refuse anonymous requests", c.onNodes(node, c.kubeletClosed)),
		check(AreaSecurity, "the kubelet of "+where(node)+" refuses a request without credentials", c.onNodes(node, c.kubeletRefuses)),
		check(AreaSecurity, "secrets that SOPS encrypted are decrypted", c.decrypted),
		check(AreaSecurity, "network policies are in force", c.policies),
		check(AreaSecurity, "no pod of an application is privileged", c.privileged),
		check(AreaSecurity, "no bootstrap token is left", c.tokens),
	}
}

// policyEngines are parts of the names of DaemonSets that enforce network policies.
var policyEngines = []string{"calico", "canal", "cilium", "antrea", "kube-router", "weave", "ovn", "kube-network-policies"}

// policies reports network policies, and whether the pod network is known to enforce them. Flannel alone does not.
func (c *Cluster) policies(ctx context.Context) (Finding, error) {
	list, err := c.Kube.NetworkingV1().NetworkPolicies("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return Finding{}, fmt.Errorf("list networkpolicies: %w", err)
	}
	if len(list.Items) == 0 {
		return absent("the cluster has no NetworkPolicy: every pod may reach every other"), nil
	}
	count := map[string]int{}
	for _, p := range list.Items {
		count[p.Namespace]++
	}
	counts := counted(count)
	engine, err := c.policyEngine(ctx)
	if err != nil {
		return Finding{}, err
	}
	switch engine {
	case "":
		return warn("see the documentation of the pod network", "network policies: %s; it is not known whether the pod network enforces them", counts), nil
	case "flannel":
		return warn("add an engine such as kube-network-policies or Calico's, or do not rely on the policies",
			"network policies: %s; flannel does not enforce them", counts), nil
	}
	return pass("network policies: %s; %s enforces them", counts, engine), nil
}

// policyEngine is what enforces network policies. "flannel" means that nothing does, "" that nothing is known.
func (c *Cluster) policyEngine(ctx context.Context) (string, error) {
	nodes, err := c.nodes(ctx)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(nodes, func(n corev1.Node) bool { return strings.Contains(n.Status.NodeInfo.KubeletVersion, "+k3s") }) {
		return "k3s", nil // has kube-router's engine built in
	}
	sets, err := c.Kube.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list daemonsets: %w", err)
	}
	known := ""
	for _, d := range sets.Items {
		for _, engine := range policyEngines {
			if strings.Contains(d.Name, engine) {
				return engine, nil
			}
		}
		if strings.Contains(d.Name, "flannel") {
			known = "flannel"
		}
	}
	return known, nil
}

// systemNamespaces have parts of a cluster that must be privileged, in addition to those whose name begins with "kube-".
var systemNamespaces = []string{
	"calico-system", "tigera-operator", "cilium", "cilium-system", "longhorn-system", "metallb-system", "rook-ceph", "openebs", "local-path-storage",
}

// privileged reports the privileged pods outside of system namespaces, and how many pods declare that they do not run as root.
func (c *Cluster) privileged(ctx context.Context) (Finding, error) {
	pods, err := c.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return Finding{}, fmt.Errorf("list pods: %w", err)
	}
	var t tally
	total, unprivileged := 0, 0
	for _, p := range pods.Items {
		if strings.HasPrefix(p.Namespace, "kube-") || slices.Contains(systemNamespaces, p.Namespace) {
			continue
		}
		total++
		if s := p.Spec.SecurityContext; s != nil && s.RunAsNonRoot != nil && *s.RunAsNonRoot {
			unprivileged++
		}
		if i := slices.IndexFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), isPrivileged); i >= 0 {
			t.warnings = append(t.warnings, fmt.Sprintf("pod %s/%s is privileged", p.Namespace, p.Name))
		}
	}
	t.good = append(t.good, fmt.Sprintf("%d pods outside of system namespaces, none privileged; %d declare that they do not run as root", total, unprivileged))
	return t.finding("a privileged pod is root on its node: see whether it needs that; the label pod-security.kubernetes.io/enforce=baseline on a namespace refuses such pods"), nil
}

func isPrivileged(c corev1.Container) bool {
	s := c.SecurityContext
	return s != nil && s.Privileged != nil && *s.Privileged
}

const (
	tokenSecrets = corev1.SecretType("bootstrap.kubernetes.io/token")
	// tokenMark begins the description of the tokens that a join of the lab makes, and deletes at its end.
	tokenMark = "labctl: "
)

// tokens requires that no bootstrap token of a join is left, and warns of tokens that never expire. It does not read the secret halves.
func (c *Cluster) tokens(ctx context.Context) (Finding, error) {
	secrets, err := c.Kube.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{FieldSelector: "type=" + string(tokenSecrets)})
	if err != nil {
		return Finding{}, fmt.Errorf("list bootstrap tokens: %w", err)
	}
	var t tally
	alive := 0
	for _, s := range secrets.Items {
		if s.Type != tokenSecrets {
			continue
		}
		id, expiration, description := string(s.Data["token-id"]), string(s.Data["expiration"]), string(s.Data["description"])
		expires, err := time.Parse(time.RFC3339, expiration)
		if err == nil && !expires.After(time.Now()) {
			continue // of no use any more: kube-controller-manager deletes it soon
		}
		alive++
		switch {
		case strings.HasPrefix(description, tokenMark):
			t.faults = append(t.faults, fmt.Sprintf("token %s is left (%q, expires %q)", id, description, expiration))
		case expiration == "":
			t.warnings = append(t.warnings, fmt.Sprintf("token %s never expires (%q)", id, description))
		}
	}
	t.good = append(t.good, fmt.Sprintf("%d valid tokens, none left by a join, all expire", alive))
	return t.finding("when no node is joining: `kubeadm token delete ID`"), nil
}

// counted lists counts by name.
func counted[K ~string](counts map[K]int) string {
	var texts []string
	for name, n := range counts {
		texts = append(texts, fmt.Sprintf("%d %s", n, name))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

const (
	kubeletPort    = 10250
	kubeletTimeout = 10 * time.Second
	// kubeletNext is the next step of a kubelet that is open.
	kubeletNext = "set authentication.anonymous.enabled: false and authorization.mode: Webhook in the node's /var/lib/kubelet/config.yaml, and restart kubelet"
)

// kubeletClosed reads the configuration that each kubelet says it runs with.
func (c *Cluster) kubeletClosed(ctx context.Context, nodes []corev1.Node) (Finding, error) {
	var t tally
	for _, n := range nodes {
		body, err := c.Kube.CoreV1().RESTClient().Get().Resource("nodes").Name(n.Name).SubResource("proxy").Suffix("configz").DoRaw(ctx)
		if err != nil {
			return Finding{}, fmt.Errorf("%s: read the kubelet's configuration through the API server: %w", n.Name, err)
		}
		var configz struct {
			Kubelet struct {
				Authentication struct {
					Anonymous struct {
						Enabled *bool `json:"enabled"`
					} `json:"anonymous"`
				} `json:"authentication"`
				Authorization struct {
					Mode string `json:"mode"`
				} `json:"authorization"`
			} `json:"kubeletconfig"`
		}
		if err := json.Unmarshal(body, &configz); err != nil {
			return Finding{}, fmt.Errorf("%s: read the kubelet's configuration: %w", n.Name, err)
		}
		anonymous, mode := configz.Kubelet.Authentication.Anonymous.Enabled, configz.Kubelet.Authorization.Mode
		switch {
		case anonymous == nil:
			return Finding{}, fmt.Errorf("%s: the kubelet's configuration says nothing about anonymous requests", n.Name)
		case *anonymous:
			t.faults = append(t.faults, n.Name+": anonymous requests are let in (authentication.anonymous.enabled: true)")
		case mode != "Webhook":
			t.faults = append(t.faults, fmt.Sprintf("%s: authorization.mode is %s, so anyone with a certificate may do everything", n.Name, mode))
		default:
			t.good = append(t.good, n.Name+": no anonymous requests, authorization by the API server")
		}
	}
	return t.finding(kubeletNext), nil
}

// kubeletRefuses asks each kubelet for its pods without credentials.
func (c *Cluster) kubeletRefuses(ctx context.Context, nodes []corev1.Node) (Finding, error) {
	if c.Dial == nil {
		return absent("the addresses of nodes are not reached from here; the kubelets' configuration is checked instead"), nil
	}
	var t tally
	for _, n := range nodes {
		status, err := c.askKubelet(ctx, &n)
		switch {
		case err != nil:
			return Finding{}, fmt.Errorf("%s: ask the kubelet: %w", n.Name, err)
		case status == http.StatusUnauthorized, status == http.StatusForbidden:
			t.good = append(t.good, fmt.Sprintf("%s answers %d to a request without credentials", n.Name, status))
		default:
			t.faults = append(t.faults, fmt.Sprintf("%s answers %d to a request for its pods without credentials", n.Name, status))
		}
	}
	return t.finding(kubeletNext), nil
}

func (c *Cluster) askKubelet(ctx context.Context, n *corev1.Node) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	port := int(n.Status.DaemonEndpoints.KubeletEndpoint.Port)
	if port == 0 {
		port = kubeletPort
	}
	// A kubelet's certificate is self-signed, so it is not verified. Nothing secret is sent, and only the status of the answer is used.
	client := &http.Client{Transport: &http.Transport{
		DialContext: c.Dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(address(n), strconv.Itoa(port))+"/pods", nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}
