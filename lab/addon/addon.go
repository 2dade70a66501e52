// Package addon has the catalogue of the lab's add-ons and installs them: what each is for, which others it needs, its container images,
// its objects, and the workloads that must be ready. lab/image builds the images.
package addon

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"text/template"
)

// Kind is the kind of a workload.
type Kind string

// The kinds of workloads.
const (
	DaemonSet  Kind = "DaemonSet"
	Deployment Kind = "Deployment"
)

// Workload is what must be ready for an add-on to be.
type Workload struct {
	Kind      Kind
	Namespace string
	Name      string
}

func (w Workload) String() string {
	return fmt.Sprintf("%s %s/%s", strings.ToLower(string(w.Kind)), w.Namespace, w.Name)
}

// Addon is one add-on.
type Addon struct {
	Name      string // one of config.AddonNames; its objects are in manifests/NAME.yaml, if it has any
	Purpose   string // a few words, without a full stop
	Needs     []string
	Images    []string // that the objects name, such as k8slab/prometheus:lab
	Workloads []Workload
}

// Values are what a manifest, which is a text/template, may use of its lab.
type Values struct {
	GitNode string   // the node with the Git repository, and the images of the registry
	Sops    bool     // Flux decrypts secrets
	Pool    []string // of addresses for Services, as ranges FIRST-LAST
	Proxy   string   // network.proxy of cluster.yaml
	NoProxy string   // NO_PROXY

	RegistryPort int     // of every node
	Caches       []Cache // of registries
	Revision     string  // of the caches, which read what they are only when they start
	Authority    bool    // nodes have one of network.ca_file
}

// Cache is a registry whose images the add-on registry keeps.
type Cache struct {
	Upstream  string // URL
	Dir       string // its name
	Port      int    // of every node
	Authority string // who signed the upstream's certificate, a PEM file in base64; "" for those that nodes know
}

//go:embed manifests
var manifests embed.FS

// Manifest is the YAML of the add-on's objects, in the order in which they have to be applied; nil for none.
func (a Addon) Manifest(v Values) ([]byte, error) {
	text, err := manifests.ReadFile("manifests/" + a.Name + ".yaml")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t, err := template.New(a.Name).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("manifest of %s: %w", a.Name, err)
	}
	var out bytes.Buffer
	err = t.Execute(&out, v)
	return out.Bytes(), err
}
