package image

import (
	"debug/elf"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// mirrorOf serves the programs of a directory in upstream's layout, with their checksums. What is in change replaces a file's text, and
// "" removes it.
func mirrorOf(t *testing.T, dir string, change map[string]string) (m mirror, asked func() []string) {
	t.Helper()
	root := t.TempDir()
	for _, p := range slices.Concat(hostPrograms, imagePrograms) {
		text := read(t, filepath.Join(dir, p))
		write(t, filepath.Join(root, "release/v1.36.3/bin/linux/amd64", p), []byte(text), 0o644)
		write(t, filepath.Join(root, "release/v1.36.3/bin/linux/amd64", p+".sha256"), []byte(digestOf(text)), 0o644)
	}
	for name, text := range change {
		path := filepath.Join(root, "release/v1.36.3/bin/linux/amd64", name)
		if text == "" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		write(t, path, []byte(text), 0o644)
	}
	var mu sync.Mutex
	var requests []string
	files := http.FileServer(http.Dir(root))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		requests = append(requests, strings.TrimPrefix(r.URL.Path, "/release/v1.36.3/bin/linux/amd64/")+r.Header.Get("Range"))
		mu.Unlock()
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	m = mirror{key: "kubernetes.source", url: s.URL + "/release", version: "v1.36.3", parts: filepath.Join(t.TempDir(), "parts"), fetcher: impatient()}
	return m, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Sorted(slices.Values(requests))
	}
}

func TestMirror(t *testing.T) {
	from, to := release(t), t.TempDir()
	m, asked := mirrorOf(t, from, map[string]string{"kubelet.sha256": digestOf(read(t, filepath.Join(from, "kubelet"))) + "  kubelet\n"})
	// An earlier run had one program, and the beginning of another.
	write(t, m.part("kubectl"), []byte(read(t, filepath.Join(from, "kubectl"))), 0o644)
	write(t, m.part("kube-proxy"), []byte(read(t, filepath.Join(from, "kube-proxy"))[:10]), 0o644)
	if err := m.build(t.Context(), to, step(t)); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, p := range slices.Concat(hostPrograms, imagePrograms) {
		info, err := os.Stat(filepath.Join(to, p))
		if err != nil || info.Mode().Perm() != 0o755 || read(t, filepath.Join(to, p)) != read(t, filepath.Join(from, p)) {
			t.Errorf("%s: %v, %v, or another content", p, info, err)
		}
		want = append(want, p, p+".sha256")
	}
	want = slices.DeleteFunc(slices.Sorted(slices.Values(want)), func(s string) bool { return s == "kubectl" })
	if got := asked(); !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
	if exists(m.parts) {
		t.Error("downloads are left")
	}
}

func TestMirrorFails(t *testing.T) {
	html, arm := "<html>Please log in</html>", string(programFile(t, elf.EM_AARCH64, ""))
	const url = "URL/v1.36.3/bin/linux/amd64/"
	tests := []struct {
		name   string
		change map[string]string
		want   []string // URL stands for the mirror's
	}{
		{"no such version", map[string]string{"kubeadm.sha256": "", "kubelet.sha256": "", "kubectl.sha256": ""}, []string{
			"download " + url + "kube", ".sha256: the server answers 404 Not Found; check that the mirror has Kubernetes v1.36.3 (kubernetes.version), " +
				"and that kubernetes.source, URL, has v1.36.3/bin/linux/amd64 in it"}},
		{"no such program", map[string]string{"kube-proxy": ""}, []string{"download " + url + "kube-proxy: the server answers 404 Not Found; check that"}},
		{"a page for a checksum", map[string]string{"kubelet.sha256": html}, []string{
			url + `kubelet.sha256 is not a SHA-256: "<html>Please log in</html>"; check that kubernetes.source is a release mirror`}},
		{"a large page for a checksum", map[string]string{"kubelet.sha256": strings.Repeat(html, 200)}, []string{
			"kubelet.sha256: it has more than 4096 bytes"}},
		{"an empty checksum", map[string]string{"kubelet.sha256": "\n"}, []string{"kubelet.sha256 is not a SHA-256"}},
		{"another file's checksum", map[string]string{"kubelet.sha256": digestOf("x") + " *kubectl"}, []string{
			`kubelet.sha256 has the SHA-256 of another file, "*kubectl"`}},
		{"another checksum", map[string]string{"kubelet.sha256": digestOf("x")}, []string{
			url + "kubelet does not match its checksum", url + "kubelet.sha256 says " + digestOf("x")}},
		{"other files", map[string]string{
			"kubelet": html, "kubelet.sha256": digestOf(html), "kube-proxy": arm, "kube-proxy.sha256": digestOf(arm),
		}, []string{
			"URL has no Kubernetes v1.36.3 that the lab can use:\nkubelet is not a program for Linux: bad magic number",
			"\nkube-proxy is not a program for amd64 but for ELFCLASS64, EM_AARCH64",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, _ := mirrorOf(t, release(t), tt.change)
			err := m.build(t.Context(), t.TempDir(), step(t))
			for _, want := range tt.want {
				if want = strings.ReplaceAll(want, "URL", m.url); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got\n%v\nwant %q in it", err, want)
				}
			}
		})
	}
}

func TestMirrorOfAnotherVersion(t *testing.T) {
	from := release(t)
	write(t, filepath.Join(from, "kubeadm"), kubeadmFile(t, "v1.36.2"), 0o755)
	m, _ := mirrorOf(t, from, nil)
	err := m.build(t.Context(), t.TempDir(), step(t))
	if err == nil || !strings.Contains(err.Error(), "kubeadm is of v1.36.2 and kubernetes.version is v1.36.3; make them the same") {
		t.Errorf("got %v", err)
	}
}

// What arrived before one of the programs failed is not asked for again.
func TestMirrorKeepsWhatArrived(t *testing.T) {
	from := release(t)
	m, asked := mirrorOf(t, from, map[string]string{"kube-proxy.sha256": digestOf("x")}) // the last one
	if err := m.build(t.Context(), t.TempDir(), step(t)); err == nil {
		t.Fatal("no error")
	}
	kept, err := filepath.Glob(m.parts + "/*.part")
	if err != nil || exists(m.part("kube-proxy")) || len(kept) < 4 {
		t.Fatalf("kept %q, %v", kept, err)
	}
	// One of those that came beside the last is perhaps cut off by its failure.
	kept = slices.DeleteFunc(kept, func(part string) bool {
		return read(t, part) != read(t, filepath.Join(from, strings.TrimSuffix(filepath.Base(part), ".part")))
	})
	before := asked()
	again, askedAgain := mirrorOf(t, from, nil)
	again.parts = m.parts
	if err := again.build(t.Context(), t.TempDir(), step(t)); err != nil {
		t.Fatal(err)
	}
	for _, path := range kept {
		program := strings.TrimSuffix(filepath.Base(path), ".part")
		if slices.Contains(before, program) && slices.Contains(askedAgain(), program) {
			t.Errorf("%s was downloaded twice", program)
		}
	}
}

func TestMirrorInputs(t *testing.T) {
	base := mirror{url: "https://mirror.example/release", version: "v1.36.3"}
	for _, other := range []mirror{{url: base.url, version: "v1.36.2"}, {url: "https://mirror.example", version: base.version}} {
		if hash(other.inputs()...) == hash(base.inputs()...) {
			t.Errorf("%v and %v have one place in the cache", base, other)
		}
	}
	m, asked := mirrorOf(t, release(t), nil)
	if m.inputs(); len(asked()) > 0 {
		t.Errorf("what the cache has cannot be used without the network: %q", asked())
	}
}

// FuzzDigest reads what a mirror says of a file.
func FuzzDigest(f *testing.F) {
	f.Add(strings.Repeat("0", 64) + "  kubeadm\n")
	f.Add("<html>")
	f.Fuzz(func(t *testing.T, text string) {
		if sum, err := parseDigest(text, "kubeadm"); err == nil && len(sum) != 64 {
			t.Errorf("%q became %q", text, sum)
		}
	})
}
