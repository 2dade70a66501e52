package provision

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"k8slab/config"
	"k8slab/lab/machine"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// cloudMeta and cloudConfig are cloud-init's configuration of a node (https://docs.cloud-init.io, NoCloud and its modules). The rest stays
// as in the image.
type cloudMeta struct {
	InstanceID string `yaml:"instance-id"`
	Hostname   string `yaml:"local-hostname"`
}

type cloudConfig struct {
	DisableRoot    bool              `yaml:"disable_root"`
	PasswordLogin  bool              `yaml:"ssh_pwauth"`
	AuthorizedKeys []string          `yaml:"ssh_authorized_keys"`
	DeleteHostKeys bool              `yaml:"ssh_deletekeys"` // the image's own
	HostKeys       map[string]string `yaml:"ssh_keys"`
	ManageHosts    bool              `yaml:"manage_etc_hosts"` // it would give the host name the address 127.0.1.1
	Files          []cloudFile       `yaml:"write_files"`
	GrowPartition  cloudGrow         `yaml:"growpart"`
	ResizeRoot     bool              `yaml:"resize_rootfs"`
	Locale         string            `yaml:"locale"` // the image's: an emulated machine needs a minute to generate another
	// No package mirror is reachable from the lab's network.
	PackageUpdate  bool `yaml:"package_update"`
	PackageUpgrade bool `yaml:"package_upgrade"`
}

type cloudFile struct {
	Path        string `yaml:"path"`
	Permissions string `yaml:"permissions"` // octal
	Content     string `yaml:"content"`
}

type cloudGrow struct {
	Mode    string   `yaml:"mode"`
	Devices []string `yaml:"devices"`
}

// cloudNetwork is version 2 of cloud-init's network configuration. Images name their network devices differently, so the one with the
// machine's hardware address is renamed to eth0, as in the lab's own image.
type cloudNetwork struct {
	Version   int                   `yaml:"version"`
	Ethernets map[string]cloudEther `yaml:"ethernets"`
}

type cloudEther struct {
	Match     map[string]string   `yaml:"match"`
	SetName   string              `yaml:"set-name"`
	DHCP4     bool                `yaml:"dhcp4"`
	DHCP6     bool                `yaml:"dhcp6"`
	AcceptRA  bool                `yaml:"accept-ra"`
	Addresses []string            `yaml:"addresses"`
	Routes    []map[string]string `yaml:"routes"`
	DNS       map[string][]string `yaml:"nameservers"`
}

// cloudSeeded are the node's own files that cloud-init writes unchanged. The bundle's install script sets the machine-id and the name
// server, because systemd and the image's resolver start before cloud-init.
var cloudSeeded = []string{"etc/hosts", keepalivedFile}

// cloudFiles are the files of the NoCloud disk for a node with a stock image.
func cloudFiles(s *session.Session, n config.Node) (map[string]seedFile, error) {
	own, err := seedFiles(s, n, "")
	if err != nil {
		return nil, err
	}
	c := cloudConfig{
		AuthorizedKeys: []string{strings.TrimSpace(own["root/.ssh/authorized_keys"].text)},
		DeleteHostKeys: true,
		HostKeys: map[string]string{
			"ed25519_private": own["etc/ssh/ssh_host_ed25519_key"].text, "ed25519_public": own["etc/ssh/ssh_host_ed25519_key.pub"].text,
		},
		GrowPartition: cloudGrow{Mode: "auto", Devices: []string{"/"}},
		ResizeRoot:    true,
		Locale:        "C.UTF-8",
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		below := func(dir string) bool { return strings.HasPrefix("/"+name, dir+"/") }
		if f := own[name]; slices.Contains(cloudSeeded, name) || name == loginFile || below("/"+registryDir) || below(PatchesDir) {
			c.Files = append(c.Files, cloudFile{Path: "/" + name, Permissions: fmt.Sprintf("%04o", f.mode), Content: f.text})
		}
	}
	files := map[string]seedFile{}
	for name, v := range map[string]any{
		"meta-data": cloudMeta{InstanceID: state.MachineID(s.ID, n.Name), Hostname: n.Name}, "user-data": c, "network-config": networkOf(s, n),
	} {
		text, err := yaml.Marshal(v)
		if err != nil {
			return nil, err
		}
		files[name] = seedFile{0o600, string(text)}
	}
	files["user-data"] = seedFile{0o600, "#cloud-config\n" + files["user-data"].text}
	return files, nil
}

func networkOf(s *session.Session, n config.Node) cloudNetwork {
	gateway := s.Cluster.Network.Gateway().String()
	return cloudNetwork{Version: 2, Ethernets: map[string]cloudEther{"eth0": {
		Match: map[string]string{"macaddress": machine.MAC(s.ID, n.Name)}, SetName: "eth0",
		Addresses: []string{fmt.Sprintf("%s/%d", n.IP, s.Cluster.Network.CIDR.Bits())},
		Routes:    []map[string]string{{"to": "0.0.0.0/0", "via": gateway}},
		DNS:       map[string][]string{"addresses": {gateway}},
	}}}
}
