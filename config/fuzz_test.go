package config

import (
	"cmp"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// safe is what shells, paths and XML take literally.
var safe = regexp.MustCompile(`\A[a-z0-9.-]+\z`)

func FuzzParse(f *testing.F) {
	for _, path := range []string{"testdata/three.yaml", "testdata/small.yaml", "testdata/onboard.yaml", "testdata/broken.yaml", "testdata/existing.yaml"} {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, s := range []string{
		"", "---\n---\n", "a: &a [*a, *a]", "<<: {a: b}", "? [a]\n: b", "nodes: [~, !x y]", "\x00", "name: \"a\\nb\"\n" + plane, strings.Repeat("[", 2000),
		"kubernetes: {source: 'https://u:p@h/x?q#f'}\n" + plane, "kubernetes: {source: /a/../b}\n" + plane,
		"image: {base: /a/./b}\n" + plane, there, thereWith("ssh: {jump: 'a@b:1,-c', user: a b}", "endpoint: a:1", "version: v1.31.0", "ssh: {host: 10.0.0.1}"),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, warnings, err := Parse("f", data)
		if (c == nil) == (err == nil) {
			t.Fatalf("cluster %v with error %v", c, err)
		}
		problems, _ := err.(Problems)
		for _, p := range append(problems, warnings...) {
			if strings.ContainsFunc(p.String(), unicode.IsControl) || p.Message == "" {
				t.Errorf("not one clear line: %q", p.String())
			}
		}
		if c != nil {
			checkSafe(t, c)
			if c.OverSSH() { // nothing in it was chosen, which YAML would write down
				checkYAML(t, data)
			}
		}
	})
}

func checkSafe(t *testing.T, c *Cluster) {
	texts := []string{c.Name, c.Kubernetes.Version, cmp.Or(c.Network.CNI, "none")}
	addrs := map[netip.Addr]bool{c.Network.VirtualIP: true}
	if !c.OverSSH() {
		addrs[c.Network.Gateway()] = true
	}
	for _, n := range c.Nodes {
		texts = append(texts, n.Name, string(n.Role), n.IP.String())
		checkLoginSafe(t, c.Login(n))
		if addrs[n.IP] || !n.IP.IsValid() || !c.OverSSH() && !c.Network.CIDR.Contains(n.IP) {
			t.Errorf("node %s has the address %s", n.Name, n.IP)
		}
		addrs[n.IP] = true
	}
	for _, s := range texts {
		if !safe.MatchString(s) {
			t.Errorf("accepted the text %q", s)
		}
	}
	if len(c.ControlPlanes()) == 0 {
		t.Error("accepted a cluster without a control plane")
	}
	if c.OverSSH() {
		if c.Kubernetes.Source != "" || c.Kubernetes.Release != (Release{}) || c.Image != (Image{}) || c.Libvirt != (Libvirt{}) || c.Network.CIDR.IsValid() || len(c.Addons) > 0 {
			t.Errorf("accepted what labctl would make: %+v", c)
		}
		return
	}
	if pool := c.Libvirt.Pool; pool == "" || len(pool) > 64 || strings.Trim(pool, "._-") != pool || strings.ContainsAny(pool, "/<&' \n\x00") {
		t.Errorf("accepted the pool %q", pool)
	}
	if uri := c.Libvirt.URI; uri != "auto" && uri != "qemu:///system" && uri != "lxc:///system" {
		t.Errorf("accepted the URI %q", uri)
	}
	checkSourceSafe(t, c.Kubernetes.Source)
	checkSourceSafe(t, c.Kubernetes.Release.Server)
	if strings.ContainsAny(c.Kubernetes.Release.Images, " '\"\\$`;&|<>@?#\n\x00") {
		t.Errorf("accepted the registry %q", c.Kubernetes.Release.Images)
	}
	if base := c.Image.Base; base != "" && (!strings.HasPrefix(base, "/") || strings.ContainsFunc(base, unicode.IsControl)) {
		t.Errorf("accepted the image %q", base)
	}
}

// checkLoginSafe: ssh would take none of it for an option, and no line for two.
func checkLoginSafe(t *testing.T, s SSH) {
	for _, text := range append([]string{s.User, s.Host, s.IdentityFile}, strings.Split(s.Jump, ",")...) {
		if strings.HasPrefix(text, "-") || strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("accepted %q in the login %+v", text, s)
		}
	}
	if strings.ContainsAny(s.User+s.Host+s.Jump, " '\"\\$`;&|<>") || s.Port < 1 || s.Port > 65535 {
		t.Errorf("accepted the login %+v", s)
	}
}

// checkSourceSafe: what is no word and no path is a URL that may be shown to anybody.
func checkSourceSafe(t *testing.T, source string) {
	if strings.ContainsFunc(source, unicode.IsControl) {
		t.Errorf("accepted the source %q", source)
	}
	if source == SourceAuto || source == SourceRelease || source == SourceModules || strings.HasPrefix(source, "/") {
		return
	}
	if u, err := url.Parse(source); err != nil || u.Host == "" || u.User != nil || strings.ContainsAny(source, "?#") {
		t.Errorf("accepted the source %q: %v", source, err)
	}
}
