package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Outside says how nodes reach what is outside of the lab.
type Outside struct {
	// Proxy is the http:// URL of the HTTP proxy that containerd and kubelet use;
	// default none. The add-on proxy tells pods of it.
	Proxy string `yaml:"proxy,omitempty"`
	// NoProxy are what is reached without the proxy, beside the lab's own: hosts,
	// domains with a dot before them, addresses and CIDRs; default none.
	NoProxy []string `yaml:"no_proxy,omitempty"`
	// CAFile is the absolute path of a PEM file with authorities that containerd
	// and kubelet believe beside those of their system; default none.
	CAFile string `yaml:"ca_file,omitempty"`
}

// unproxied is a host, a domain with or without a dot before it, an address or a network.
var unproxied = regexp.MustCompile(`^[A-Za-z0-9.-]+(/[0-9]{1,2})?$`)

// checkOutside checks also what the add-on proxy needs, if it is among the add-ons.
func (d *document) checkOutside(n Outside, addOns []string, version string) {
	const proxy, none, authority, addons = "network.proxy", "network.no_proxy", "network.ca_file", "addons"
	wanted := slices.Contains(addOns, "proxy") && d.trusted(addons)
	if wanted && olderThan(version, 36) {
		d.report(addons, "proxy needs Kubernetes v1.36.0 or later, whose API servers change pods by a policy; remove it, and tell the pods that need the proxy yourself")
	}
	if why := proxyProblem(n.Proxy); why != "" && d.trusted(proxy) {
		d.report(proxy, "%s; use one such as http://proxy.example:3128", why)
	}
	for i, name := range n.NoProxy {
		if at := fmt.Sprintf("%s[%d]", none, i); d.trusted(at) && !unproxied.MatchString(name) {
			d.report(at, "%s is neither a host, nor a domain, an address or a network, such as .home.lan or 192.168.4.0/24", quote(name))
		}
	}
	if why := pathProblem(n.CAFile); why != "" && d.trusted(authority) {
		d.report(authority, "%s", why)
	}
	if n.Proxy != "" || !d.trusted(proxy) {
		return
	}
	if len(n.NoProxy) > 0 && d.trusted(none) {
		d.report(none, "there is no network.proxy, which this is an exception to; write both, or remove it")
	}
	if wanted {
		d.report(addons, "proxy tells pods of network.proxy, and there is none; write both, or remove it")
	}
}

// proxyProblem does not show the URL: what was meant as one may hold a password.
func proxyProblem(text string) string {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return ""
	case err != nil || u.Scheme != "http" || u.Hostname() == "" || hidden(text) || strings.ContainsAny(text, " \"\\'$%"):
		return "it is not the http:// URL of a proxy"
	case u.User != nil:
		return "it has a user or a password, which every pod could read"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return "it has more than a host and a port"
	}
	if a, err := netip.ParseAddr(u.Hostname()); u.Hostname() == "localhost" || err == nil && a.IsLoopback() {
		return "nodes have a loopback address of their own; have the proxy listen on an address of this computer that they reach, such as the lab's gateway"
	}
	return ""
}

// olderThan tells whether a version is of a minor release before 1.MINOR.
func olderThan(version string, minor int) bool {
	var major, is int
	_, err := fmt.Sscanf(version, "v%d.%d.", &major, &is)
	return err == nil && major == 1 && is < minor
}
