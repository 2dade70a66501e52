package provision

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"k8slab/config"
	"k8slab/lab/golden"
	"k8slab/lab/host"
	"k8slab/lab/labtest"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

func TestKeepalived(t *testing.T) {
	tests := []struct{ name, file, node, golden string }{
		{"first of three", labtest.Three, "cp1", "keepalived-cp1.conf"},
		{"last of three", labtest.Three, "cp3", "keepalived-cp3.conf"},
		{"single", labtest.Small, "cp1", "keepalived-single.conf"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := labtest.Session(t, tt.file)
			text, err := keepalived(s, labtest.Node(t, s.Lab, tt.node))
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, tt.golden, text)
		})
	}
}

// Two that do not know each other would both have the virtual IP.
func TestKeepalivedCountsWithWhoIsToBeOnboarded(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	for i := range s.Cluster.Nodes {
		if n := &s.Cluster.Nodes[i]; n.Name == "cp3" {
			n.Onboard = true
		}
	}
	for name, peer := range map[string]string{"cp1": "10.30.0.13", "cp3": "10.30.0.11"} {
		text, err := keepalived(s, labtest.Node(t, s.Lab, name))
		if err != nil || !strings.Contains(text, "        "+peer+"\n") {
			t.Errorf("%s does not know %s: %v\n%s", name, peer, err, text)
		}
	}
}

func TestSeedFiles(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	common := []string{
		"etc/containerd/certs.d/localhost:5000/hosts.toml", "etc/hostname", "etc/hosts", "etc/machine-id", "etc/resolv.conf", "etc/ssh/ssh_host_ed25519_key", "etc/ssh/ssh_host_ed25519_key.pub",
		"etc/systemd/network/10-lab.network", "root/.ssh/authorized_keys",
	}
	tests := []struct {
		node string
		want []string
	}{
		{"w1", common},
		{"cp1", append([]string{"etc/keepalived/keepalived.conf"}, common...)},
	}
	for _, tt := range tests {
		t.Run(tt.node, func(t *testing.T) {
			files, err := seedFiles(s, labtest.Node(t, s.Lab, tt.node), fixedAddress(s, labtest.Node(t, s.Lab, tt.node)))
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, slices.Sorted(slices.Values(tt.want))) {
				t.Errorf("got %q", got)
			}
		})
	}
	files, err := seedFiles(s, labtest.Node(t, s.Lab, "w1"), fixedAddress(s, labtest.Node(t, s.Lab, "w1")))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"etc/hostname":    "w1\n",
		"etc/hosts":       "127.0.0.1 localhost\n10.30.0.21 w1\n",
		"etc/machine-id":  state.MachineID(s.ID, "w1") + "\n",
		"etc/resolv.conf": "nameserver 10.30.0.1\n",
		"etc/systemd/network/10-lab.network": "[Match]\nName=eth0\n\n[Network]\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n" +
			"Address=10.30.0.21/24\nGateway=10.30.0.1\nDNS=10.30.0.1\n",
	} {
		if got := files[name].text; got != want {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, want)
		}
	}
	// sshd refuses a key that its public part does not match, and labctl a host that shows another one.
	signer, err := ssh.ParsePrivateKey([]byte(files["etc/ssh/ssh_host_ed25519_key"].text))
	if err != nil {
		t.Fatal(err)
	}
	if got := files["etc/ssh/ssh_host_ed25519_key.pub"].text; got != string(ssh.MarshalAuthorizedKey(signer.PublicKey())) {
		t.Errorf("public host key %q", got)
	}
	user, _, err := s.KeyPair(session.RootKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range files {
		if strings.Contains(f.text, string(user)) {
			t.Errorf("%s has the lab's own private key", name)
		}
	}
}

func writeOwnSeed(s *session.Session, n config.Node) (string, error) {
	files, err := seedFiles(s, n, fixedAddress(s, n))
	if err != nil {
		return "", err
	}
	return writeSeed(s, n, files)
}

func TestWriteSeed(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	n := labtest.Node(t, s.Lab, "cp1")
	dir, err := writeOwnSeed(s, n)
	if err != nil {
		t.Fatal(err)
	}
	// Written again over what is there, as every later up does, also over a mode that somebody changed.
	if err := os.Chmod(filepath.Join(dir, "root"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "etc/hostname"), []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := writeOwnSeed(s, n); err != nil || again != dir {
		t.Fatalf("again: %s, %v", again, err)
	}
	want := map[string]fs.FileMode{
		".": 0o755, "etc": 0o755, "etc/containerd": 0o755, "etc/containerd/certs.d": 0o755, "etc/containerd/certs.d/localhost:5000": 0o755,
		"etc/containerd/certs.d/localhost:5000/hosts.toml": 0o644, "etc/hostname": 0o644, "etc/hosts": 0o644, "etc/machine-id": 0o444, "etc/resolv.conf": 0o644,
		"etc/keepalived": 0o755, "etc/keepalived/keepalived.conf": 0o600, "etc/ssh": 0o755, "etc/ssh/ssh_host_ed25519_key": 0o600,
		"etc/ssh/ssh_host_ed25519_key.pub": 0o644, "etc/systemd": 0o755, "etc/systemd/network": 0o755,
		"etc/systemd/network/10-lab.network": 0o644, "root": 0o700, "root/.ssh": 0o700, "root/.ssh/authorized_keys": 0o600,
	}
	got := map[string]fs.FileMode{}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		rel, _ := filepath.Rel(dir, path)
		got[rel] = info.Mode().Perm()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "etc/hostname")); err != nil || string(text) != "cp1\n" {
		t.Errorf("hostname %q, %v", text, err)
	}
	// The tree has the node's modes; what keeps others of this computer out are the directories above.
	for _, above := range []string{s.Path("seeds"), s.Path()} {
		if info, err := os.Stat(above); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", above, info, err)
		}
	}
}

// A node that is no control plane any more must not compete for the virtual IP.
func TestWriteSeedRemovesWhatIsOver(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	n := labtest.Node(t, s.Lab, "cp1")
	dir, err := writeOwnSeed(s, n)
	if err != nil {
		t.Fatal(err)
	}
	n.Role = labtest.Node(t, s.Lab, "w1").Role
	if _, err := writeOwnSeed(s, n); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "etc/keepalived/keepalived.conf")); err == nil {
		t.Error("keepalived.conf is left in the seed of a worker")
	}
}

// kubeadm on the node reads its own patches; an emulated control plane keeps those of the image.
func TestSeedHasPatches(t *testing.T) {
	const dir = "usr/share/k8slab/patches/"
	s := labtest.Session(t, labtest.WithOptions)
	for _, tt := range []struct {
		node, uri string
		want      map[string]string
	}{
		{"cp1", host.Containers, map[string]string{"kube-apiserver+merge": "metadata:\n  annotations:\n    lab.example/owner: team\n"}},
		{"w1", host.VirtualMachines, map[string]string{"kubeletconfiguration+merge": "evictionHard:\n  memory.available: 50Mi\nmaxPods: 32\n"}},
		{"w2", host.Containers, map[string]string{"kubeletconfiguration+merge": "maxPods: 32\n"}},
	} {
		s.URI = tt.uri
		s.Cluster.Nodes = append(s.Cluster.Nodes, config.Node{Name: "w2", Role: config.Worker})
		n := labtest.Node(t, s.Lab, tt.node)
		files, err := seedFiles(s, n, "")
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for name, f := range files {
			if file, ok := strings.CutPrefix(name, dir); ok {
				got[strings.TrimSuffix(file, ".yaml")] = f.text
			}
		}
		if !maps.Equal(got, tt.want) {
			t.Errorf("%s: %q", tt.node, got)
		}
		if text := cloudTexts(t, s, tt.node)["user-data"]; strings.Count(text, "/"+dir) != len(tt.want) {
			t.Errorf("%s: cloud-init gets %s", tt.node, text)
		}
	}
	if s.URI = host.VirtualMachines; s.Emulated() {
		files, err := seedFiles(s, labtest.Node(t, s.Lab, "cp1"), "")
		if f := files[dir+"etcd0k8slab.yaml"]; err != nil || !strings.Contains(f.text, "failureThreshold: 60") {
			t.Errorf("%v, %q", err, f.text)
		}
	}
}
