package image

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8slab/lab/command"
	"k8slab/lab/event"
)

// source provides the programs of Kubernetes. A component is a source that compiles them.
type source interface {
	// inputs decide the result of build. Computing them needs no network, so that the cache can be used without one.
	inputs() []string
	// origin says where the programs come from.
	origin() origin
	// build puts the programs into dir. Instead of one of imagePrograms it may put an image archive, PROGRAM.tar.
	build(ctx context.Context, dir string, step *event.Step) error
}

const (
	kubernetesName = "kubernetes"
	cniPlugins     = "opt/cni/bin"
)

// hostPrograms are installed in the node, imagePrograms run in containers.
var (
	hostPrograms  = []string{"kubeadm", "kubelet", "kubectl"}
	imagePrograms = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"}
)

// programProblem says why the file cannot run on a node, nil if it can.
func programProblem(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return bare(err)
	}
	if info.Mode()&0o111 == 0 {
		return errors.New("is not executable; chmod +x makes it so")
	}
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("is not a program for Linux: %w", bare(err))
	}
	defer func() { _ = f.Close() }()
	if f.Class != elf.ELFCLASS64 || f.Machine != elf.EM_X86_64 || f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return fmt.Errorf("is not a program for amd64 but for %s, %s, %s; take the files of linux/amd64", f.Class, f.Machine, f.Type)
	}
	return nil
}

// kubeadmBudget bounds a call of kubeadm that needs no network.
const kubeadmBudget = time.Minute

// runKubeadm runs a kubeadm that may have come from a mirror.
func runKubeadm(ctx context.Context, kubeadm string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, kubeadmBudget, fmt.Errorf("no answer for %s", kubeadmBudget))
	defer cancel()
	return command.Command{Argv: append([]string{kubeadm}, args...), Foreign: true}.Run(ctx)
}

// versionProblem says that kubeadm is of another version, or why it does not tell.
func versionProblem(ctx context.Context, kubeadm, version string) error {
	out, err := runKubeadm(ctx, kubeadm, "version", "-o", "short")
	if err != nil {
		return fmt.Errorf("does not tell its version: %w", err)
	}
	if got := strings.TrimSpace(out); got != version {
		return fmt.Errorf("is of %s and kubernetes.version is %s; make them the same", got, version)
	}
	return nil
}

// imageNames are the images that kubeadm asks for in a cluster of the version.
func imageNames(ctx context.Context, kubeadm, version string) ([]string, error) {
	out, err := runKubeadm(ctx, kubeadm, "config", "images", "list", "--kubernetes-version", version)
	return strings.Fields(out), err
}

// origin says where programs come from, and what is known of their code. Unknown values are empty.
type origin struct {
	From    string `json:"from"`
	Version string `json:"version"`
	Commit  string `json:"commit"`
	State   string `json:"tree"` // of the code: clean, or dirty if it had changes that were not committed
}

// nodePrograms are put into the node itself; the others run in containers.
var nodePrograms = map[string]map[string][]string{
	"usr/bin":  {kubernetesName: hostPrograms, "cri-tools": {"crictl"}, "etcd": {"etcdctl", "etcdutl"}, "containerd": {"containerd", "containerd-shim-runc-v2", "ctr"}},
	cniPlugins: {"cni-plugins": {"bandwidth", "bridge", "firewall", "host-device", "host-local", "loopback", "portmap", "ptp", "tuning"}},
}

// imageList is the file beside kubeadm with the names of the images that it asks for.
const imageList = "images"
