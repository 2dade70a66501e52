package config

import (
	"io/fs"
	"net/url"
	"reflect"
	"strings"
	"time"
)

// Onboarding says how nodes with Onboard are taken in.
type Onboarding struct {
	Git      Git      `yaml:"git"`
	Timeouts Timeouts `yaml:"timeouts"`
}

// Git says which entry of which kustomization switches a node's configuration
// on, and which Flux objects apply it.
type Git struct {
	// URL is http:// or https://, without a user, a query or a fragment;
	// default "", which is the lab's own Git add-on.
	URL string `yaml:"url"`
	// Branch is the branch that Flux follows; default main.
	Branch string `yaml:"branch"`
	// File is the kustomization's path from the top of the repository; default
	// nodes/kustomization.yaml.
	File string `yaml:"file"`
	// Entry is the list's item; NODE in it stands for the node's name. Default
	// NODE.yaml.
	Entry string `yaml:"entry"`
	// Source and Kustomization are NAMESPACE/NAME of Flux's GitRepository and
	// Kustomization, in one namespace; default flux-system/lab for both.
	Source        string `yaml:"source"`
	Kustomization string `yaml:"kustomization"`
	// Username is the server's name of the user; default git.
	Username string `yaml:"username"`
	// PasswordFile and SigningKey are absolute paths of files with mode 0600: a
	// password or token for the server, and the private key that signs commits
	// (OpenPGP or SSH, without a passphrase). Default "": none.
	PasswordFile string `yaml:"password_file"`
	SigningKey   string `yaml:"signing_key"`
}

// EntryOf is the entry of one node.
func (g Git) EntryOf(node string) string { return strings.ReplaceAll(g.Entry, "NODE", node) }

// Timeouts bound one attempt of each phase, from 1s to 24h, such as 5m; 0, the
// default, leaves a phase its own.
type Timeouts struct {
	PreValidation         time.Duration `yaml:"pre_validation,omitempty"`
	GitOpsActivation      time.Duration `yaml:"gitops_activation,omitempty"`
	NodeJoinMonitoring    time.Duration `yaml:"node_join_monitoring,omitempty"`
	StorageIntegration    time.Duration `yaml:"storage_integration,omitempty"`
	NetworkValidation     time.Duration `yaml:"network_validation,omitempty"`
	MonitoringIntegration time.Duration `yaml:"monitoring_integration,omitempty"`
	SecurityValidation    time.Duration `yaml:"security_validation,omitempty"`
	PostValidation        time.Duration `yaml:"post_validation,omitempty"`
	HealthVerification    time.Duration `yaml:"health_verification,omitempty"`
}

// ByPhase has all phases, those with 0 included.
func (t Timeouts) ByPhase() map[string]time.Duration {
	all, v := map[string]time.Duration{}, reflect.ValueOf(t)
	for i, key := range keysOf(v.Type()) {
		all[key] = time.Duration(v.Field(i).Int())
	}
	return all
}

func (d *document) checkOnboarding(o Onboarding) {
	const git = "onboard.git."
	check := func(key, value string, problem func(string) string) {
		if why := problem(value); why != "" && d.trusted(git+key) {
			d.report(git+key, "%s", why)
		}
	}
	check("url", o.Git.URL, repositoryProblem)
	check("branch", o.Git.Branch, branchProblem)
	check("file", o.Git.File, fileProblem)
	check("entry", o.Git.Entry, entryProblem)
	check("source", o.Git.Source, objectProblem)
	check("kustomization", o.Git.Kustomization, objectProblem)
	if d.trusted(git+"source", git+"kustomization") && namespaceOf(o.Git.Source) != namespaceOf(o.Git.Kustomization) {
		d.report(git+"kustomization", "%s is not in the namespace of onboard.git.source, %s", quote(o.Git.Kustomization), quote(o.Git.Source))
	}
	check("username", o.Git.Username, userProblem)
	check("password_file", o.Git.PasswordFile, pathProblem)
	check("signing_key", o.Git.SigningKey, pathProblem)
	limits := o.Timeouts.ByPhase()
	for _, phase := range keysOf(reflect.TypeOf(o.Timeouts)) {
		field, limit := "onboard.timeouts."+phase, limits[phase]
		if d.written(field) && d.trusted(field) && (limit < time.Second || limit > 24*time.Hour) {
			d.report(field, "%s is out of range; use 1s to 24h", limit)
		}
	}
}

// repositoryProblem does not show the URL: what was meant as one may hold a
// password.
func repositoryProblem(text string) string {
	if text == "" {
		return ""
	}
	const use = "; use one such as https://git.example/fleet.git"
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || hidden(text):
		return "it is not an HTTP URL" + use
	case u.User != nil:
		return "it has a user or a password, which would be shown" + use + ", with username and password_file"
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return "it has a query or a fragment" + use
	}
	return ""
}

// branchProblem has the rules of git-check-ref-format that a person may break.
func branchProblem(name string) string {
	bad := name == "" || strings.HasPrefix(name, "-") || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") ||
		strings.HasSuffix(name, ".lock") || strings.HasSuffix(name, ".") || strings.Contains(name, "..") || strings.Contains(name, "//") ||
		strings.Contains(name, "@{") || strings.ContainsAny(name, " ~^:?*[\\") || hidden(name)
	if bad {
		return quote(name) + " is not a branch name; use one such as main"
	}
	return ""
}

func fileProblem(file string) string {
	if !fs.ValidPath(file) || file == "." || hidden(file) {
		return quote(file) + " is not a path in a repository; use one such as infrastructure/kustomization.yaml"
	}
	return ""
}

func entryProblem(entry string) string {
	if entry == "" || strings.TrimSpace(entry) != entry || hidden(entry) {
		return quote(entry) + " is not an item of a list of files; use one such as ../NODE-config"
	}
	return ""
}

// objectProblem wants the namespace and the name of an object.
func objectProblem(text string) string {
	namespace, name, _ := strings.Cut(text, "/")
	if !label.MatchString(namespace) || !label.MatchString(name) || len(namespace) > 63 || len(name) > 63 {
		return quote(text) + " is not NAMESPACE/NAME; use one such as flux-system/lab"
	}
	return ""
}

func namespaceOf(object string) string {
	namespace, _, _ := strings.Cut(object, "/")
	return namespace
}

func userProblem(name string) string {
	if name == "" || strings.Contains(name, ":") || hidden(name) {
		return quote(name) + " is not a user name: it is empty, or has a colon or control characters"
	}
	return ""
}
