package image

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8slab/lab/command"
)

// Program is a program of a node image.
type Program struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // of the program, or of the archive of its container image
	origin
}

// buildFile is the file of a node image with its programs.
const buildFile = "usr/lib/k8slab/build-id.json"

// built are the programs that nodes and their container images have, by their components.
func built() map[string][]string {
	all := map[string][]string{kubernetesName: imagePrograms, "etcd": {"etcd"}, "coredns": {"coredns"}, "flannel": {"flanneld"}}
	for _, components := range nodePrograms {
		for component, programs := range components {
			all[component] = slices.Concat(all[component], programs)
		}
	}
	return all
}

// writePrograms writes the list of programs into the image's root tree.
func (b *builder) writePrograms(ctx context.Context, root string) error {
	var list []Program
	for component, programs := range built() {
		for _, name := range programs {
			p := Program{Name: name, origin: b.from[b.partOf(component, name)]}
			path := b.bin(component, name)
			if archive := path + archiveEnding; exists(archive) {
				path = archive
			} else {
				p.tell(ctx, path)
			}
			var err error
			if p.SHA256, err = fileHash(path); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b Program) int { return cmp.Compare(a.Name, b.Name) })
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(root, buildFile)
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, append(text, '\n'), 0o644))
}

// telling is how a program is asked for its version. The others print none, or only among errors.
var telling = map[string][]string{
	"kubeadm": {"version", "-o", "json"}, "kubectl": {"version", "--client", "-o", "json"},
	"kubelet": {"--version=raw"}, "kube-apiserver": {"--version=raw"}, "kube-controller-manager": {"--version=raw"},
	"kube-scheduler": {"--version=raw"}, "kube-proxy": {"--version=raw"},
	"etcd": {"--version"}, "etcdctl": {"version"}, "etcdutl": {"version"}, "coredns": {"-version"},
	"containerd": {"--version"}, "containerd-shim-runc-v2": {"-v"}, "ctr": {"--version"}, "crictl": {"--version"},
}

var (
	toldVersion = regexp.MustCompile(`(?i)gitVersion"?: ?"([^"]+)"|\bv?([0-9]+\.[0-9]+\.[0-9]+[-+.0-9A-Za-z]*)`)
	toldCommit  = regexp.MustCompile(`\b[0-9a-f]{40}\b`)
	toldState   = regexp.MustCompile(`(?i)gitTreeState"?: ?"(clean|dirty)"`)
)

// tell takes over what the program says of itself: whoever built it, it is what runs. One that says nothing is as its source says.
func (p *Program) tell(ctx context.Context, path string) {
	args, known := telling[p.Name]
	if !known {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, kubeadmBudget)
	defer cancel()
	said, err := command.Command{Argv: append([]string{path}, args...), Foreign: true}.Run(ctx)
	if err != nil {
		return
	}
	if m := toldVersion.FindStringSubmatch(said); m != nil {
		p.Version = "v" + strings.TrimPrefix(cmp.Or(m[1], m[2]), "v")
	}
	if commit := toldCommit.FindString(said); commit != "" {
		p.Commit = commit
		if m := toldState.FindStringSubmatch(said); m != nil {
			p.State = m[1]
		}
	}
}
