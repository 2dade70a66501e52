package etcdadmin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/node"
	"k8slab/lab/session"
)

// fakeShell is a control plane as a restore sees it: files, and a kubelet that runs what has a manifest. It fails the test at any command
// that it does not know.
type fakeShell struct {
	t       *testing.T
	files   map[string]string
	kubelet string // active, inactive, or failed, which cannot be started
	stopped bool   // what runs of the manifests was stopped, and no kubelet has started it since
	lingers int    // how often it must be stopped until it ends
	calls   []string
	fail    func(line string) error
}

const manifestText = "spec:\n  containers:\n  - name: etcd\n    command:\n    - etcd\n    - --name=cp1\n    - --initial-advertise-peer-urls=https://10.30.0.11:2380\n    - --data-dir=/var/lib/etcd\n"

// newShell is a control plane that runs, with etcd data "old".
func newShell(t *testing.T) *fakeShell {
	return &fakeShell{t: t, kubelet: "active", lingers: 2, files: map[string]string{
		session.ManifestDir + "/etcd.yaml": manifestText, session.ManifestDir + "/kube-apiserver.yaml": "api", session.ManifestDir + "/kube-scheduler.yaml": "scheduler",
		session.EtcdData + "/member/snap/db": "old",
	}}
}

func (f *fakeShell) runs() bool {
	if f.kubelet != "active" {
		return !f.stopped
	}
	return f.files[session.ManifestDir+"/etcd.yaml"] != "" || f.files[session.ManifestDir+"/kube-apiserver.yaml"] != ""
}

func (f *fakeShell) below(dir string) (names []string) {
	for name := range f.files {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			names = append(names, name)
		}
	}
	return names
}

func (f *fakeShell) begin(ctx context.Context, argv []string) error {
	line := strings.Join(argv, " ")
	f.calls = append(f.calls, line)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if f.fail != nil {
		return f.fail(line)
	}
	return nil
}

func (f *fakeShell) Copy(ctx context.Context, file string, mode fs.FileMode, content io.Reader) error {
	if err := f.begin(ctx, []string{"copy", file}); err != nil {
		return err
	}
	data, err := io.ReadAll(content)
	if mode != 0o600 {
		f.t.Errorf("%s has mode %v", file, mode)
	}
	f.files[file] = string(data)
	return err
}

func (f *fakeShell) Read(ctx context.Context, argv ...string) (string, error) {
	if err := f.begin(ctx, argv); err != nil {
		return "", err
	}
	switch argv[0] {
	case "cat":
		if text, ok := f.files[argv[1]]; ok {
			return text, nil
		}
		return "", fmt.Errorf("cat: %s: no such file", argv[1])
	case "etcdutl":
		return "etcdutl version: 3.6.8\n", nil
	case "crictl":
		if f.runs() {
			return "c1\nc2\n", nil
		}
		return "", nil
	case "find":
		if dir := path.Join(argv[1], argv[len(argv)-1]); len(f.below(dir)) > 0 {
			return dir + "\n", nil
		}
		return "", nil
	}
	f.t.Errorf("unexpected question %q", argv)
	return "", errors.New("not told")
}

func (f *fakeShell) Run(ctx context.Context, cmd node.Command) error {
	argv := cmd.Argv
	if err := f.begin(ctx, argv); err != nil {
		return err
	}
	last := argv[len(argv)-1]
	switch argv[0] {
	case "mkdir":
	case "systemctl":
		switch {
		case argv[1] == "stop":
			f.kubelet = "inactive"
		case f.kubelet == "failed":
			return errors.New("exit status 1")
		case f.kubelet == "inactive":
			f.kubelet, f.stopped = "active", false
		}
	case "crictl":
		if f.kubelet == "active" {
			f.t.Error("stopped what kubelet starts again")
		}
		if f.lingers--; f.lingers < 0 {
			f.stopped = true
		}
	case "rm":
		for _, name := range f.below(last) {
			delete(f.files, name)
		}
	case "find": // … -name N [-o -name N] … -exec mv -f -t TO {} +
		to := argv[slices.Index(argv, "-t")+1]
		for i, word := range argv {
			if from := path.Join(argv[1], argv[min(i+1, len(argv)-1)]); word == "-name" && f.files[from] != "" {
				f.rename(from, path.Join(to, path.Base(from)))
			}
		}
	case "mv":
		if len(f.below(argv[2])) == 0 || len(f.below(last)) > 0 {
			return fmt.Errorf("mv: cannot move %s to %s", argv[2], last)
		}
		f.rename(argv[2], last)
	case "etcdutl":
		return f.etcdutl(argv)
	default:
		f.t.Errorf("unexpected command %q", argv)
	}
	return nil
}

func (f *fakeShell) rename(from, to string) {
	for _, name := range f.below(from) {
		f.files[to+strings.TrimPrefix(name, from)] = f.files[name]
		delete(f.files, name)
	}
}

func (f *fakeShell) etcdutl(argv []string) error {
	into := argv[slices.Index(argv, "--data-dir")+1]
	source, ok := f.files[argv[3]]
	switch {
	case f.runs():
		f.t.Error("restored beside an etcd that runs")
	case len(f.below(into)) > 0:
		return fmt.Errorf("%s is not empty", into)
	case !ok:
		return fmt.Errorf("open %s: no such file", argv[3])
	}
	f.files[into+"/member/snap/db"] = "restored from " + source
	return nil
}

// state is every file but the manifests of what runs.
func (f *fakeShell) state() string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		lines = append(lines, name+" "+strings.SplitN(f.files[name], ":", 2)[0])
	}
	if f.kubelet == "inactive" {
		lines = append(lines, "and its kubelet was left stopped")
	}
	return strings.Join(lines, "\n")
}
