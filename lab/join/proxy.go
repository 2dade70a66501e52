package join

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"k8slab/lab/symptom"
)

// checkProxy looks for proxy variables that would take requests to the cluster elsewhere: in systemd's own environment, which kubelet and
// kubeadm's unit inherit, in kubelet's, in containerd's, and in this process's. Only the first two decide over a join.
func checkProxy(ctx context.Context, p *preflight) Check {
	hosts := p.clusterHosts()
	hint := "add them to NO_PROXY where it is set: NO_PROXY=" + strings.Join(hosts, ",") + ",.svc,.cluster.local and the pod and service subnets"
	var harmless []string
	for _, place := range p.environments(ctx) {
		captured := capturedHosts(place.env, hosts)
		if len(captured) == 0 {
			continue
		}
		evidence := fmt.Sprintf("the environment of %s sends %s to a proxy", place.name, strings.Join(captured, ", "))
		if place.decides {
			return blocked(symptom.ProxyInterference, place.undo+hint, "%s", evidence)
		}
		harmless = append(harmless, evidence)
	}
	if len(harmless) > 0 {
		return warn(symptom.ProxyInterference, hint, "%s", strings.Join(harmless, "; "))
	}
	return ok("no proxy takes the cluster's addresses")
}

// clusterHosts are the hosts that must be reached directly.
func (p *preflight) clusterHosts() []string {
	host, _, _ := net.SplitHostPort(p.t.Endpoint)
	hosts := []string{host}
	for _, other := range append(slices.Clone(p.t.Peers), p.t.Address) {
		if other != "" && !slices.Contains(hosts, other) {
			hosts = append(hosts, other)
		}
	}
	return hosts
}

type environment struct {
	name    string
	env     map[string]string
	decides bool
	undo    string // commands by which it loses its proxy, and "or", if that is for certain
}

func (p *preflight) environments(ctx context.Context) []environment {
	var places []environment
	if out, err := p.m.Run(ctx, "systemctl", "show-environment"); err == nil {
		env, undo := parseEnvironment(out), ""
		for _, name := range []string{"HTTPS_PROXY", "https_proxy"} {
			if env[name] != "" {
				undo += symptom.UnsetVariable.With(name) + ", or "
			}
		}
		places = append(places, environment{"systemd", env, true, undo})
	}
	if u, err := p.units(ctx); err == nil {
		places = append(places,
			environment{"kubelet", p.m.environment(u.kubelet), true, p.m.withoutProxy(u.kubelet)},
			environment{p.runtime().String(), p.m.environment(u.runtime), false, ""})
	}
	return append(places, environment{"this process", parseEnvironment(strings.Join(p.m.Environ(), "\n")), false, ""})
}

// withoutProxy is how to take the proxy out of the files that an administrator has added to kubelet's unit.
func (m Machine) withoutProxy(kubelet unit) (undo string) {
	for _, file := range strings.Fields(kubelet["DropInPaths"] + " " + kubelet["EnvironmentFiles"]) {
		text, _ := m.Read(file)
		if strings.HasPrefix(file, "/") && strings.Contains(strings.ToLower(text), "https_proxy=") {
			undo += symptom.RemoveProxyLine.With(file) + ", or "
		}
	}
	return undo
}

// capturedHosts are those of hosts that Go's programs, kubeadm and kubelet among them, would reach through a proxy.
func capturedHosts(env map[string]string, hosts []string) []string {
	either := func(name string) string {
		if value := env[strings.ToLower(name)]; value != "" {
			return value
		}
		return env[name]
	}
	config := httpproxy.Config{HTTPProxy: either("HTTP_PROXY"), HTTPSProxy: either("HTTPS_PROXY"), NoProxy: either("NO_PROXY")}
	proxy := config.ProxyFunc()
	var captured []string
	for _, host := range hosts {
		literal := host
		if address, err := netip.ParseAddr(host); err == nil && address.Is6() {
			literal = "[" + host + "]"
		}
		if to, err := proxy(&url.URL{Scheme: "https", Host: literal + ":6443"}); to != nil || err != nil {
			captured = append(captured, host)
		}
	}
	return captured
}
