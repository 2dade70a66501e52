package node

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCopy(t *testing.T) {
	_, n := setup(t, realShell)
	dir := t.TempDir()
	if err := os.Symlink("elsewhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path    string
		mode    fs.FileMode
		content string
	}{
		{"secret", 0o600, "s3cret"},
		{"secret", 0o400, "another\n"},
		{"program", 0o755, "\x00\x01binary\x00\n\n"},
		{"empty", 0o644, ""},
		{"link", 0o644, "not through the link"},
		{"deep/er/it's a \"file\" $(x)", 0o644, "x"},
		{"-n", 0o644, "x"},
		{"big", 0o640, strings.Repeat("0123456789", 500_000)},
	} {
		path := filepath.Join(dir, test.path)
		if err := n.Copy(within(t, 60*time.Second), path, test.mode, strings.NewReader(test.content)); err != nil {
			t.Errorf("%s: %v", test.path, err)
			continue
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != test.content {
			t.Errorf("%s: %d bytes, %v", test.path, len(got), err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode() != test.mode {
			t.Errorf("%s: mode %v, %v", test.path, info.Mode(), err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "deep")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("parent: %v, %v", info.Mode(), err)
	}
	noTemporaries(t, dir)
}

func noTemporaries(t *testing.T, dir string) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		left, _ := filepath.Glob(filepath.Join(dir, ".copy.*"))
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left behind: %v", left)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestCopyErrors(t *testing.T) {
	_, n := setup(t, realShell)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]fs.FileMode{
		"relative": 0o644, "/": 0o644, dir + "/x/": 0o644, dir + "/../x": 0o644, dir + "/nul\x00": 0o644,
		dir: 0o644, file + "/below": 0o644, dir + "/setuid": 0o755 | fs.ModeSetuid,
	} {
		err := n.Copy(within(t, 20*time.Second), path, mode, strings.NewReader("x"))
		if err == nil || !strings.HasPrefix(err.Error(), "cp1: copy "+printable(path)[:1]) {
			t.Errorf("%q: %v", path, err)
		}
	}
	noTemporaries(t, filepath.Dir(dir))
	noTemporaries(t, dir)
}

// interrupted gives some content and then calls back in the middle of the copy.
type interrupted struct {
	content io.Reader
	then    func() error
}

func (i interrupted) Read(p []byte) (int, error) {
	if n, err := i.content.Read(p); err == nil {
		return n, nil
	}
	return 0, i.then()
}

// However a copy is cut short, the old file stays, and nobody else can read the temporary.
func TestCopyIsAtomic(t *testing.T) {
	broken := errors.New("broken source")
	for name, cut := range map[string]func(*server){
		"source fails":     func(*server) {},
		"connection drops": func(s *server) { s.drop() },
	} {
		t.Run(name, func(t *testing.T) {
			s, n := setup(t, realShell)
			dir := t.TempDir()
			path := filepath.Join(dir, "file")
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			content := interrupted{bytes.NewReader(make([]byte, 100_000)), func() error {
				checkTemporary(t, dir)
				cut(s)
				return broken
			}}
			if err := n.Copy(within(t, 20*time.Second), path, 0o644, content); err == nil {
				t.Error("no error")
			} else if !errors.Is(err, broken) && !errors.Is(err, ErrLost) {
				t.Error(err)
			}
			noTemporaries(t, dir)
			if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func checkTemporary(t *testing.T, dir string) {
	deadline := time.Now().Add(5 * time.Second)
	for time.Now().Before(deadline) {
		found, _ := filepath.Glob(filepath.Join(dir, ".copy.*"))
		if len(found) == 1 {
			if info, err := os.Stat(found[0]); err == nil && info.Mode().Perm() != 0o600 {
				t.Errorf("temporary has mode %v", info.Mode())
			}
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error("no temporary file seen")
}

// Content and marks must not show up in the process list.
func TestCopyKeepsContentOffTheCommandLine(t *testing.T) {
	line := make(chan string, 1)
	_, n := setup(t, func(c *call) end {
		line <- c.line
		_, _ = io.Copy(io.Discard, c.stdin)
		return end{}
	})
	if err := n.Copy(within(t, 20*time.Second), "/etc/secret", 0o600, strings.NewReader("t0ps3cret")); err != nil {
		t.Fatal(err)
	}
	if got := <-line; strings.Contains(got, "t0ps3cret") {
		t.Error(got)
	}
}
