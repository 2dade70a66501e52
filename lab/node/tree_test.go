package node

import (
	"archive/tar"
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

// tree makes a directory with what a copy must keep.
func tree(t *testing.T, dir string) {
	t.Helper()
	for path, mode := range map[string]fs.FileMode{"a file": 0o640, "sub dir/it's \"quoted\" $(x)": 0o755, "sub dir/-n": 0o600, "empty/none": 0} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if mode == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte("content of "+path), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, path), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("a file", filepath.Join(dir, "link")), os.Chmod(filepath.Join(dir, "sub dir"), 0o750)); err != nil {
		t.Fatal(err)
	}
}

// describe lists what is below a directory: paths, modes, contents and where links lead.
func describe(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		text := ""
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(data)
		} else if info.Mode()&fs.ModeSymlink != 0 {
			text, _ = os.Readlink(path)
		}
		b.WriteString(rel + " " + info.Mode().String() + " " + text + "\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSendAndReceive(t *testing.T) {
	_, n := setup(t, realShell)
	ctx := within(t, 60*time.Second)
	here, there := t.TempDir(), filepath.Join(t.TempDir(), "on the node's disk")
	src := filepath.Join(here, "a tree")
	if err := errors.Join(os.Mkdir(there, 0o755), os.Mkdir(src, 0o711)); err != nil {
		t.Fatal(err)
	}
	tree(t, src)
	want := describe(t, src)
	for name, test := range map[string]struct {
		dst, arrives string
		send         bool
	}{
		"to a name that is new":      {filepath.Join(there, "new"), filepath.Join(there, "new"), true},
		"into a directory":           {there, filepath.Join(there, "a tree"), true},
		"over what is there":         {there, filepath.Join(there, "a tree"), true},
		"from, to a name that's new": {filepath.Join(here, "back"), filepath.Join(here, "back"), false},
		"from, into a directory":     {t.TempDir() + "/", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			arrives := test.arrives
			var err error
			if test.send {
				err = n.Send(ctx, src, test.dst)
			} else {
				err = n.Receive(ctx, src, test.dst)
			}
			if arrives == "" {
				arrives = filepath.Join(test.dst, "a tree")
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := describe(t, arrives); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

func TestReceiveNew(t *testing.T) {
	_, n := setup(t, realShell)
	src, dst := filepath.Join(t.TempDir(), "a [tree]"), t.TempDir()
	tree(t, src)
	if err := os.MkdirAll(filepath.Join(dst, "a [tree]/sub dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dst, "a [tree]/sub dir/-n"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.ReceiveNew(within(t, 60*time.Second), src, dst, []string{"sub dir/-n", "sub"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"sub dir/-n": "kept", "a file": "content of a file", "sub dir/it's \"quoted\" $(x)": "content of sub dir/it's \"quoted\" $(x)"} {
		if got, err := os.ReadFile(filepath.Join(dst, "a [tree]", name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestSendAndReceiveFiles(t *testing.T) {
	_, n := setup(t, realShell)
	ctx := within(t, 60*time.Second)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(file("it's a \"file\""), []byte("x"), 0o640), os.Symlink("behind", file("link")), os.Mkdir(file("dir"), 0o755)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := errors.Join(
		n.Send(ctx, file("it's a \"file\""), file("dir")),
		n.Send(ctx, file("it's a \"file\""), file("link")), // as cp, through a link on the node
		n.SendFrom(ctx, strings.NewReader("streamed"), file("-n")),
		n.Receive(ctx, file("link"), file("dir/of a link")),
		n.ReceiveTo(ctx, file("-n"), &out),
	)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"dir/it's a \"file\"": "x", "behind": "x", "-n": "streamed", "dir/of a link": "x",
	} {
		if got, err := os.ReadFile(file(name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if info, err := os.Stat(file("dir/of a link")); err != nil || info.Mode() != 0o640 || out.String() != "streamed" {
		t.Errorf("%v, %v, streamed %q", info.Mode(), err, out.String())
	}
}

func TestCopyFailures(t *testing.T) {
	_, n := setup(t, realShell)
	ctx := within(t, 60*time.Second)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"there is no " + dir + "/none on this computer":            n.Send(ctx, dir+"/none", dir+"/x"),
		"cp1: there is no directory " + dir + "/none/":             n.Send(ctx, file, dir+"/none/"),
		"cp1: there is no directory " + dir + "/none":              n.Send(ctx, file, dir+"/none/x"),
		"cp1: " + dir + " is a directory: name a file in it":       n.SendFrom(ctx, strings.NewReader("x"), dir),
		"cp1: there is no " + dir + "/none":                        n.Receive(ctx, dir+"/none", dir+"/x"),
		"there is no directory " + dir + "/none":                   n.Receive(ctx, file, dir+"/none/x"),
		"there is no directory " + dir + "/x/":                     n.Receive(ctx, file, dir+"/x/"),
		"cp1: " + dir + " is not a file":                           n.ReceiveTo(ctx, dir, io.Discard),
		"cp1: /dev/null is neither a file nor a directory":         n.Receive(ctx, "/dev/null", dir+"/x"),
		`SRC "/" has no name of its own: name a DST that does not`: n.Receive(ctx, "/", dir),
		"/dev/null is neither a file nor a directory":              n.Send(ctx, "/dev/null", dir+"/x"),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// archive is what a node that was taken over might send.
func archive(t *testing.T, entries ...tar.Header) func(*call) end {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		content := ""
		if h.Typeflag == tar.TypeReg {
			content = "hostile"
			h.Size = int64(len(content))
		}
		h.Mode |= 0o6777
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return func(c *call) end {
		_, _ = c.stdout.Write(b.Bytes())
		return end{}
	}
}

func TestReceiveFromAStranger(t *testing.T) {
	dir := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeDir} }
	file := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg} }
	link := func(name, to string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}
	}
	for name, test := range map[string]struct {
		entries []tar.Header
		refused bool
	}{
		"upwards":                   {[]tar.Header{dir("./x/"), file("./x/../../outside/file")}, true},
		"absolute":                  {[]tar.Header{dir("./x/"), file("./x//outside/file")}, true},
		"through a link":            {[]tar.Header{dir("./x/"), link("./x/l", "../../outside"), file("./x/l/file")}, true},
		"through an absolute link":  {[]tar.Header{dir("./x/"), link("./x/l", "/tmp"), dir("./x/l/k8slab-hostile/")}, true},
		"a link in place of a file": {[]tar.Header{link("./x", "/etc/passwd")}, true},
		"two":                       {[]tar.Header{file("./x"), file("./y")}, true},
		"a device":                  {[]tar.Header{dir("./x/"), {Name: "./x/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, file("./x/y")}, true},
		"nothing":                   {nil, true},
		"setuid":                    {[]tar.Header{file("./x")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, n := setup(t, archive(t, test.entries...))
			top := t.TempDir()
			into, outside := filepath.Join(top, "into"), filepath.Join(top, "outside")
			if err := errors.Join(os.Mkdir(into, 0o755), os.Mkdir(outside, 0o755)); err != nil {
				t.Fatal(err)
			}
			err := n.Receive(within(t, 20*time.Second), "/x", into)
			if (err != nil) != test.refused {
				t.Errorf("got %v", err)
			}
			if got, _ := os.ReadDir(outside); len(got) > 0 {
				t.Errorf("outside of the destination there is %v", got)
			}
			if info, err := os.Lstat(filepath.Join(into, "x")); err == nil && (info.Mode()&(fs.ModeSetuid|fs.ModeSymlink) != 0) {
				t.Errorf("mode %v", info.Mode())
			}
		})
	}
	if _, err := os.Lstat("/tmp/k8slab-hostile"); err == nil {
		t.Error("/tmp/k8slab-hostile was made")
	}
}

// A copy that is cut off leaves the old file.
func TestReceiveCutOff(t *testing.T) {
	var s *server
	s, n := setup(t, func(c *call) end {
		w := tar.NewWriter(c.stdout)
		_ = w.WriteHeader(&tar.Header{Name: "./x", Typeflag: tar.TypeReg, Size: 1 << 20, Mode: 0o644})
		_, _ = w.Write(make([]byte, 1<<10))
		s.drop()
		return end{silence: true}
	})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.Receive(within(t, 20*time.Second), "/x", dir); !errors.Is(err, ErrLost) {
		t.Errorf("got %v", err)
	}
	noTemporaries(t, dir)
	if got, err := os.ReadFile(filepath.Join(dir, "x")); err != nil || string(got) != "old" {
		t.Errorf("%q, %v", got, err)
	}
}
