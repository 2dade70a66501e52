package provision

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"k8slab/config"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// seedFiles are a node's own files, laid over the image: who it is, how to reach it, and the virtual IP of a control plane.
func seedFiles(s *session.Session, n config.Node, network string) (map[string]seedFile, error) {
	_, authorized, err := s.KeyPair("ssh/id_ed25519")
	if err != nil {
		return nil, err
	}
	hostKey, hostPublic, err := s.KeyPair(session.HostKey(n.Name))
	if err != nil {
		return nil, err
	}
	gateway := s.Cluster.Network.Gateway()
	files := map[string]seedFile{
		"etc/hostname":                       {0o644, n.Name + "\n"},
		"etc/hosts":                          {0o644, fmt.Sprintf("127.0.0.1 localhost\n%s %s\n", n.IP, n.Name)},
		"etc/machine-id":                     {0o444, state.MachineID(s.ID, n.Name) + "\n"},
		"etc/resolv.conf":                    {0o644, fmt.Sprintf("nameserver %s\n", gateway)},
		"etc/systemd/network/10-lab.network": {0o644, "[Match]\nName=eth0\n\n[Network]\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n" + network},
		"etc/ssh/ssh_host_ed25519_key":       {0o600, string(hostKey)},
		"etc/ssh/ssh_host_ed25519_key.pub":   {0o644, string(hostPublic) + "\n"},
		"root/.ssh/authorized_keys":          {0o600, string(authorized) + "\n"},
	}
	registries, err := registryFiles(s.Cluster, n.IP)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, registries)
	proxy, err := proxyFiles(s.Cluster)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, proxy)
	patches, err := patchFiles(s, n)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, patches)
	if n.Role == config.ControlPlane {
		text, err := keepalived(s, n)
		if err != nil {
			return nil, err
		}
		files[keepalivedFile] = seedFile{0o600, text}
	}
	return files, nil
}

// fixedAddress is the network configuration of machines that labctl makes. The address is static, so that it does not depend on libvirt's
// DHCP.
func fixedAddress(s *session.Session, n config.Node) string {
	gateway := s.Cluster.Network.Gateway()
	return fmt.Sprintf("Address=%s/%d\nGateway=%s\nDNS=%s\n", n.IP, s.Cluster.Network.CIDR.Bits(), gateway, gateway)
}

// leasedAddress is the network configuration of machines that vagrant makes. Vagrant reads the address from libvirt's DHCP leases. The
// machine keeps it even when nobody renews the lease.
const leasedAddress = "DHCP=ipv4\nKeepConfiguration=yes\n\n[DHCPv4]\nClientIdentifier=mac\n"

type seedFile struct {
	mode fs.FileMode
	text string
}

// writeSeed writes the node's own files into its seed directory and returns that.
func writeSeed(s *session.Session, n config.Node, files map[string]seedFile) (string, error) {
	dir := s.Path("seeds", n.Name)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil { // keeps others from the key inside
		return "", err
	}
	for name, f := range files {
		path := filepath.Join(dir, name)
		if err := makeDirs(dir, filepath.Dir(name)); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, []byte(f.text), f.mode); err != nil {
			return "", err
		}
		if err := os.Chmod(path, f.mode); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// makeDirs makes directories with the modes that they get in the node: the seed's modes replace those of the image.
func makeDirs(root, rel string) error {
	modes := map[string]fs.FileMode{"root": 0o700, "root/.ssh": 0o700, filepath.Dir(loginFile): 0o700}
	for dir := rel; ; dir = filepath.Dir(dir) {
		mode := fs.FileMode(0o755)
		if m, ok := modes[dir]; ok {
			mode = m
		}
		path := filepath.Join(root, dir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(path, mode); err != nil {
			return err
		}
		if dir == "." {
			return nil
		}
	}
}

// keepalivedFile is the configuration of keepalived on a control plane, without the leading slash.
const keepalivedFile = "etc/keepalived/keepalived.conf"

// keepalivedConf gives the virtual IP to a control plane whose own API server is alive: its priority is 50 higher. Before any API server
// runs, the first control plane of cluster.yaml has the address, because it initialises the cluster. A single control plane always has it.
var keepalivedConf = template.Must(template.New("keepalived").Parse(`global_defs {
    router_id {{.Name}}
    vrrp_version 3
    script_user root
    enable_script_security
}
{{- if .Peers}}
vrrp_script apiserver {
    script "/usr/bin/curl -sfk --max-time 2 https://127.0.0.1:6443/livez"
    interval 1
    fall 2
    rise 1
    weight 50
}
{{- end}}
vrrp_instance api {
    state BACKUP
    interface eth0
    virtual_router_id 51
    priority {{.Priority}}
    advert_int 0.3
    unicast_src_ip {{.IP}}
{{- if .Peers}}
    unicast_peer {
{{- range .Peers}}
        {{.}}
{{- end}}
    }
{{- end}}
    virtual_ipaddress {
        {{.VirtualIP}}/{{.Bits}} dev eth0
    }
{{- if .Peers}}
    track_script {
        apiserver
    }
{{- end}}
}
`))

// keepalived is the node's configuration of keepalived.
func keepalived(s *session.Session, n config.Node) (string, error) {
	data := struct {
		Name, IP, VirtualIP string
		Priority, Bits      int
		Peers               []string
	}{Name: n.Name, IP: n.IP.String(), VirtualIP: s.Cluster.Network.VirtualIP.String(), Bits: s.Cluster.Network.CIDR.Bits(), Peers: peersOf(s, n)}
	for i, cp := range s.EveryControlPlane() {
		if cp.Name == n.Name {
			data.Priority = 150 - i
		}
	}
	var out bytes.Buffer
	err := keepalivedConf.Execute(&out, data)
	return out.String(), err
}

// peersOf are the addresses of the other control planes. Those that are to be onboarded later are among them: two that are not each other's
// peers would both take the virtual IP.
func peersOf(s *session.Session, n config.Node) (peers []string) {
	for _, cp := range s.EveryControlPlane() {
		if cp.Name != n.Name {
			peers = append(peers, cp.IP.String())
		}
	}
	return peers
}

// knowPeers renews the configuration on a control plane whose machine was made before another one was described. A peer that has gone may
// stay in it.
func knowPeers(ctx context.Context, s *session.Session, n config.Node) error {
	on := s.Nodes[n.Name]
	is, err := on.Read(ctx, "cat", "/"+keepalivedFile)
	if err != nil && session.Status(err) < 0 {
		return err
	}
	known := strings.Fields(is)
	if !slices.ContainsFunc(peersOf(s, n), func(peer string) bool { return !slices.Contains(known, peer) }) {
		return nil
	}
	step := s.Events.Start(n.Name, "virtual IP", 0)
	text, err := keepalived(s, n)
	if err == nil {
		err = on.Copy(ctx, "/"+keepalivedFile, 0o600, strings.NewReader(text))
	}
	if err == nil {
		err = session.Do(ctx, on, "systemctl", "reload-or-restart", "keepalived")
	}
	if err != nil {
		err = fmt.Errorf("%s: keepalived does not learn of the other control planes: %w; next: labctl repair", n.Name, err)
	}
	return step.End(err)
}
