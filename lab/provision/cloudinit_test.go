package provision

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"k8slab/lab/golden"
	"k8slab/lab/labtest"
	"k8slab/lab/session"
)

// cloudTexts are the files of the node's NoCloud disk.
func cloudTexts(t *testing.T, s *session.Session, name string) map[string]string {
	t.Helper()
	files, err := cloudFiles(s, labtest.Node(t, s.Lab, name))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for name, f := range files {
		if f.mode != 0o600 {
			t.Errorf("%s has mode %v", name, f.mode)
		}
		texts[name] = f.text
	}
	return texts
}

func TestCloudFiles(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	texts := cloudTexts(t, s, "cp1")
	golden.Check(t, "network-config.yaml", texts["network-config"])
	golden.Check(t, "meta-data.yaml", texts["meta-data"])
	own, err := seedFiles(s, labtest.Node(t, s.Lab, "cp1"), "")
	if err != nil {
		t.Fatal(err)
	}
	// The keys are other ones in each run.
	text := texts["user-data"]
	for name, word := range map[string]string{
		"etc/ssh/ssh_host_ed25519_key": "HOST KEY", "etc/ssh/ssh_host_ed25519_key.pub": "PUBLIC", "root/.ssh/authorized_keys": "AUTHORIZED",
	} {
		for _, line := range strings.Split(strings.TrimSpace(own[name].text), "\n") {
			text = strings.ReplaceAll(text, line, word)
		}
	}
	golden.Check(t, "user-data.yaml", text)
	if len(texts) != 3 {
		t.Errorf("%d files", len(texts))
	}
}

// What YAML made of the keys and files, cloud-init gets back: sshd refuses a key with one byte that is not its own.
func TestCloudConfigIsWhatTheSeedHas(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	const registry = "/etc/containerd/certs.d/localhost:5000/hosts.toml"
	for node, files := range map[string][]string{"cp1": {registry, "/etc/hosts", "/etc/keepalived/keepalived.conf"}, "w1": {registry, "/etc/hosts"}} {
		own, err := seedFiles(s, labtest.Node(t, s.Lab, node), "")
		if err != nil {
			t.Fatal(err)
		}
		var c cloudConfig
		text := cloudTexts(t, s, node)["user-data"]
		if err := yaml.Unmarshal([]byte(text), &c); err != nil || !strings.HasPrefix(text, "#cloud-config\n") {
			t.Fatalf("%v\n%s", err, text)
		}
		private, public := own["etc/ssh/ssh_host_ed25519_key"].text, own["etc/ssh/ssh_host_ed25519_key.pub"].text
		if c.HostKeys["ed25519_private"] != private || c.HostKeys["ed25519_public"] != public {
			t.Errorf("%s: host keys %q", node, c.HostKeys)
		}
		if want := strings.TrimSpace(own["root/.ssh/authorized_keys"].text); !slices.Equal(c.AuthorizedKeys, []string{want}) {
			t.Errorf("%s: authorized keys %q", node, c.AuthorizedKeys)
		}
		var paths []string
		for _, f := range c.Files {
			paths = append(paths, f.Path)
			if f.Content != own[f.Path[1:]].text {
				t.Errorf("%s: %s has %q", node, f.Path, f.Content)
			}
		}
		if !slices.Equal(paths, files) {
			t.Errorf("%s: files %q, want %q", node, paths, files)
		}
		user, _, err := s.KeyPair(session.RootKey)
		if err != nil || strings.Contains(text, strings.Split(string(user), "\n")[4]) {
			t.Errorf("%s has the lab's own private key, %v", node, err)
		}
	}
}

// cloud-init reads YAML 1.1, to which 52:54:00:12:34:56 is a number to the base of 60, and 0600 one to the base of 8.
func TestCloudTextsStayTexts(t *testing.T) {
	text, err := yaml.Marshal([]any{cloudEther{Match: map[string]string{"macaddress": "52:54:00:12:34:56"}}, cloudFile{Permissions: "0600"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`macaddress: "52:54:00:12:34:56"`, `permissions: "0600"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
}
