package state

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

func TestRoot(t *testing.T) {
	tests := []struct{ name, xdg, home, want string }{
		{"default", "", "/home/u", "/home/u/.local/state/k8slab"},
		{"xdg", "/x", "/home/u", "/x/k8slab"},
		{"a relative one is to be ignored", "x", "/home/u", "/home/u/.local/state/k8slab"},
		{"nowhere", "", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("XDG_STATE_HOME", tt.xdg)
			t.Setenv("HOME", tt.home)
			got, err := Root()
			if got != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestID(t *testing.T) {
	d := newLab(t, small).Dir
	if d.Exists() {
		t.Error("a lab without an id exists")
	}
	id, err := d.ID()
	if err != nil || !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(id) {
		t.Fatalf("got %q, %v, want a version 4 UUID", id, err)
	}
	if again, err := d.ID(); err != nil || again != id {
		t.Errorf("then %q, %v", again, err)
	}
	if !d.Exists() {
		t.Error("it does not exist")
	}
	if other, err := (Dir{dir: t.TempDir()}).ID(); err != nil || other == id {
		t.Errorf("another lab has %q, %v", other, err)
	}
}

func TestMachineID(t *testing.T) {
	seen := map[string]bool{}
	for _, lab := range []string{"a", "b"} {
		for _, node := range []string{"cp1", "cp2", "w1"} {
			id := MachineID(lab, node)
			if id != MachineID(lab, node) || !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(id) || seen[id] {
				t.Errorf("%s/%s: %s", lab, node, id)
			}
			seen[id] = true
		}
	}
}

func TestOnce(t *testing.T) {
	d := Dir{dir: filepath.Join(t.TempDir(), "lab")}
	why := errors.New("no randomness")
	if _, err := d.Once("x", func() ([]byte, error) { return nil, why }); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	made := 0
	for range 3 {
		got, err := d.Once("x", func() ([]byte, error) { made++; return []byte("text"), nil })
		if err != nil || string(got) != "text" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if made != 1 {
		t.Errorf("made %d times", made)
	}
}

func TestWrite(t *testing.T) {
	d := Dir{dir: filepath.Join(t.TempDir(), "lab")}
	for _, text := range []string{"first", "second, and longer"} {
		if err := d.Write("ssh/key", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(d.Path("ssh", "key")); err != nil || string(got) != text {
			t.Errorf("got %q, %v", got, err)
		}
	}
	modes := map[string]fs.FileMode{".": 0o700, "ssh": 0o700, "ssh/key": 0o600}
	for name, want := range modes {
		if info, err := os.Stat(d.Path(name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", name, info, err, want)
		}
	}
	// Replaced as a whole: whoever has the old one open keeps the old one, and a write that fails leaves it.
	old, err := os.Open(d.Path("ssh", "key"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Close() }()
	if err := d.Write("ssh/key", []byte("third")); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(old); err != nil || string(text) != "second, and longer" {
		t.Errorf("the open file has %q, %v", text, err)
	}
	if err := d.Write("ssh", []byte("over a directory")); err == nil {
		t.Error("a directory was replaced")
	}
	left, _ := filepath.Glob(d.Path("*", ".new-*"))
	more, _ := filepath.Glob(d.Path(".new-*"))
	if left = append(left, more...); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

func TestKeyPair(t *testing.T) {
	d := newLab(t, small).Dir
	private, public, err := d.KeyPair("ssh/host_cp1")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))); got != string(public) {
		t.Errorf("the public part is %q, want %q", public, got)
	}
	again, _, err := d.KeyPair("ssh/host_cp1")
	if err != nil || string(again) != string(private) {
		t.Errorf("another key the second time: %v", err)
	}
	if other, _, err := d.KeyPair("ssh/host_cp2"); err != nil || string(other) == string(private) {
		t.Errorf("two nodes have one key: %v", err)
	}
}

func TestKeyPairOfSeveralAtOnce(t *testing.T) {
	d := Dir{dir: t.TempDir()}
	var wg sync.WaitGroup
	got := make([]string, 10)
	for i := range got {
		wg.Go(func() {
			private, public, err := d.KeyPair("ssh/key")
			if err != nil {
				t.Error(err)
			}
			got[i] = string(private) + string(public)
		})
	}
	wg.Wait()
	for _, pair := range got {
		if pair != got[0] {
			t.Error("two have different keys")
		}
	}
}

// What is in a state directory names processes that are ended and files that are removed.
func TestStateOfAnother(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", home)
	dir := filepath.Join(home, "k8slab", "small")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Open("small"); err != nil {
		t.Error(err)
	}
	for _, open := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(open, 0o777); err != nil {
			t.Fatal(err)
		}
		if _, err := Open("small"); err == nil || !strings.Contains(err.Error(), "other users can change what is in it") {
			t.Errorf("%s: %v", open, err)
		}
		if err := os.Chmod(open, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// The identity is a part of the names of cgroups, units and files.
func TestDamagedID(t *testing.T) {
	for _, id := range []string{"", "x", "x/../../", "../../../../etc/0123", "{4f0c6f0e-7a53-4c5e-9a40-0d1e5b1a2c3d}", "4F0C6F0E-7A53-4C5E-9A40-0D1E5B1A2C3D"} {
		d := Dir{dir: t.TempDir()}
		if err := os.WriteFile(d.Path("id"), []byte(id), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := d.ID(); err == nil || got != "" || !strings.Contains(err.Error(), "no UUID") {
			t.Errorf("%q: %q, %v", id, got, err)
		}
	}
}
