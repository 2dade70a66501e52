package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"
)

// maxSize bounds the file: 500 nodes with every setting of ssh need less, and a
// wrong path (a disk image, a device) is refused at once.
const maxSize = 256 << 10

// Load reads and checks the file at path. A non-nil error is a Problems.
func Load(path string) (*Cluster, []Warning, error) {
	data, err := read(path)
	if err == nil {
		return Parse(path, data)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, Problems{missing(path)}
	}
	return nil, nil, Problems{unreadable(path, err)}
}

// unreadable is the problem of a file that is there.
func unreadable(path string, err error) Problem {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err // the path is already in front of the message
	}
	return Problem{File: path, Message: "cannot be read: " + err.Error()}
}

// missing is the problem of a file that is not there.
func missing(path string) Problem {
	if filepath.Base(path) == path {
		return Problem{Message: fmt.Sprintf("no %s in this directory; run in the checkout, or pass -c FILE", path)}
	}
	return Problem{File: path, Message: "no such file; pass the path of a cluster.yaml with -c FILE"}
}

func read(path string) ([]byte, error) {
	// Opening a FIFO must not wait for its writer; a read of one that has a writer can be interrupted.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// One byte more than accepted, so that Parse sees the file is too large.
	return io.ReadAll(io.LimitReader(f, maxSize+1))
}

// Parse checks the content of a file; the name is used only in messages. A
// non-nil error is a Problems. Warnings are given with or without an error.
func Parse(file string, data []byte) (*Cluster, []Warning, error) {
	d := newDocument(file)
	var c *Cluster
	if root := d.root(data); root != nil {
		d.lines[""] = root.Line
		c = defaultsWith(sourceIn(root))
		d.decode("", root, reflect.ValueOf(c).Elem())
		d.settleVersion(&c.Kubernetes, c.OverSSH())
		d.settleAddresses(c)
		d.validate(c)
	}
	if len(d.problems) > 0 {
		slices.SortStableFunc(d.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
		return nil, d.warnings, d.problems
	}
	return c, d.warnings, nil
}

// defaults is the cluster of a file that names only its nodes, without the
// addresses that Parse gives them.
func defaults() *Cluster {
	return &Cluster{
		Name:       "lab",
		Machines:   MachinesLibvirt,
		Kubernetes: Kubernetes{Version: Pinned[len(Pinned)-1], Source: SourceAuto, Release: Release{Server: "https://dl.k8s.io/release", Images: "registry.k8s.io"}},
		Libvirt:    Libvirt{URI: "auto", Pool: "k8slab"},
		Network: Network{
			PodSubnet:     netip.MustParsePrefix("10.244.0.0/16"),
			ServiceSubnet: netip.MustParsePrefix("10.96.0.0/16"),
			CNI:           "flannel",
			Uplink:        UplinkAuto,
		},
		Resources: Resources{
			ControlPlane: Resource{CPUs: 2, Memory: 4096, Disk: 20},
			Worker:       Resource{CPUs: 2, Memory: 2048, Disk: 20},
		},
		Tuning: Tuning{
			JoinMaxWaitSeconds:         1200,
			CPJoinRetryAttempts:        8,
			CPJoinRetrySleepSeconds:    10,
			CPJoinRetryMaxSleepSeconds: 120,
			CPJoinRetryMaxTotalSeconds: 2400,
			CPStabilizeTimeoutSeconds:  900,
			WorkerJoinTimeoutSeconds:   300,
			WorkerJoinRetryAttempts:    3,
			Stagger:                    StaggerJoin,
		},
		Onboarding: Onboarding{Git: Git{
			Branch: "main", File: "nodes/kustomization.yaml", Entry: "NODE.yaml",
			Source: "flux-system/lab", Kustomization: "flux-system/lab", Username: "git",
		}},
	}
}

// defaultsWith are the defaults with machines from the source: nothing is
// assumed of a cluster that exists.
func defaultsWith(s Source) *Cluster {
	c := defaults()
	if s == MachinesSSH {
		c.Kubernetes, c.Libvirt, c.Resources, c.Network.CNI, c.Network.Uplink = Kubernetes{}, Libvirt{}, Resources{}, "", ""
	}
	return c
}

// Existing is a cluster of machines that exist, with every default and no
// nodes yet.
func Existing() *Cluster {
	c := defaultsWith(MachinesSSH)
	c.Machines = MachinesSSH
	return c
}

// sourceIn is the source of machines that the file asks for, which the defaults
// depend on.
func sourceIn(root *yaml.Node) Source {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "machines" {
			return Source(root.Content[i+1].Value)
		}
	}
	return ""
}

// root is the value of the file's only document, or nil after a report.
func (d *document) root(data []byte) *yaml.Node {
	if limit := cmp.Or(d.kind.Limit, maxSize); len(data) > limit {
		d.reportAt(0, "", "the file is larger than %d KiB; this is not a %s", limit>>10, d.kind.Name)
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	err := decoder.Decode(&first)
	if errors.Is(err, io.EOF) || err == nil && isNull(first.Content[0]) {
		d.reportAt(0, "", "the file is empty; it needs at least %s", d.kind.Needs)
		return nil
	}
	if err == nil {
		err = decoder.Decode(&second)
	}
	switch {
	case err == nil:
		d.reportAt(second.Line, "", "a second document starts here; keep one %s per file", d.kind.One)
	case !errors.Is(err, io.EOF):
		d.reportSyntax(err)
	default:
		return first.Content[0]
	}
	return nil
}

var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// reportSyntax moves the line out of the parser's message to where all other
// problems have it.
func (d *document) reportSyntax(err error) {
	line, message := 0, err.Error()
	if m := yamlError.FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = m[2]
	}
	near := ""
	if line > 0 {
		near = " at or near this line" // the parser is at times one line off
	}
	d.reportAt(line, "", "not valid YAML%s: %s", near, message)
}

// LoadOnboarding reads the onboard section of the file at path alone: of a
// cluster that is no lab there is nothing else to say. A non-nil error is a
// Problems.
func LoadOnboarding(path string) (Onboarding, error) {
	data, err := read(path)
	if err != nil {
		_, _, err := Load(path)
		return Onboarding{}, err
	}
	d := newDocument(path)
	c := defaults()
	if root := d.root(data); root != nil {
		d.lines[""] = root.Line
		d.decode("", root, reflect.ValueOf(c).Elem())
		d.checkOnboarding(c.Onboarding)
	}
	var own Problems
	for _, p := range d.problems {
		if p.Field == "" || strings.HasPrefix(p.Field, "onboard") {
			own = append(own, p)
		}
	}
	if len(own) > 0 {
		return Onboarding{}, own
	}
	return c.Onboarding, nil
}
