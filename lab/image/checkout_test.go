package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDescribedVersion(t *testing.T) {
	for described, want := range map[string]string{
		"v1.36.3":                              "v1.36.3",
		"v1.36.3-4-g0f9e9cfe595fc2":            "v1.36.3-4+0f9e9cfe595fc2",
		"v1.38.0-alpha.2-411-g0f9e9cfe595fc2":  "v1.38.0-alpha.2.411+0f9e9cfe595fc2",
		"v1.38.0-alpha.2":                      "v1.38.0-alpha.2",
		"v1.38.0-rc.0-1-g0f9e9cfe595fc2123456": "v1.38.0-rc.0.1+0f9e9cfe595fc2123456",
	} {
		if _, got := describedVersion(described); got != want {
			t.Errorf("%s: got %s, want %s", described, got, want)
		}
	}
}

// repository is one with a commit that is tagged v3.6.9. It has the code of a program of etcd's module.
func repository(t *testing.T) (dir string, run func(args ...string)) {
	t.Helper()
	dir = t.TempDir()
	run = func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %s", args, out)
		}
	}
	write(t, filepath.Join(dir, "go.mod"), []byte("module go.etcd.io/etcd/v3\n\ngo 1.26\n"), 0o644)
	write(t, filepath.Join(dir, "etcdctl/go.mod"), []byte("module go.etcd.io/etcd/etcdctl/v3\n\ngo 1.26\n"), 0o644)
	write(t, filepath.Join(dir, "etcdctl/main.go"), []byte("package main\n\nfunc main() { println(\"etcdctl version: 3.6.9\") }\n"), 0o644)
	write(t, filepath.Join(dir, ".gitignore"), []byte("bin\n"), 0o644)
	run("init", "--quiet")
	run("add", "--all")
	run("commit", "--quiet", "--message=first")
	run("tag", "v3.6.9")
	return dir, run
}

// What identifies a checkout is the content of its files, committed or not, and nothing is written into it.
func TestWorktree(t *testing.T) {
	dir, run := repository(t)
	now := func() worktree {
		t.Helper()
		before := allFiles(t, dir)
		w, err := readWorktree(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if after := allFiles(t, dir); !slices.Equal(before, after) {
			t.Errorf("it wrote into the checkout: %q, before %q", after, before)
		}
		return w
	}
	first := now()
	if first.version != "v3.6.9" || first.state() != "clean" || first.repo != dir || len(first.commit) != 40 {
		t.Errorf("got %+v", first)
	}
	touched := filepath.Join(dir, "etcdctl/main.go")
	if err := os.Chtimes(touched, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "bin/etcdctl"), []byte("ignored"), 0o755)
	if same := now(); same != first {
		t.Errorf("another time and an ignored file: got %+v, want %+v", same, first)
	}
	write(t, filepath.Join(dir, "etcdctl/new.go"), []byte("package main\n"), 0o644)
	dirty := now()
	if dirty.content == first.content || dirty.state() != "dirty" || dirty.version != "v3.6.9-dirty" {
		t.Errorf("with a new file: %+v", dirty)
	}
	run("add", "--all")
	run("commit", "--quiet", "--message=second")
	second := now()
	if second.content != dirty.content || second.state() != "clean" || second.version != "v3.6.9-1+"+second.commit[:14] {
		t.Errorf("the same, committed: %+v, before %+v", second, dirty)
	}
	beside := filepath.Join(t.TempDir(), "tree")
	run("worktree", "add", "--quiet", "--detach", beside)
	if w, err := readWorktree(t.Context(), beside); err != nil || w != second {
		t.Errorf("another worktree: %+v, %v", w, err)
	}
}

func TestDirectoryWithoutGit(t *testing.T) {
	dir, _ := repository(t)
	if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
		t.Fatal(err)
	}
	first, err := readWorktree(t.Context(), dir)
	if err != nil || first.version != "" || first.state() != "" {
		t.Fatalf("got %+v, %v", first, err)
	}
	write(t, filepath.Join(dir, "_output/bin/etcdctl"), []byte("built"), 0o755)
	if same, err := readWorktree(t.Context(), dir); err != nil || same != first {
		t.Errorf("something built: %+v, %v", same, err)
	}
	write(t, filepath.Join(dir, "etcdctl/main.go"), []byte("package main\n"), 0o644)
	if other, err := readWorktree(t.Context(), dir); err != nil || other.content == first.content {
		t.Errorf("another file: %+v, %v", other, err)
	}
}

// A checkout is compiled elsewhere, with its commit in what it tells of itself.
func TestCheckoutCompiles(t *testing.T) {
	dir, _ := repository(t)
	c, err := openCheckout(t.Context(), "etcd.source", dir, "etcd", []string{"etcdctl"}, "", step(t))
	if err != nil {
		t.Fatal(err)
	}
	before, to := allFiles(t, dir), t.TempDir()
	if err := c.build(t.Context(), to, step(t)); err != nil {
		t.Fatal(err)
	}
	if problem := programProblem(filepath.Join(to, "etcdctl")); problem != nil || len(listDir(t, to)) > 0 || !slices.Equal(allFiles(t, dir), before) {
		t.Errorf("it built what %v, and left %q", problem, listDir(t, to))
	}
	p := Program{Name: "etcdctl", origin: c.origin()}
	p.tell(t.Context(), filepath.Join(to, "etcdctl"))
	if p.From != "checkout "+dir || p.Commit != c.is.commit || p.State != "clean" {
		t.Errorf("got %+v", p)
	}
	write(t, filepath.Join(dir, "etcdctl/main.go"), []byte("package main\n\nfunc main() {}\n"), 0o644)
	if err := c.build(t.Context(), t.TempDir(), step(t)); err == nil || !strings.Contains(err.Error(), "changed while it was being compiled") {
		t.Errorf("a checkout that is not what was read: %v", err)
	}
	_, err = openCheckout(t.Context(), "kubernetes.source", dir, kubernetesName, nil, "", step(t))
	if err == nil || !strings.Contains(err.Error(), "is a checkout of go.etcd.io/etcd/v3, not of kubernetes") {
		t.Errorf("as Kubernetes: %v", err)
	}
}

func TestCheckoutWithoutAVersion(t *testing.T) {
	dir, run := repository(t)
	run("tag", "--delete", "v3.6.9")
	write(t, filepath.Join(dir, "go.mod"), []byte("module k8s.io/kubernetes\n\ngo 1.26\n"), 0o644)
	_, err := openCheckout(t.Context(), "kubernetes.source", dir, kubernetesName, nil, "", step(t))
	if err == nil || !strings.Contains(err.Error(), "does not tell its version: it is no tag v*") || !strings.Contains(err.Error(), "write kubernetes.version") {
		t.Errorf("got %v", err)
	}
	run("tag", "v1.35.0")
	if _, err := kubernetesIn(t.Context(), dir, "v1.36.3", step(t)); err == nil || !strings.Contains(err.Error(), "is v1.35.0-dirty, and the cluster's version is v1.36.3") {
		t.Errorf("another minor version: %v", err)
	}
}

// The directory _output of a checkout has programs in several places.
func TestOutputDirectory(t *testing.T) {
	from, dir := release(t), filepath.Join(t.TempDir(), "_output")
	for _, p := range slices.Concat(hostPrograms, imagePrograms) {
		write(t, filepath.Join(dir, "local/bin/linux/amd64", p), []byte(read(t, filepath.Join(from, p))), 0o755)
	}
	d, err := openDirectory(t.Context(), dir, "v1.36.3", step(t))
	if err != nil || d.files[0].name != "local/bin/linux/amd64/kubeadm" {
		t.Fatalf("got %+v, %v", d, err)
	}
	write(t, filepath.Join(dir, "dockerized/bin/linux/amd64/kubelet"), []byte(read(t, filepath.Join(from, "kubectl"))), 0o755)
	_, err = openDirectory(t.Context(), dir, "v1.36.3", step(t))
	if err == nil || !strings.Contains(err.Error(), "kubelet is not the same in local/bin/linux/amd64 and dockerized/bin/linux/amd64") {
		t.Errorf("two builds: %v", err)
	}
}

// A program that comes from elsewhere is a part of its own, and its kubeadm says which images there are.
func TestReplacedProgram(t *testing.T) {
	from := release(t)
	own := filepath.Join(t.TempDir(), "my-kubeadm")
	write(t, own, kubeadmFile(t, "v1.36.9"), 0o755)
	b := newBuilder(home(t))
	spec := Spec{KubernetesVersion: "v1.36.3", KubernetesSource: from, Programs: map[string]string{"kubeadm": own}}
	if err := b.kubernetes(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if got := read(t, b.bin(kubernetesName, "kubeadm")); got != read(t, own) {
		t.Error("kubeadm is not the one of kubernetes.programs")
	}
	if got := b.bin(kubernetesName, "kubelet"); got != filepath.Join(b.dirs[kubernetesName], "kubelet") {
		t.Errorf("kubelet is %s", got)
	}
	if got := read(t, b.bin(kubernetesName, imageList)); !strings.Contains(got, "kube-apiserver:v1.36.9") {
		t.Errorf("images %q", got)
	}
	if len(b.inputs) != 2 || b.from["kubeadm"].From != "directory "+filepath.Dir(own) {
		t.Errorf("the image depends on %q, from %v", b.inputs, b.from)
	}
	spec.Programs = map[string]string{"kubelet": filepath.Join(from, "nothing")}
	if err := b.kubernetes(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "kubernetes.programs.kubelet: "+from+"/nothing: ") {
		t.Errorf("a program that is not there: %v", err)
	}
}

// allFiles are the files of a tree with their contents.
func allFiles(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			all = append(all, path+" "+read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
