// Package kubefile puts a lab into kubeconfigs of a person's own, such as ~/.kube/config, and takes it out again. It changes only entries
// that it made, which carry the lab's UUID.
package kubefile

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8slab/lab/atomicfile"
	"k8slab/lab/kube"
	"k8slab/lab/state"
	"k8slab/lab/wait"
)

// Merged says where a lab was put.
type Merged struct {
	File    string `json:"file"`
	Context string `json:"context"`
}

// Merge puts the lab, as its own kubeconfig describes it, into the first file of $KUBECONFIG that is no lab's own, by default
// ~/.kube/config. An empty context is k8slab-NAME. With use it becomes the current context. Done again, it replaces the lab's entries.
func Merge(ctx context.Context, l state.Lab, kubeconfig []byte, context string, use bool) (Merged, error) {
	m := Merged{Context: cmp.Or(context, "k8slab-"+l.Cluster.Name)}
	id, err := l.ID()
	if err != nil {
		return m, err
	}
	if m.File, err = ofPerson(); err != nil {
		return m, err
	}
	if err := note(l, m.File); err != nil { // first, so that Remove looks there whatever happens
		return m, err
	}
	return m, rewrite(ctx, m.File, func(text []byte) ([]byte, error) {
		return kube.Merge(text, kubeconfig, kube.Entry{Owner: id, Name: m.Context, Use: use})
	})
}

// Renew has the files in which the lab is say what its own kubeconfig says now.
func Renew(ctx context.Context, l state.Lab, kubeconfig []byte) error {
	return inEach(ctx, l, func(id string, text []byte) ([]byte, error) { return kube.Renew(text, kubeconfig, id) })
}

// Remove takes the lab out of every file that it was put into. Where it is not any more, nothing is changed.
func Remove(ctx context.Context, l state.Lab) error {
	return inEach(ctx, l, func(id string, text []byte) ([]byte, error) { return kube.Unmerge(text, id) })
}

func inEach(ctx context.Context, l state.Lab, change func(id string, text []byte) ([]byte, error)) error {
	files, err := Files(l)
	if err != nil || len(files) == 0 {
		return err
	}
	id, err := l.ID()
	if err != nil {
		return err
	}
	for _, file := range files {
		if _, gone := os.Stat(file); errors.Is(gone, fs.ErrNotExist) {
			continue
		}
		err = errors.Join(err, rewrite(ctx, file, func(text []byte) ([]byte, error) { return change(id, text) }))
	}
	return err
}

// record lists the files that a lab was put into, one a line.
const record = "kubeconfigs"

// Files are those that the lab was put into.
func Files(l state.Lab) ([]string, error) {
	text, err := os.ReadFile(l.Path(record))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' }), nil
}

func note(l state.Lab, file string) error {
	files, err := Files(l)
	if err != nil || slices.Contains(files, file) {
		return err
	}
	return l.Write(record, []byte(strings.Join(append(files, file), "\n")+"\n"))
}

// ofPerson is the path of the kubeconfig that kubectl config writes to, but never one below the directory of labs: a shell may have
// exported the lab's own.
func ofPerson() (string, error) {
	labs, err := state.Root()
	if err != nil {
		return "", err
	}
	for _, file := range filepath.SplitList(os.Getenv("KUBECONFIG")) {
		if file == "" {
			continue
		}
		if file, err = filepath.Abs(file); err != nil {
			return "", err
		}
		if !strings.HasPrefix(file, labs+"/") {
			return file, nil
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no place for a kubeconfig: %w; next: set HOME or KUBECONFIG", err)
	}
	return filepath.Join(home, ".kube", "config"), nil
}

// lockBudget bounds the wait for another program that writes the file.
const lockBudget = 5 * time.Second

// rewrite replaces what a kubeconfig says as a whole, so that nothing is lost if the disk is full. Its lock is that of kubectl config.
func rewrite(ctx context.Context, path string, change func([]byte) ([]byte, error)) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("kubeconfig %s: %w", path, err)
		}
	}()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock := path + ".lock"
	err = wait.For(ctx, "its lock", lockBudget, lockBudget/50, func(context.Context) error {
		f, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL, 0)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("another program writes it, or was killed while it did; next: rm %s if none does, and this again", lock)
		}
		if err != nil {
			return wait.Hopeless(err)
		}
		return f.Close()
	})
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(lock) }()
	target, err := filepath.EvalSymlinks(path)
	if _, there := os.Lstat(path); errors.Is(there, fs.ErrNotExist) {
		target, err = path, nil
	}
	if err != nil { // a link to nothing
		return err
	}
	old, err := os.ReadFile(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := change(old)
	if err != nil || bytes.Equal(text, old) {
		return err
	}
	return replace(target, text)
}

// replace writes a file that its owner alone can read, and who owned it before stays its owner: root may change a user's.
func replace(path string, text []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		info, err = os.Stat(filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	if err := atomicfile.Write(path, atomicfile.Private, text); err != nil {
		return err
	}
	if owner, known := info.Sys().(*syscall.Stat_t); known && os.Geteuid() == 0 {
		return os.Chown(path, int(owner.Uid), int(owner.Gid))
	}
	return nil
}
