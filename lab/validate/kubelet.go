package validate

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

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
