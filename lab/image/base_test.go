package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// qemuImg runs qemu-img in the directory of the test's images.
func qemuImg(t *testing.T, dir string, args ...string) {
	t.Helper()
	program, err := exec.LookPath("qemu-img")
	if err != nil {
		t.Skip("qemu-img is not installed")
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestBaseSize(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{"good", "2G"},
		{"-o", "compat=0.10", "old", "3G"},
		{"-b", "good", "-F", "qcow2", "overlay"},
		{"-o", "data_file=data", "split", "1M"},
	} {
		qemuImg(t, dir, append([]string{"create", "-q", "-f", "qcow2"}, args...)...)
	}
	good := read(t, filepath.Join(dir, "good"))
	for name, data := range map[string]string{
		"raw": strings.Repeat("\x00", 1<<20), "empty": "", "short": good[:40], "corrupt": good[:79] + "\x02" + good[80:],
		"locked": good[:35] + "\x02" + good[36:], // LUKS; qemu-img makes none where it cannot measure how fast the processor is
	} {
		write(t, filepath.Join(dir, name), []byte(data), 0o644)
	}
	if err := os.Mkdir(filepath.Join(dir, "directory"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		file string
		size uint64
		want string // in the error, "" for none
	}{
		{"good", 2 << 30, ""},
		{"old", 3 << 30, ""},
		{"overlay", 0, "has a backing file"},
		{"split", 0, "in another file"},
		{"locked", 0, "is encrypted"},
		{"raw", 0, "is not a qcow2 image; an image that can be used is made by: qemu-img convert -O qcow2 " + dir + "/raw NEW"},
		{"empty", 0, "is not a qcow2 image"},
		{"short", 0, "is not a qcow2 image"},
		{"corrupt", 0, "is marked as corrupt"},
		{"directory", 0, "directory is not a file"},
		{"missing", 0, "no such file"},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			size, err := BaseSize(filepath.Join(dir, tt.file))
			if got := err != nil; size != tt.size || got != (tt.want != "") || got && (!strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "image.base: ")) {
				t.Errorf("got %d, %v, want %d, %q", size, err, tt.size, tt.want)
			}
		})
	}
}
