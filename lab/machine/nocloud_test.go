package machine

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func makeNoCloud(t *testing.T, files map[string]string) string {
	t.Helper()
	seed := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(seed, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "seed.iso")
	if err := writeNoCloud(path, seed); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("beside the disk there is %v, %v", left, err)
	}
	return path
}

// output runs one of the programs that read the disk with code of their own, as cloud-init's machine does.
func output(t *testing.T, argv ...string) string {
	t.Helper()
	program, err := exec.LookPath(argv[0])
	if err != nil {
		t.Fatalf("%s is not installed; make deps, as root, installs it", argv[0])
	}
	out, err := exec.Command(program, argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

var noCloudFiles = map[string]string{
	"meta-data":      "instance-id: 1\n",
	"user-data":      "#cloud-config\n" + strings.Repeat("a", 3*2048),
	"network-config": strings.Repeat("b", 2048), // a whole sector
}

func TestNoCloudFiles(t *testing.T) {
	path, into := makeNoCloud(t, noCloudFiles), t.TempDir()
	output(t, "bsdtar", "-xf", path, "-C", into)
	got := map[string]string{}
	entries, err := os.ReadDir(into)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(into, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = string(data)
	}
	if !maps.Equal(got, noCloudFiles) {
		t.Errorf("got %v", got)
	}
}

func TestNoCloudLabel(t *testing.T) {
	path := makeNoCloud(t, noCloudFiles)
	for tag, want := range map[string]string{"LABEL": "cidata", "TYPE": "iso9660"} {
		if got := output(t, "blkid", "--probe", "--output", "value", "--match-tag", tag, path); got != want {
			t.Errorf("%s is %q, want %q", tag, got, want)
		}
	}
}

// The host key is in it.
func TestNoCloudIsPrivate(t *testing.T) {
	path := makeNoCloud(t, noCloudFiles)
	info, err := os.Stat(path)
	if err != nil || info.Mode() != fs.FileMode(0o600) || info.Size()%512 != 0 {
		t.Errorf("mode %v, size %d, %v; want 0600 and whole sectors", info.Mode(), info.Size(), err)
	}
	if err := writeNoCloud(path, t.TempDir()); err == nil {
		t.Error("a file that is there, with whatever mode, is written over")
	}
}
