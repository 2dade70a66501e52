package config

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Kubernetes says what is installed on the nodes.
type Kubernetes struct {
	// Version has the form vMAJOR.MINOR.PATCH, with -PRERELEASE and +BUILD where
	// there are some; default v1.37.2. It may also float (Floats): VersionAuto,
	// which is the default if Source is a directory, or a label such as ci/latest.
	// A lab that is made has the version that was found then. With MachinesSSH it
	// is required, and does not float.
	Version string `yaml:"version"`
	// Source is where the programs come from: SourceAuto (the default),
	// SourceRelease, SourceModules, the absolute path of a directory with the
	// programs or of a checkout, or the http:// or https:// URL of a release
	// mirror. docs/images.md has their layouts.
	Source string `yaml:"source"`
	// Programs are those that come from elsewhere than Source, by their names
	// (KubernetesPrograms): each the absolute path of the program, of a directory
	// that has it, or of a checkout; default none.
	Programs map[string]string `yaml:"programs,omitempty"`
	Release  Release           `yaml:"release,omitempty"`
	// IgnorePreflightErrors are checks of kubeadm that do not stop a join, such
	// as NumCPU; default none. Only with MachinesSSH.
	IgnorePreflightErrors []string `yaml:"ignore_preflight_errors,omitempty"`
	// FeatureGates are features of Kubernetes, switched on or off in its control
	// plane, kubelet and kube-proxy; default none. Only with MachinesLibvirt.
	FeatureGates map[string]bool `yaml:"feature_gates,omitempty"`
	Kubeadm      Kubeadm         `yaml:"kubeadm,omitempty"`
}

// The sources of Kubernetes that are words.
const (
	SourceAuto    = "auto"    // what is in the cache, else SourceRelease if its servers answer, else SourceModules
	SourceRelease = "release" // upstream's programs, and etcd and CoreDNS of its images
	SourceModules = "modules" // compiled from Go modules
)

// KubernetesPrograms are the programs of Kubernetes, in alphabetical order.
var KubernetesPrograms = []string{"kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubeadm", "kubectl", "kubelet"}

// Component says where the programs of a part of the nodes come from.
type Component struct {
	// Source is a version, vMAJOR.MINOR.PATCH, which is compiled from its Go
	// module, or the absolute path of a directory with the programs or of a
	// checkout.
	Source string `yaml:"source,omitempty"`
}

// Release says where upstream publishes Kubernetes, for SourceRelease.
type Release struct {
	// Server is the http:// or https:// URL of its programs; default
	// https://dl.k8s.io/release. Versions with a +BUILD, and labels that begin with
	// ci/, are looked for in the directory ci beside it.
	Server string `yaml:"server"`
	// Images is the registry, HOST[:PORT][/PATH], of the images that kubeadm asks
	// for; default registry.k8s.io. Plain HTTP only on private addresses.
	Images string `yaml:"images"`
}

// VersionAuto is the version that the directory kubernetes.source has.
const VersionAuto = "auto"

var (
	version = regexp.MustCompile(`^v(0|[1-9][0-9]{0,2})(\.(0|[1-9][0-9]{0,2})){2}(-[0-9A-Za-z]+([.-][0-9A-Za-z]+)*)?(\+[0-9A-Za-z]+([.-][0-9A-Za-z]+)*)?$`)
	// As kubeadm takes it: https://kubernetes.io/docs/reference/setup-tools/kubeadm/kubeadm-init/
	versionLabel = regexp.MustCompile(`^(ci/)?(latest|stable)(-1(\.[1-9][0-9]?)?)?$`)
	release      = regexp.MustCompile(`^v[0-9]{1,3}(\.[0-9]{1,3}){2}(-(alpha|beta|rc)\.[0-9]{1,3})?$`)
)

// Floats tells whether Version stands for one that is found when the lab is
// made.
func (k Kubernetes) Floats() bool {
	return k.Version == VersionAuto || versionLabel.MatchString(k.Version)
}

// Label is the Version, if it is the name of a file on a release server that has
// the version, and whether the file is among those of builds between releases.
func (k Kubernetes) Label() (name string, ci, is bool) {
	name, ci = strings.CutPrefix(k.Version, "ci/")
	return name, ci, versionLabel.MatchString(k.Version)
}

// IsVersion tells whether the text is a version of Kubernetes.
func IsVersion(text string) bool { return version.MatchString(text) }

// settleVersion gives the default that depends on the source, and takes ci/ from
// what is no label: such a version tells by its +BUILD where it is.
func (d *document) settleVersion(k *Kubernetes, exists bool) {
	if rest, ci := strings.CutPrefix(k.Version, "ci/"); ci && strings.Contains(rest, "+") {
		k.Version = rest
	}
	if filepath.IsAbs(k.Source) && !d.written("kubernetes.version") && !exists {
		k.Version = VersionAuto
	}
}

// checkVersion knows whether the cluster exists, and the image that is fetched, "" for none.
func (d *document) checkVersion(k Kubernetes, exists bool, fetched string) {
	const field = "kubernetes.version"
	directory := filepath.IsAbs(k.Source)
	switch v := k.Version; {
	case !d.trusted(field):
	case v == "" && !d.written(field): // only with machines: ssh
		d.report(field, "missing; write the version of the API servers, such as v1.37.2: with machines: ssh there is no default")
	case exists && !version.MatchString(v):
		d.report(field, "%s is not a version; use vMAJOR.MINOR.PATCH, such as v1.37.2", quote(v))
	case !k.Floats() && !version.MatchString(v):
		d.report(field, "%s is not a version; use one such as v1.37.2 or v1.38.0-alpha.2, or a label such as stable-1.37 or ci/latest", quote(v))
	case exists || !d.trusted("kubernetes.source"):
	case v == VersionAuto && !directory:
		d.report(field, "auto is the version of a directory, and kubernetes.source is none; use one such as v1.37.2, or a label such as stable-1.37")
	case k.Floats() && v != VersionAuto && directory:
		d.report(field, "%s is a file on a release server, and kubernetes.source is a directory; use auto, which is the version that the directory has", quote(v))
	case k.Source == SourceModules && (k.Floats() || strings.Contains(v, "+")):
		d.report(field, "%s is on release servers alone, and kubernetes.source is modules; use release, or the version of a release", quote(v))
	case k.Floats() && fetched != "":
		d.report(field, "%s stands for a version that is looked up, and image.from has one already; write that", quote(v))
	}
}

// sourceProblem says why a source is refused, or "" when it is accepted. It
// shows a path but nothing else: what was meant as a URL may hold a password.
func sourceProblem(source string) string {
	switch {
	case source == SourceAuto || source == SourceRelease || source == SourceModules:
		return ""
	case strings.HasPrefix(source, "/"):
		return plainPathProblem(source)
	}
	return urlProblem(source)
}

func (d *document) checkSource(source string) {
	const field = "kubernetes.source"
	if why := sourceProblem(source); why != "" && d.trusted(field) {
		d.report(field, "%s; use auto, release, modules, the absolute path of a directory, or the URL of a release mirror such as https://mirror.example/release", why)
	}
}

// checkPrograms checks what comes from elsewhere than kubernetes.source.
func (d *document) checkPrograms(k Kubernetes, components map[string]Component, fetched string) {
	for _, name := range slices.Sorted(maps.Keys(k.Programs)) {
		at, from := "kubernetes.programs."+keyName(name), k.Programs[name]
		switch why := absoluteProblem(from); {
		case !d.trusted(at):
		case !slices.Contains(KubernetesPrograms, name):
			d.report(at, "%s is not a program of Kubernetes%s; use %s", quote(name), DidYouMean(name, KubernetesPrograms), strings.Join(KubernetesPrograms, ", "))
		case why != "":
			d.report(at, "%s; use the absolute path of the program, of a directory that has it, or of a checkout of Kubernetes", why)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(components)) {
		at, from := name+".source", components[name].Source
		if from == "" || !d.trusted(at) || release.MatchString(from) {
			continue
		}
		if why := absoluteProblem(from); why != "" {
			d.report(at, "%s; use a version of three numbers such as v3.6.8, or the absolute path of a directory with the programs or of a checkout", why)
		}
	}
	for _, key := range []string{"kubernetes.programs", "etcd", "coredns", "containerd"} {
		if fetched != "" && d.written(key) && d.trusted(key) {
			d.report(key, "image.from is an image that was built elsewhere, with programs of its own; keep one of them")
		}
	}
}

// absoluteProblem is plainPathProblem, for what has to be a path.
func absoluteProblem(path string) string {
	if !filepath.IsAbs(path) {
		return quote(path) + " is not an absolute path"
	}
	return plainPathProblem(path)
}

// urlProblem says why a URL is refused, or "" when it is accepted. It does not
// show it: it may hold a password.
func urlProblem(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || strings.ContainsFunc(text, unicode.IsControl):
		return "is not an HTTP URL"
	case u.User != nil:
		return "the URL has a user or a password, which would be shown in logs"
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return "the URL has a query or a fragment, which would be shown in logs and do not name a directory"
	case u.Hostname() == "":
		return "the URL has no host"
	}
	return ""
}

// plainPathProblem says why an absolute path is refused, or "" when it is accepted.
func plainPathProblem(file string) string {
	switch clean := path.Clean(file); {
	case strings.ContainsFunc(file, unicode.IsControl):
		return fmt.Sprintf("%s has control characters", quote(file))
	case clean != file:
		return fmt.Sprintf("%s is not in its plain form, which is %s", quote(file), quote(clean))
	}
	return ""
}
