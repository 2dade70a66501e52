package addon

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"k8slab/config"
)

// Paths in the lab's Git repository, and the namespace of what Flux applies from it.
const (
	gitTop          = "kustomization.yaml"
	gitNodes        = "nodes/kustomization.yaml"
	gitSecret       = "secrets/lab.yaml"
	gitSeedMessage  = "Add what cluster.yaml has\n"
	gitObjectsSpace = "nodes"
)

// gitSeed is what the lab's Git repository must have. People own the repository, so nothing in it is changed: a list only gets the entries
// that it lacks, with their files.
type gitSeed struct {
	onboard []config.Node          // each gets a file and a commented entry, which its onboarding activates
	secret  func() ([]byte, error) // makes the encrypted Secret; nil without SOPS
}

// missing lists the files to write, with their whole content, by path; read reads the repository. An empty repository gets all of them.
func (s gitSeed) missing(read func(path string) ([]byte, error)) (map[string][]byte, error) {
	c := &gitCompletion{read: read, files: map[string][]byte{}}
	if c.absent(gitTop) && c.absent(gitNodes) {
		c.files = map[string][]byte{
			gitTop:            []byte(gitTopText),
			gitNodes:          []byte(gitNodesText),
			"namespaces.yaml": []byte(gitNamespacesText),
			"nodes/lab.yaml":  []byte(gitLabText),
		}
	}
	for _, n := range slices.Backward(s.onboard) { // each is put before the others
		entry := n.Name + ".yaml"
		c.entry(gitNodes, "# - "+entry, "nodes/"+entry, func() ([]byte, error) { return nodeConfiguration(n) })
	}
	if s.secret != nil {
		c.entry(gitTop, "- "+gitSecret, gitSecret, s.secret)
	}
	return c.files, c.err
}

// gitCompletion collects what a repository lacks, until the first error.
type gitCompletion struct {
	read  func(path string) ([]byte, error)
	files map[string][]byte
	err   error
}

// content is the file's new content, or else its present one; nil if there is no such file.
func (c *gitCompletion) content(path string) []byte {
	if data, ok := c.files[path]; ok || c.err != nil {
		return data
	}
	data, err := c.read(path)
	c.err = err
	return data
}

func (c *gitCompletion) absent(path string) bool { return c.content(path) == nil && c.err == nil }

// entry adds an item to the kustomization's resources, with the file that it names, unless the item is there, active or commented. If
// people have removed the kustomization, nothing is added.
func (c *gitCompletion) entry(kustomization, item, file string, make func() ([]byte, error)) {
	data := c.content(kustomization)
	name := strings.TrimPrefix(strings.TrimPrefix(item, "# "), "- ")
	if c.err != nil || data == nil || listsEntry(data, name) {
		return
	}
	if data, c.err = withItem(data, item); c.err != nil {
		c.err = fmt.Errorf("%s: %w", kustomization, c.err)
		return
	}
	if c.absent(file) {
		var content []byte
		if content, c.err = make(); c.err == nil {
			c.files[file] = content
		}
	}
	if c.err == nil {
		c.files[kustomization] = data
	}
}

// listsEntry reports whether a line is the list's item of this name, also when it is commented.
func listsEntry(data []byte, name string) bool {
	for line := range strings.Lines(string(data)) {
		rest, isItem := strings.CutPrefix(strings.TrimLeft(line, " \t#"), "- ")
		if words := strings.Fields(rest); isItem && len(words) > 0 && strings.Trim(words[0], `"'`) == name {
			return true
		}
	}
	return false
}

// withItem puts the item first into the list of resources, with the indentation of the next one.
func withItem(data []byte, item string) ([]byte, error) {
	lines := slices.Collect(strings.Lines(string(data)))
	at := slices.IndexFunc(lines, func(l string) bool { return strings.TrimRight(l, " \t\r\n") == "resources:" })
	if at < 0 {
		return nil, fmt.Errorf("no line is `resources:`; add %q to its resources and push that", item)
	}
	indent := "  "
	if next := slices.IndexFunc(lines[at+1:], func(l string) bool { return strings.HasPrefix(strings.TrimLeft(l, " "), "- ") }); next >= 0 {
		line := lines[at+1+next]
		indent = line[:len(line)-len(strings.TrimLeft(line, " "))]
	}
	return []byte(strings.Join(slices.Insert(lines, at+1, indent+item+"\n"), "")), nil
}

const gitTopText = `# What Flux applies to the cluster, and prunes when it is gone from here.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - namespaces.yaml
  - nodes
`

const gitNodesText = `# The configuration of nodes. An onboarding activates a node's entry, and its rollback comments it again.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - lab.yaml
`

const gitNamespacesText = `apiVersion: v1
kind: Namespace
metadata:
  name: ` + gitObjectsSpace + `
`

// A kustomization without a resource is an error, so one is always there.
const gitLabText = `# For all nodes.
apiVersion: v1
kind: ConfigMap
metadata:
  name: lab
  namespace: ` + gitObjectsSpace + `
data:
  managed-by: flux
`

var nodeTemplate = template.Must(template.New("node").Parse(`# The configuration of {{.Name}}.
apiVersion: v1
kind: ConfigMap
metadata:
  name: node-{{.Name}}
  namespace: ` + gitObjectsSpace + `
data:
  name: {{printf "%q" .Name}}
  role: {{.Role}}
  address: {{.IP}}
`))

// nodeConfiguration is a node's file. Names and addresses have passed cluster.yaml's checks; a name may look like a number to YAML.
func nodeConfiguration(n config.Node) ([]byte, error) {
	var out bytes.Buffer
	err := nodeTemplate.Execute(&out, n)
	return out.Bytes(), err
}
