package config

import (
	"fmt"
	"hash/fnv"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Registry says how nodes pull images from one registry.
type Registry struct {
	// Name is what stands before the first slash of its images' references:
	// HOST or HOST:PORT, docker.io for those that have none. Required, unique in
	// the file.
	Name string `yaml:"name"`
	// Mirrors are http:// or https:// URLs that are asked before the registry, in
	// this order; default none. A registry without TLS is its own mirror, with
	// http://.
	Mirrors []string `yaml:"mirrors,omitempty"`
	// CAFile is the absolute path of a PEM file with the authorities that signed
	// the certificates of the registry and its mirrors; default none: those that
	// the nodes' system knows.
	CAFile string `yaml:"ca_file,omitempty"`
	// CredentialsFile is the absolute path of a file with mode 0600 and one
	// line, USER:PASSWORD; default none.
	CredentialsFile string `yaml:"credentials_file,omitempty"`
	// Cache has the add-on registry keep what nodes pull from the first mirror,
	// or without one from the registry, for the next lab too; default false.
	Cache bool `yaml:"cache,omitempty"`
}

// Upstream is the URL that a cache of the registry pulls from.
func (r Registry) Upstream() string {
	switch {
	case len(r.Mirrors) > 0:
		return strings.TrimSuffix(strings.TrimRight(r.Mirrors[0], "/"), "/v2") // which a mirror's URL may end with, and which the cache adds
	case r.Name == "docker.io":
		return "https://registry-1.docker.io"
	}
	return "https://" + r.Name
}

// CachePort is the port of every node that leads to the registry's cache. It depends on the name alone: a node that was made before another
// registry came into the file must not ask the cache of the wrong one.
func (r Registry) CachePort() int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(r.Name))
	return LabRegistryPort + 1 + int(h.Sum32()%cachePorts)
}

// cachePorts is how many ports caches may have.
const cachePorts = 500

// DirName is the name of the directory with what a cache of the registry has.
func (r Registry) DirName() string { return strings.ReplaceAll(r.Name, ":", "_") }

// The registry of the add-on of that name: what stands before its images' names, on nodes and, while `labctl open registry` runs, on this
// computer; and the port by which every node has it.
const (
	LabRegistry     = "localhost:5000"
	LabRegistryPort = 30500
)

var registryName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`)

func (d *document) checkRegistries(all []Registry, addons []string) {
	first, ports := map[string]string{}, map[int]string{}
	for i, r := range all {
		at := fmt.Sprintf("registries[%d]", i)
		name := at + ".name"
		switch {
		case !d.trusted(at, name):
		case r.Name == "":
			d.report(name, "missing; write what stands before the first slash of the images' names, such as docker.io or registry.example:5000")
		case len(r.Name) > 255 || !registryName.MatchString(r.Name):
			d.report(name, "%s is not a registry; use HOST or HOST:PORT, such as docker.io or registry.example:5000", quote(r.Name))
		case first[r.Name] != "":
			d.report(name, "%s is already %s on line %d; keep one of them", quote(r.Name), first[r.Name], d.line(first[r.Name]))
		default:
			first[r.Name] = name
			if r.Cache && d.trusted(at, at+".cache") {
				d.checkCache(at+".cache", r, addons, ports)
			}
		}
		for k, mirror := range r.Mirrors {
			if why := mirrorProblem(mirror); why != "" && d.trusted(fmt.Sprintf("%s.mirrors[%d]", at, k)) {
				d.report(fmt.Sprintf("%s.mirrors[%d]", at, k), "%s", why)
			}
		}
		for key, file := range map[string]string{"ca_file": r.CAFile, "credentials_file": r.CredentialsFile} {
			if why := pathProblem(file); why != "" && d.trusted(at+"."+key) {
				d.report(at+"."+key, "%s", why)
			}
		}
	}
}

// checkCache reports what keeps a registry from having a cache; ports has the caches before it.
func (d *document) checkCache(at string, r Registry, addons []string, ports map[int]string) {
	port := r.CachePort()
	switch {
	case !slices.Contains(addons, "registry"):
		d.report(at, "the add-on registry has the caches; write addons: [registry], or leave the cache out")
	case r.CredentialsFile != "":
		d.report(at, "not with credentials_file: whoever reaches a node could pull from the cache what the login gives; leave one of them out")
	case ports[port] != "":
		d.report(at, "by chance the caches of %s and %s would have the same port, %d; leave one of them out", quote(r.Name), quote(ports[port]), port)
	default:
		ports[port] = r.Name
	}
}

// mirrorProblem does not show the URL: what was meant as one may hold a
// password.
func mirrorProblem(text string) string {
	const use = "; use one such as https://mirror.example:5000"
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || hidden(text):
		return "it is not an HTTP URL" + use
	case u.User != nil:
		return "it has a user or a password, which would be shown" + use + ", with credentials_file"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "it has a query or a fragment" + use
	}
	return ""
}
