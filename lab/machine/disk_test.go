package machine

import (
	"os"
	"path/filepath"
	"testing"
)

// A machine can look absent while its disk is there: its domain was undefined, or another daemon was asked.
func TestDiskThatIsThereStays(t *testing.T) {
	l := &Lab{cfg: Config{URI: "lxc:///system", Dir: t.TempDir(), ID: "0a1b2c3d-0a1b-4c2d-8e3f-0a1b2c3d4e5f"}}
	path := l.diskPath("cp1")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("a cluster"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.makeDisk(t.Context(), Spec{Node: "cp1", Disk: 1}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "a cluster" {
		t.Errorf("got %q, %v", got, err)
	}
}
