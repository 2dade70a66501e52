package join

import (
	"cmp"
	"net/netip"
	"path"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// podFlag is the value of a flag in the manifest of a static pod, "" for none.
func (m Machine) podFlag(manifest, name string) string {
	text, _ := m.Read(manifest)
	return PodFlag(text, name)
}

// PodFlag is the value of a flag in a static pod's manifest, "" for none.
func PodFlag(text, name string) string {
	found := regexp.MustCompile(`(?:^|[\s"'\[,])--` + name + `=([^\s"',\]]+)`).FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	return found[1]
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
