package image

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestBundlePackages(t *testing.T) {
	for _, p := range stockPackages {
		if !slices.Contains(debianPackages, p) {
			t.Errorf("the node image has no %s that a bundle could leave out", p)
		}
	}
	got := bundlePackages()
	for _, p := range []string{"keepalived", "runc", "curl", "nftables", "conntrack"} {
		if !slices.Contains(got, p) {
			t.Errorf("no %s in %q", p, got)
		}
	}
	for _, p := range []string{"linux-image-cloud-amd64", "systemd", "openssh-server"} {
		if slices.Contains(got, p) {
			t.Errorf("%s would replace the image's own", p)
		}
	}
}

// makeDeb makes a package in dir, with the name that apt gives it in its cache.
func makeDeb(t *testing.T, dir, name, version, depends string) {
	t.Helper()
	tree := t.TempDir()
	control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\n%sDescription: one\n two\n", name, version, depends)
	write(t, filepath.Join(tree, "DEBIAN/control"), []byte(control), 0o644)
	file := filepath.Join(dir, name+"_"+strings.ReplaceAll(version, ":", "%3a")+"_all.deb")
	if out, err := exec.Command("dpkg-deb", "--root-owner-group", "--build", tree, file).CombinedOutput(); err != nil {
		t.Skipf("dpkg-deb: %v: %s", err, out)
	}
}

// apt is apt-get with nothing but the repository in dir, for a system without any package.
func apt(t *testing.T, dir string) func(args ...string) (string, error) {
	root := t.TempDir()
	for _, name := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(root, "status"), nil, 0o644)
	write(t, filepath.Join(root, "sources.list"), []byte("deb [trusted=yes] file:"+dir+" ./\n"), 0o644)
	return func(args ...string) (string, error) {
		options := []string{"-qq", "--yes", "-o", "Dir::Etc::SourceParts=/dev/null", "-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=1"}
		for key, value := range map[string]string{
			"Dir::Etc::SourceList": "sources.list", "Dir::State::Lists": "lists", "Dir::State::status": "status", "Dir::Cache": "cache",
		} {
			options = append(options, "-o", key+"="+filepath.Join(root, value))
		}
		cmd := exec.Command("apt-get", append(options, args...)...)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
}

// apt itself finds the packages and what they depend on, and nothing else.
func TestWritePackages(t *testing.T) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("no apt-get")
	}
	dir := t.TempDir()
	makeDeb(t, dir, "outer", "1:2.0-1", "Depends: inner (>= 3)\n")
	makeDeb(t, dir, "inner", "3~rc1", "")
	makeDeb(t, dir, "inner", "3.1+b1", "")
	makeDeb(t, dir, "other", "1", "")
	if err := writePackages(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	get := apt(t, dir)
	if out, err := get("update"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	plan, err := get("--simulate", "install", "outer")
	if err != nil || strings.Count(plan, "Inst ") != 2 || !strings.Contains(plan, "Inst inner (3.1+b1 ") || !strings.Contains(plan, "Inst outer (1:2.0-1 ") {
		t.Errorf("%v, apt would install:\n%s", err, plan)
	}
	if out, err := get("--download-only", "install", "outer"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	// One that is not what the index says is refused.
	file := filepath.Join(dir, "outer_1%3a2.0-1_all.deb")
	data := []byte(read(t, file))
	data[len(data)-1] ^= 1
	write(t, file, data, 0o644)
	if out, err := get("--download-only", "install", "outer"); err == nil || !strings.Contains(out, "Hash Sum mismatch") {
		t.Errorf("a package with another byte: %v: %s", err, out)
	}
}
