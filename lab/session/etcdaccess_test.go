package session

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/node"
	"k8slab/lab/state"
)

func TestEtcdEndpoints(t *testing.T) {
	cps := []config.Node{{Name: "cp1", IP: netip.MustParseAddr("10.1.0.1")}, {Name: "cp2", IP: netip.MustParseAddr("10.1.0.2")}}
	if got, want := (etcdAccess{}).endpoints(cps), []string{"https://10.1.0.1:2379", "https://10.1.0.2:2379"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	external := []string{"https://a.lan:2379", "https://b.lan:2380"}
	if got := (etcdAccess{external: external}).endpoints(cps); !slices.Equal(got, external) {
		t.Errorf("%q", got)
	}
}

// tailed is a node that prints files as tail does.
type tailed struct {
	Node
	files map[string]string
	asked int
}

func (n *tailed) Read(_ context.Context, argv ...string) (out string, err error) {
	n.asked++
	for _, name := range argv[4:] {
		text, is := n.files[name]
		if !is {
			err = &node.ExitError{Status: 1, Stderr: "tail: cannot open '" + name + "' for reading"}
			continue
		}
		if out != "" {
			out += "\n"
		}
		out += "==> " + name + " <==\n" + text
	}
	return out, err
}

func TestCredentials(t *testing.T) {
	const (
		pki      = "/etc/kubernetes/pki/"
		key      = "-----BEGIN RSA PRIVATE KEY-----\nA\n"
		manifest = ManifestDir + "/kube-apiserver.yaml"
	)
	usual := map[string]string{
		pki + "etcd/ca.crt": "ca\n\n", pki + "apiserver-etcd-client.crt": "cert\n", pki + "apiserver-etcd-client.key": key, adminConf: "admin",
		manifest: "- --etcd-servers=https://127.0.0.1:2379\n",
	}
	tests := []struct {
		name    string
		changed map[string]string // "" removes
		lab     bool
		keyFile string
		asked   int
		fails   string
	}{
		{"as kubeadm makes them", nil, false, pki + "apiserver-etcd-client.key", 1, ""},
		{"in a lab, whose manifest is not asked", map[string]string{manifest: "--etcd-keyfile=/k"}, true, pki + "apiserver-etcd-client.key", 1, ""},
		{"the manifest is gone", map[string]string{manifest: ""}, false, pki + "apiserver-etcd-client.key", 1, ""},
		{"the manifest names another", map[string]string{manifest: "- --etcd-keyfile=/k", "/k": key, pki + "apiserver-etcd-client.key": ""}, false, "/k", 2, ""},
		{"there is no kubeconfig", map[string]string{adminConf: ""}, false, "", 2, adminConf},
		{"there is none in a lab", map[string]string{adminConf: ""}, true, "", 1, adminConf},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			on := &tailed{files: maps.Clone(usual)}
			maps.Copy(on.files, tt.changed)
			maps.DeleteFunc(on.files, func(_, text string) bool { return text == "" })
			c := &config.Cluster{Machines: config.MachinesSSH}
			if tt.lab {
				c.Machines = ""
			}
			s := &Session{Lab: state.Lab{Cluster: c}, Nodes: map[string]Node{"cp1": on}}
			a, files, err := s.credentials(t.Context(), config.Node{Name: "cp1"}, true)
			if on.asked != tt.asked {
				t.Errorf("asked %d times, want %d", on.asked, tt.asked)
			}
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || a.key != tt.keyFile || files[a.key] != key || files[a.ca] != "ca\n\n" || files[adminConf] != "admin" {
				t.Errorf("%+v, %q, %v", a, files, err)
			}
		})
	}
}
