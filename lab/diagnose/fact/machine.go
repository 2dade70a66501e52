package fact

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// textLimit bounds what is taken of a configuration file.
const textLimit = 16 << 10

// certificates reads the certificates of a node, never a key.
func (c *collector) certificates(context.Context) error {
	files := []string{"/var/lib/kubelet/pki/kubelet-client-current.pem"}
	for _, dir := range []string{pkiDir, pkiDir + "/etcd"} {
		for _, name := range c.m.List(dir) {
			if strings.HasSuffix(name, ".crt") {
				files = append(files, path.Join(dir, name))
			}
		}
	}
	var all []Certificate
	for _, file := range files {
		text, err := c.m.Read(file)
		if err != nil {
			continue
		}
		if cert := firstCertificate([]byte(text)); cert != nil {
			all = append(all, Certificate{File: file, Subject: cert.Subject.String(), NotBefore: cert.NotBefore, NotAfter: cert.NotAfter})
		}
	}
	c.set(func(n *Node) { n.Certificates = append(n.Certificates, all...) })
	return nil
}

func firstCertificate(text []byte) *x509.Certificate {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return nil
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil
		}
		return cert
	}
}

var advertised = regexp.MustCompile(`--initial-advertise-peer-urls=(\S+)`)

// machine reads what a few files and one call tell.
func (c *collector) machine(context.Context) error {
	space, err := c.m.Space(c.m.Path("/var/lib"))
	memory := readMemory(c.m.Line("/proc/meminfo"))
	manifest, _ := c.m.Read("/etc/kubernetes/manifests/etcd.yaml")
	peer := ""
	if found := advertised.FindStringSubmatch(manifest); found != nil {
		peer = found[1]
	}
	resolv, containerd := c.m.Line("/etc/resolv.conf"), c.m.Line("/etc/containerd/config.toml")
	c.set(func(n *Node) {
		n.Filesystem, n.Memory, n.PeerURL = space, memory, peer
		n.Manifests = c.m.List("/etc/kubernetes/manifests")
		n.Resolv, n.Containerd = resolv[:min(len(resolv), textLimit)], containerd[:min(len(containerd), textLimit)]
	})
	return err
}

func readMemory(meminfo string) Memory {
	value := func(key string) uint64 {
		for line := range strings.Lines(meminfo) {
			if f := strings.Fields(line); len(f) >= 2 && f[0] == key+":" {
				kib, _ := strconv.ParseUint(f[1], 10, 64)
				return kib << 10
			}
		}
		return 0
	}
	return Memory{Total: value("MemTotal"), Available: value("MemAvailable")}
}

// network reads the links, and what pods get their network from.
func (c *collector) network(context.Context) error {
	env := c.m.SubnetEnv()
	used, plugins := c.m.PodNetwork(), c.m.Plugins()
	links, err := readLinks()
	c.set(func(n *Node) { n.SubnetEnv, n.Network, n.Plugins, n.Links = env, used, plugins, links })
	return err
}
