package lab

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

func TestStateDir(t *testing.T) {
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
			got, err := StateDir()
			if got != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestID(t *testing.T) {
	s := newLab(t, small).state
	if s.exists() {
		t.Error("a lab without an id exists")
	}
	id, err := s.id()
	if err != nil || !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(id) {
		t.Fatalf("got %q, %v, want a version 4 UUID", id, err)
	}
	if again, err := s.id(); err != nil || again != id {
		t.Errorf("then %q, %v", again, err)
	}
	if !s.exists() {
		t.Error("it does not exist")
	}
	if other, err := (state{dir: t.TempDir()}).id(); err != nil || other == id {
		t.Errorf("another lab has %q, %v", other, err)
	}
}

func TestMachineID(t *testing.T) {
	seen := map[string]bool{}
	for _, lab := range []string{"a", "b"} {
		for _, node := range []string{"cp1", "cp2", "w1"} {
			id := machineID(lab, node)
			if id != machineID(lab, node) || !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(id) || seen[id] {
				t.Errorf("%s/%s: %s", lab, node, id)
			}
			seen[id] = true
		}
	}
}

func TestOnce(t *testing.T) {
	s := state{dir: filepath.Join(t.TempDir(), "lab")}
	why := errors.New("no randomness")
	if _, err := s.once("x", func() ([]byte, error) { return nil, why }); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	made := 0
	for range 3 {
		got, err := s.once("x", func() ([]byte, error) { made++; return []byte("text"), nil })
		if err != nil || string(got) != "text" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if made != 1 {
		t.Errorf("made %d times", made)
	}
}

func TestWrite(t *testing.T) {
	s := state{dir: filepath.Join(t.TempDir(), "lab")}
	for _, text := range []string{"first", "second, and longer"} {
		if err := s.write("ssh/key", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(s.path("ssh", "key")); err != nil || string(got) != text {
			t.Errorf("got %q, %v", got, err)
		}
	}
	modes := map[string]fs.FileMode{".": 0o700, "ssh": 0o700, "ssh/key": 0o600}
	for name, want := range modes {
		if info, err := os.Stat(s.path(name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", name, info, err, want)
		}
	}
	// Replaced as a whole: whoever has the old one open keeps the old one, and a write that fails leaves it.
	old, err := os.Open(s.path("ssh", "key"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Close() }()
	if err := s.write("ssh/key", []byte("third")); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(old); err != nil || string(text) != "second, and longer" {
		t.Errorf("the open file has %q, %v", text, err)
	}
	if err := s.write("ssh", []byte("over a directory")); err == nil {
		t.Error("a directory was replaced")
	}
	left, _ := filepath.Glob(s.path("*", ".new-*"))
	more, _ := filepath.Glob(s.path(".new-*"))
	if left = append(left, more...); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

func TestKeyPair(t *testing.T) {
	s := newLab(t, small).state
	private, public, err := s.keyPair(hostKeyName("cp1"))
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
	again, _, err := s.keyPair(hostKeyName("cp1"))
	if err != nil || string(again) != string(private) {
		t.Errorf("another key the second time: %v", err)
	}
	if other, _, err := s.keyPair(hostKeyName("cp2")); err != nil || string(other) == string(private) {
		t.Errorf("two nodes have one key: %v", err)
	}
}

func TestLock(t *testing.T) {
	newLab(t, small)
	release, err := lock("small", "labctl up")
	if err != nil {
		t.Fatal(err)
	}
	var refused *LockedError
	if _, err := lock("small", "labctl down"); !errors.As(err, &refused) {
		t.Fatalf("got %v, want a LockedError", err)
	}
	if refused.Lab != "small" || !strings.HasPrefix(refused.Holder, "labctl up (process ") {
		t.Errorf("got %+v, want the holder", *refused)
	}
	for name, want := range map[string]bool{"small": true, "other": false} {
		if got, err := locked(name); err != nil || got != want {
			t.Errorf("%s is locked: %v, %v", name, got, err)
		}
	}
	other, err := lock("other", "labctl up")
	if err != nil {
		t.Fatalf("another lab: %v", err)
	}
	other()
	release()
	release, err = lock("small", "labctl down")
	if err != nil {
		t.Fatalf("after its release: %v", err)
	}
	release()
	// A look must not keep the lab from anybody.
	if got, err := locked("small"); err != nil || got {
		t.Errorf("free, and locked: %v, %v", got, err)
	}
	if release, err = lock("small", "labctl up"); err != nil {
		t.Fatalf("after a look: %v", err)
	}
	release()
}

// The faults of a lab have a lock of their own: what makes them calls other labctls, which take the lab.
func TestLockFaults(t *testing.T) {
	l := newLab(t, small)
	release, err := l.LockFaults("labctl soak")
	if err != nil {
		t.Fatal(err)
	}
	var held *LockedError
	if _, err := l.LockFaults("labctl fault run"); !errors.As(err, &held) || !strings.Contains(err.Error(), "lab small is in use by labctl soak (process ") {
		t.Errorf("got %v, want a LockedError", err)
	}
	whole, err := lock("small", "labctl repair")
	if err != nil {
		t.Fatal(err)
	}
	whole()
	release()
}

// The lock of a process that is killed is free at once.
func TestLockOfAnotherProcess(t *testing.T) {
	newLab(t, small)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "K8SLAB_TEST_LOCK=small")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "locked\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	var locked *LockedError
	if _, err := lock("small", "labctl up"); !errors.As(err, &locked) || !strings.Contains(locked.Error(), "lab small is in use by labctl up (process ") {
		t.Fatalf("got %v, want a LockedError", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	release, err := lock("small", "labctl up")
	if err != nil {
		t.Fatalf("after its end: %v", err)
	}
	release()
}

func TestImagesInUse(t *testing.T) {
	l := newLab(t, small)
	if got, err := ImagesInUse(); err != nil || len(got) != 0 {
		t.Errorf("no lab: %q, %v", got, err)
	}
	for _, dir := range []string{"/cache/node-1", "/cache/node-2", "/cache/node-2"} { // machines of the first go on
		if err := l.state.usesImage("image", dir); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := ImagesInUse(); err != nil || !slices.Equal(got, []string{"/cache/node-1", "/cache/node-2"}) {
		t.Errorf("got %q, %v", got, err)
	}
}

// "image" and "logs" are names that a lab may have.
func TestLabsWithUnluckyNames(t *testing.T) {
	l := newLab(t, small)
	path, err := RunLog("image", "up")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := ImagesInUse(); err != nil {
		t.Errorf("the logs of a lab called image: %q, %v", got, err)
	}
	logs, err := openState("logs")
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(path, logs.dir+"/") {
		t.Errorf("removing a lab called logs, %s, removes every lab's logs, such as %s", logs.dir, path)
	}
	_ = l
}

func TestRunLog(t *testing.T) {
	newLab(t, small)
	first, err := RunLog("small", "up")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(first)
	if !regexp.MustCompile(`/\.logs/small/\d{8}T\d{6}-up-\d+\.jsonl$`).MatchString(first) {
		t.Errorf("got %s", first)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 60 {
		name := begin.Add(time.Duration(i)*time.Hour).Format("20060102T150405") + "-up-1.jsonl"
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := RunLog("small", "up"); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 49 || filepath.Base(left[0]) != "20010101T110000-up-1.jsonl" {
		t.Errorf("%d logs are left, the oldest %s, %v; want 49 and the new one", len(left), left[0], err)
	}
}

// Two labs of one name in two state directories must not end each other's machines.
func TestPartitionOfLabsOfOneName(t *testing.T) {
	first, second := newLab(t, small), newLab(t, small)
	a, err := first.state.id()
	if err != nil {
		t.Fatal(err)
	}
	b, err := second.state.id()
	if err != nil {
		t.Fatal(err)
	}
	if cgroupName("small", a) == cgroupName("small", b) {
		t.Errorf("both are %s", cgroupName("small", a))
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
	if _, err := openState("small"); err != nil {
		t.Error(err)
	}
	for _, open := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(open, 0o777); err != nil {
			t.Fatal(err)
		}
		if _, err := openState("small"); err == nil || !strings.Contains(err.Error(), "other users can change what is in it") {
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
		s := state{dir: t.TempDir()}
		if err := os.WriteFile(s.path("id"), []byte(id), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := s.id(); err == nil || got != "" || !strings.Contains(err.Error(), "no UUID") {
			t.Errorf("%q: %q, %v", id, got, err)
		}
	}
}

func TestKeyPairOfSeveralAtOnce(t *testing.T) {
	s := state{dir: t.TempDir()}
	var wg sync.WaitGroup
	got := make([]string, 10)
	for i := range got {
		wg.Go(func() {
			private, public, err := s.keyPair("ssh/key")
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

// What frees a full disk takes the lock first.
func TestLockOnAFullDisk(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	path, err := lockPath("small")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink("/dev/full", path)); err != nil {
		t.Fatal(err)
	}
	release, err := lock("small", "labctl down")
	if err != nil {
		t.Fatal(err)
	}
	release()
}
