package image

import (
	"context"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"k8slab/lab/command"
)

func TestDirectory(t *testing.T) {
	from, to := release(t), t.TempDir()
	writeArchive(t, filepath.Join(from, "kube-apiserver.tar"), apiserverRef, "amd64")
	writeArchive(t, filepath.Join(from, "kube-proxy.tar"), "registry.k8s.io/kube-proxy-amd64:v1.36.3", "amd64")
	zip(t, filepath.Join(from, "kube-proxy.tar"))
	if err := os.Remove(filepath.Join(from, "kube-apiserver")); err != nil { // the archive is enough
		t.Fatal(err)
	}
	d, err := openDirectory(t.Context(), from, "v1.36.3", step(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.build(t.Context(), to, step(t)); err != nil {
		t.Fatal(err)
	}
	if err := versionProblem(t.Context(), filepath.Join(to, "kubeadm"), "v1.36.3"); err != nil {
		t.Error(err)
	}
	for name, mode := range map[string]os.FileMode{
		"kubeadm": 0o755, "kubelet": 0o755, "kubectl": 0o755, "kube-controller-manager": 0o755, "kube-scheduler": 0o755,
		"kube-apiserver.tar": 0o644, "kube-proxy.tar": 0o644,
	} {
		source := name
		if name == "kube-proxy.tar" {
			source = "kube-proxy.tar.gz"
		}
		info, err := os.Stat(filepath.Join(to, name))
		if err != nil || info.Mode().Perm() != mode || read(t, filepath.Join(to, name)) != read(t, filepath.Join(from, source)) {
			t.Errorf("%s: %v, %v, or another content", name, info, err)
		}
	}
	if exists(filepath.Join(to, "kube-proxy")) {
		t.Error("the program is there beside the image that stands for it")
	}
}

func TestDirectoryProblems(t *testing.T) {
	type change func(t *testing.T, dir string)
	remove := func(name string) change {
		return func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	put := func(name, text string, mode os.FileMode) change {
		return func(t *testing.T, dir string) {
			t.Helper()
			_ = os.Remove(filepath.Join(dir, name))
			write(t, filepath.Join(dir, name), []byte(text), mode)
		}
	}
	archive := func(name, ref, arch string) change {
		return func(t *testing.T, dir string) { t.Helper(); writeArchive(t, filepath.Join(dir, name), ref, arch) }
	}
	arm := string(programFile(t, elf.EM_AARCH64, ""))
	const armProblem = " is not a program for amd64 but for ELFCLASS64, EM_AARCH64, ET_EXEC; take the files of linux/amd64"
	some := digestOf("some")
	proxyRef := "registry.k8s.io/kube-proxy:v1.36.3"
	notProxy := func(ref string) string {
		return `kube-proxy.tar has the image "` + ref + `", and kubeadm asks for ` + proxyRef + "; take the archive of that release"
	}
	tests := []struct {
		name    string
		changes []change
		want    []string // lines after the first
	}{
		{"a program is missing", []change{remove("kubelet")}, []string{"kubelet is missing"}},
		{"kubeadm is missing", []change{remove("kubeadm")}, []string{"kubeadm is missing"}},
		{"a control plane's program is missing", []change{remove("kube-scheduler")}, []string{"kube-scheduler is missing, and so is kube-scheduler.tar"}},
		{"a link to nothing", []change{remove("kubelet"), func(t *testing.T, dir string) {
			if err := os.Symlink("nothing", filepath.Join(dir, "kubelet")); err != nil {
				t.Fatal(err)
			}
		}}, []string{"kubelet is missing"}},
		{"not a file", []change{remove("kubelet"), func(t *testing.T, dir string) {
			if err := syscall.Mkfifo(filepath.Join(dir, "kubelet"), 0o644); err != nil { // reading it would wait for ever
				t.Fatal(err)
			}
		}}, []string{"kubelet is not a file"}},
		{"not executable", []change{put("kubectl", string(programFile(t, elf.EM_X86_64, "")), 0o644)}, []string{
			"kubectl is not executable; chmod +x makes it so"}},
		{"a script", []change{put("kubectl", "#!/bin/sh\nexec kubectl-1.36 \"$@\"\n", 0o755)}, []string{
			"kubectl is not a program for Linux: bad magic number '[35 33 47 98]' in record at byte 0x0"}},
		{"for another machine", []change{put("kubelet", arm, 0o755)}, []string{"kubelet" + armProblem}},
		{"archive twice", []change{archive("kube-proxy.tar", "x", "amd64"), put("kube-proxy.tar.gz", "", 0o644)}, []string{
			"kube-proxy exists twice, as kube-proxy.tar and as kube-proxy.tar.gz; keep one"}},
		{"archive of nothing", []change{put("kube-proxy.tar", "text", 0o644)}, []string{
			"kube-proxy.tar is not a usable image archive: manifest.json: unexpected EOF"}},
		{"archive of another version", []change{archive("kube-proxy.tar", "registry.k8s.io/kube-proxy:v1.36.2", "amd64")}, []string{
			notProxy("registry.k8s.io/kube-proxy:v1.36.2")}},
		{"archive of another program", []change{archive("kube-proxy.tar", apiserverRef, "amd64")}, []string{notProxy(apiserverRef)}},
		{"archive for another machine", []change{archive("kube-proxy.tar", proxyRef, "arm64")}, []string{
			"kube-proxy.tar is an image for linux/arm64; take the one for linux/amd64"}},
		{"wrong checksum", []change{put("SHA256SUMS", sumsWith(t, "kubectl", some), 0o644)}, []string{
			"kubectl has the SHA-256 " + digestOf(string(programFile(t, elf.EM_X86_64, "kubectl"))) + ", and SHA256SUMS says " + some +
				"; copy it again from where it came from"}},
		{"no checksum", []change{put("SHA256SUMS", sumsWith(t, "kubectl", ""), 0o644)}, []string{
			"kubectl is not in SHA256SUMS; add it, or remove that file"}},
		{"no checksums", []change{put("SHA256SUMS", sumsWith(t, "", "")+"some text\n", 0o644)}, []string{
			"SHA256SUMS: line 8 is not a SHA-256 and a file name"}},
		{"several", []change{remove("kubelet"), put("kube-proxy", arm, 0o755), archive("kube-scheduler.tar", "x", "arm64"),
			put("kubeadm", string(kubeadmFile(t, "v1.35.0")), 0o755)}, []string{
			"kubelet is missing",
			"kube-proxy" + armProblem,
			"kubeadm is of v1.35.0 and kubernetes.version is v1.36.3; make them the same",
			"kube-scheduler.tar is an image for linux/arm64; take the one for linux/amd64",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := release(t)
			for _, change := range tt.changes {
				change(t, dir)
			}
			_, err := openDirectory(t.Context(), dir, "v1.36.3", step(t))
			want := "kubernetes.source: " + dir + " has no Kubernetes v1.36.3 that the lab can use:\n" + strings.Join(tt.want, "\n")
			if err == nil || err.Error() != want {
				t.Errorf("got\n%v\nwant\n%s", err, want)
			}
		})
	}
}

func TestDirectoryWhoseKubeadmFails(t *testing.T) {
	dir := release(t)
	write(t, filepath.Join(dir, "kubeadm"), programFile(t, elf.EM_X86_64, ""), 0o755)
	_, err := openDirectory(t.Context(), dir, "v1.36.3", step(t))
	want := "\nkubeadm does not tell its version: " + dir + "/kubeadm version -o short: "
	var failed *command.Error
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q in it", err, want)
	}
}

// sumsWith is the SHA256SUMS of a release, with another checksum for one file, or without it.
func sumsWith(t *testing.T, name, digest string) string {
	t.Helper()
	dir := release(t)
	var lines strings.Builder
	for _, p := range slices.Concat(hostPrograms, imagePrograms) {
		sum := digestOf(read(t, filepath.Join(dir, p)))
		if p == name {
			sum = digest
		}
		if sum != "" {
			lines.WriteString(sum + " *./" + p + "\n")
		}
	}
	return lines.String()
}

func TestDirectoryWithChecksums(t *testing.T) {
	dir := release(t)
	write(t, filepath.Join(dir, "SHA256SUMS"), []byte(digestOf("other")+"  other\n"+sumsWith(t, "", "")), 0o644)
	if _, err := openDirectory(t.Context(), dir, "v1.36.3", step(t)); err != nil {
		t.Error(err)
	}
}

func TestNoDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	_, err := openDirectory(t.Context(), dir, "v1.36.3", step(t))
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "kubernetes.source: open "+dir) {
		t.Errorf("got %v", err)
	}
}

func TestDirectoryInputs(t *testing.T) {
	dir := release(t)
	open := func() *directory {
		d, err := openDirectory(t.Context(), dir, "v1.36.3", step(t))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first := open()
	dir = release(t)
	if hash(open().inputs()...) != hash(first.inputs()...) {
		t.Error("the same files elsewhere are other ones")
	}
	write(t, filepath.Join(dir, "kubelet"), programFile(t, elf.EM_X86_64, "changed"), 0o755)
	if hash(open().inputs()...) == hash(first.inputs()...) {
		t.Error("a changed file would not be used")
	}
}

func TestDirectoryThatChanges(t *testing.T) {
	dir := release(t)
	d, err := openDirectory(t.Context(), dir, "v1.36.3", step(t))
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.build(ended, t.TempDir(), step(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: got %v", err)
	}
	write(t, filepath.Join(dir, "kubelet"), programFile(t, elf.EM_X86_64, "changed"), 0o755)
	want := filepath.Join(dir, "kubelet") + " changed while it was being used"
	if err := d.build(t.Context(), t.TempDir(), step(t)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}
