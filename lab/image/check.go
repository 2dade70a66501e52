package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"k8slab/lab/command"
)

// CheckDocuments has the image's kubeadm read documents of its configuration and of Kubernetes' components, as strictly as it can. The
// error is its complaint.
func (i Image) CheckDocuments(ctx context.Context, documents string) error {
	dir, err := os.MkdirTemp("", "k8slab-") // 0700
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "kubeadm.yaml")
	if err := os.WriteFile(path, []byte(documents), 0o644); err != nil { // kubeadm runs as nobody
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	kubeadm, _ := i.program("kubeadm")
	return i.check(ctx, command.Command{Argv: []string{kubeadm, "config", "validate", "--config", "/dev/stdin"}, Stdin: file})
}

// CheckArguments has a program of the image's Kubernetes, such as kube-apiserver, read arguments and do nothing else. The error is its
// complaint. A container image that was not built here may have its program elsewhere: then nothing is checked.
func (i Image) CheckArguments(ctx context.Context, program string, arguments ...string) error {
	path, found := i.program(program)
	if !found {
		return nil
	}
	argv := append([]string{path}, arguments...)
	return i.check(ctx, command.Command{Argv: append(argv, "--version")})
}

// program is the path of a program of Kubernetes: of the node itself, or in a layer of a container image.
func (i Image) program(name string) (path string, found bool) {
	for _, place := range []string{"usr/bin", strings.TrimPrefix(sharedStore, "/") + "/layers/*/usr/local/bin"} {
		if paths, _ := fs.Glob(os.DirFS(i.Root()), place+"/"+name); len(paths) > 0 {
			return filepath.Join(i.Root(), paths[0]), true
		}
	}
	return filepath.Join(i.Root(), "usr/bin", name), false
}

// complaint is where a program of Kubernetes says what is wrong. Some kubeadms only warn of a field that they do not know.
var complaint = regexp.MustCompile(`^[Ee]rror: (.*)|err="(.*)"$|(strict decoding error: .*)`)

// decoding is what comes before the complaint of a decoder.
var decoding = regexp.MustCompile(`^(?:error unmarshaling configuration schema\.GroupVersionKind\{[^}]*\}: )?(?:strict decoding error: )?`)

// check runs a program that may have come from a mirror. What it prints after its complaint is help.
func (i Image) check(ctx context.Context, c command.Command) error {
	ctx, cancel := context.WithTimeoutCause(ctx, kubeadmBudget, fmt.Errorf("no answer for %s", kubeadmBudget))
	defer cancel()
	found := ""
	c.Foreign = true
	c.Line = func(line string) {
		if m := complaint.FindStringSubmatch(line); m != nil && found == "" {
			found = strings.Join(m[1:], "")
		}
	}
	if _, err := c.Run(ctx); err != nil && found == "" {
		return err
	}
	if found == "" {
		return nil
	}
	return errors.New(strings.ReplaceAll(decoding.ReplaceAllString(found, ""), `\"`, `"`))
}
