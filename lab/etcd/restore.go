package etcd

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"
)

// Identity is who a control plane's etcd is, by its static pod's manifest.
type Identity struct {
	Name    string
	PeerURL string // https://IP:2380
	DataDir string // an absolute path, as on the node
}

// ParseManifest reads the identity out of the manifest that kubeadm writes. Its error names everything that is missing.
func ParseManifest(text string) (Identity, error) {
	var pod struct {
		Spec struct {
			Containers []struct {
				Name    string
				Command []string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &pod); err != nil {
		return Identity{}, fmt.Errorf("read etcd's manifest: %w", err)
	}
	var id Identity
	flags := map[string]*string{"--name": &id.Name, "--initial-advertise-peer-urls": &id.PeerURL, "--data-dir": &id.DataDir}
	for _, container := range pod.Spec.Containers {
		if container.Name != "etcd" {
			continue
		}
		for _, arg := range container.Command {
			name, value, _ := strings.Cut(arg, "=")
			if field := flags[name]; field != nil {
				*field = value
			}
		}
	}
	if err := id.check(); err != nil {
		return Identity{}, fmt.Errorf("read etcd's manifest: %w", err)
	}
	return id, nil
}

func (id Identity) check() error {
	var errs []error
	if id.Name == "" || strings.ContainsAny(id.Name, "=,") {
		errs = append(errs, fmt.Errorf("--name %q cannot be used", id.Name))
	}
	if u, err := url.Parse(id.PeerURL); err != nil || u.Scheme != "https" || u.Port() == "" || strings.Contains(id.PeerURL, ",") {
		errs = append(errs, fmt.Errorf("--initial-advertise-peer-urls %q is not https://host:port", id.PeerURL))
	}
	if !path.IsAbs(id.DataDir) || path.Clean(id.DataDir) != id.DataDir || path.Dir(id.DataDir) == "/" {
		errs = append(errs, fmt.Errorf("--data-dir %q is not a clean absolute path below a directory", id.DataDir))
	}
	return errors.Join(errs...)
}

// Restoration says what to make a new cluster of one member out of.
type Restoration struct {
	Identity Identity
	Source   string // on the node: a snapshot, or the db file of a stopped member
	Checksum bool   // Source ends with one, as snapshots do and db files do not
	Into     string // the new data directory, which must not exist
	Token    string // of the new cluster; never one that was used before
	Version  string // of the node's etcdutl, for example 3.6.8
}

// revisionBump makes every new revision larger than any that the lost cluster can have given out: it would take a thousand writes a second
// for eleven days after the snapshot. Clients that watched the lost one are told to list again.
const revisionBump = "1000000000"

// Argv is the command that makes the data directory. The token must be new because etcd computes the cluster's and the member's ID from it:
// with the default one a restored first control plane would have the IDs that it had before, and the lost cluster's members, once they are
// back, would take it for one of theirs.
func (r Restoration) Argv() []string {
	argv := []string{
		"etcdutl", "snapshot", "restore", r.Source,
		"--name", r.Identity.Name,
		"--initial-cluster", r.Identity.Name + "=" + r.Identity.PeerURL,
		"--initial-advertise-peer-urls", r.Identity.PeerURL,
		"--initial-cluster-token", r.Token,
		"--data-dir", r.Into,
	}
	if !r.Checksum {
		argv = append(argv, "--skip-hash-check")
	}
	if semver.Compare("v"+r.Version, "v3.6.0") >= 0 { // older ones do not know it
		argv = append(argv, "--bump-revision", revisionBump, "--mark-compacted")
	}
	return argv
}

// ParseVersion takes the version out of what `etcdutl version` prints.
func ParseVersion(text string) (string, error) {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "etcdutl version: "); ok && semver.IsValid("v"+v) {
			return v, nil
		}
	}
	return "", fmt.Errorf("%q does not say etcdutl's version", strings.TrimSpace(text))
}
