package addon

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
)

// tree is a repository's files.
type tree map[string]string

func (r tree) read(path string) ([]byte, error) {
	if content, ok := r[path]; ok {
		return []byte(content), nil
	}
	return nil, nil
}

// apply writes what the seed finds missing, and returns the paths of that.
func (r tree) apply(t *testing.T, s gitSeed) string {
	t.Helper()
	files, err := s.missing(r.read)
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range files {
		r[path] = string(content)
	}
	return strings.Join(slices.Sorted(maps.Keys(files)), " ")
}

func (r tree) want(t *testing.T, path, content string) {
	t.Helper()
	if r[path] != content {
		t.Errorf("%s is\n%s\nwanted\n%s", path, r[path], content)
	}
}

func seedOf(names ...string) gitSeed {
	var s gitSeed
	for _, name := range names {
		s.onboard = append(s.onboard, config.Node{Name: name, Role: config.Worker, IP: netip.MustParseAddr("10.30.0.23"), Onboard: true})
	}
	return s
}

func secretOf(content string) func() ([]byte, error) {
	return func() ([]byte, error) { return []byte(content), nil }
}

const kustomizationHead = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"

func TestSeedEmptyRepository(t *testing.T) {
	r := tree{}
	s := seedOf("w3", "w4")
	s.secret = secretOf("ENC")
	const all = "kustomization.yaml namespaces.yaml nodes/kustomization.yaml nodes/lab.yaml nodes/w3.yaml nodes/w4.yaml secrets/lab.yaml"
	if got := r.apply(t, s); got != all {
		t.Errorf("wrote %s", got)
	}
	const head = "# The configuration of nodes. An onboarding activates a node's entry, and its rollback comments it again.\n"
	r.want(t, gitNodes, head+kustomizationHead+"  # - w3.yaml\n  # - w4.yaml\n  - lab.yaml\n")
	r.want(t, gitTop, "# What Flux applies to the cluster, and prunes when it is gone from here.\n"+
		kustomizationHead+"  - secrets/lab.yaml\n  - namespaces.yaml\n  - nodes\n")
	r.want(t, "nodes/w3.yaml", "# The configuration of w3.\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: node-w3\n  namespace: nodes\n"+
		"data:\n  name: \"w3\"\n  role: worker\n  address: 10.30.0.23\n")
	r.want(t, gitSecret, "ENC")
	if got := r.apply(t, s); got != "" {
		t.Errorf("the second time it wrote %s", got)
	}
}

func TestSeedLater(t *testing.T) {
	tests := []struct {
		name    string
		change  func(tree)
		seed    func(*gitSeed)
		written string
		path    string // of what is looked at
		want    string
	}{
		{"an active entry", func(r tree) { r[gitNodes] = kustomizationHead + "- w3.yaml # mine\n" }, nil, "", gitNodes,
			kustomizationHead + "- w3.yaml # mine\n"},
		{"an entry in quotes", func(r tree) { r[gitNodes] = kustomizationHead + "#- \"w3.yaml\"\n" }, nil, "", gitNodes,
			kustomizationHead + "#- \"w3.yaml\"\n"},
		{"an edited file", func(r tree) { r["nodes/w3.yaml"] = "mine" }, nil, "", "nodes/w3.yaml", "mine"},
		{"a removed file", func(r tree) { delete(r, "nodes/lab.yaml") }, nil, "", "nodes/lab.yaml", ""},
		{"no list of nodes", func(r tree) { delete(r, gitNodes) }, nil, "", gitNodes, ""},
		{"another node", nil, func(s *gitSeed) { s.onboard = seedOf("w3", "w5").onboard }, gitNodes + " nodes/w5.yaml", gitNodes,
			"# The configuration of nodes. An onboarding activates a node's entry, and its rollback comments it again.\n" +
				kustomizationHead + "  # - w5.yaml\n  # - w3.yaml\n  - lab.yaml\n"},
		{"another indentation", func(r tree) { r[gitNodes] = kustomizationHead + "\n# of all\n- lab.yaml\n" }, nil, gitNodes, gitNodes,
			kustomizationHead + "# - w3.yaml\n\n# of all\n- lab.yaml\n"},
		{"a name that begins alike", func(r tree) { r[gitNodes] = kustomizationHead + "- w3.yaml.old\n" }, nil, gitNodes, gitNodes,
			kustomizationHead + "# - w3.yaml\n- w3.yaml.old\n"},
		{"SOPS", nil, func(s *gitSeed) { s.secret = secretOf("ENC") }, gitTop + " " + gitSecret, gitSecret, "ENC"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, s := tree{}, seedOf("w3")
			r.apply(t, s)
			if tt.change != nil {
				tt.change(r)
			}
			if tt.seed != nil {
				tt.seed(&s)
			}
			if got := r.apply(t, s); got != tt.written {
				t.Errorf("wrote %q, wanted %q", got, tt.written)
			}
			r.want(t, tt.path, tt.want)
			if got := r.apply(t, s); got != "" {
				t.Errorf("the next time it wrote %s", got)
			}
		})
	}
}

func TestSeedErrors(t *testing.T) {
	broken := errors.New("broken")
	s := seedOf("w3")
	s.secret = func() ([]byte, error) { return nil, broken }
	if files, err := s.missing(tree{}.read); !errors.Is(err, broken) {
		t.Errorf("%v, %v", files, err)
	}
	if _, err := seedOf("w3").missing(func(string) ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	_, err := seedOf("w3").missing(tree{gitNodes: "resources: [lab.yaml]\n"}.read)
	if err == nil || err.Error() != "nodes/kustomization.yaml: no line is `resources:`; add \"# - w3.yaml\" to its resources and push that" {
		t.Error(err)
	}
}
