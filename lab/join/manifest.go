package join

import (
	"cmp"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// podFlag is the value of a flag in the manifest of a static pod, "" for none.
func (m Machine) podFlag(manifest, name string) string {
	text, _ := m.Read(manifest)
	return PodFlag(text, name)
}

// PodFlag is the value of a flag in a static pod's manifest, the first one of a list, "" for none.
func PodFlag(text, name string) string {
	if all := podFlagList(text, name); len(all) > 0 {
		return all[0]
	}
	return ""
}

// podFlagList are the values of a flag that has a list of them, with commas. A comma also ends an argument of a list that YAML has in one line.
func podFlagList(text, name string) []string {
	found := regexp.MustCompile(`(?:^|[\s"'\[,])--` + name + `=([^\s"'\]]+)`).FindStringSubmatch(text)
	if found == nil {
		return nil
	}
	all := strings.Split(found[1], ",")
	if end := slices.IndexFunc(all, func(value string) bool { return value == "" || strings.HasPrefix(value, "--") }); end >= 0 {
		all = all[:end]
	}
	return all
}

// ExternalEtcd are the URLs of etcd in the manifest of an API server, nil where one of them is the control plane's own.
func ExternalEtcd(manifest string) []string {
	own := PodFlag(manifest, "advertise-address")
	all := podFlagList(manifest, "etcd-servers")
	for _, server := range all {
		u, err := url.Parse(server)
		if err != nil || u.Hostname() == "" || u.Hostname() == "localhost" || u.Hostname() == own {
			return nil
		}
		if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.IsLoopback() {
			return nil
		}
	}
	return all
}

// etcdDir is where the machine's etcd keeps its data: as its manifest says, or in kubeadm's default.
func (m Machine) etcdDir() string { return cmp.Or(m.podFlag(etcdManifest, "data-dir"), defaultEtcd) }

// etcdData is there if the machine has the data of an etcd member.
func (m Machine) etcdData() string { return path.Join(m.etcdDir(), "member") }

// listens is where a component of this machine listens, by its manifest.
func (m Machine) listens(manifest, port string) (host, at string) {
	host = m.podFlag(manifest, "bind-address")
	if address, err := netip.ParseAddr(host); err != nil || address.IsUnspecified() {
		host = "127.0.0.1"
	}
	return host, cmp.Or(m.podFlag(manifest, "secure-port"), port)
}

// OtherPKI is the directory of the cluster's certificates where it is not kubeadm's default, else "". What is in another one is not judged.
func (m Machine) OtherPKI() string {
	ca := m.podFlag(apiManifest, "client-ca-file")
	if ca == "" {
		var config struct {
			Authentication struct {
				X509 struct {
					ClientCAFile string `json:"clientCAFile"`
				} `json:"x509"`
			} `json:"authentication"`
		}
		text, _ := m.Read(kubeletConfig)
		if yaml.Unmarshal([]byte(text), &config) == nil {
			ca = config.Authentication.X509.ClientCAFile
		}
	}
	if dir := path.Dir(strings.TrimSpace(ca)); ca != "" && dir != pkiDir {
		return dir
	}
	return ""
}
