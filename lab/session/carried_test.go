package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8slab/lab/node"
	"k8slab/lab/wait"
)

// homeNode runs commands in a shell of this computer, with a home of the test's own. Only that home has room for labnode.
type homeNode struct {
	Node
	home, bin string

	mu     sync.Mutex
	inputs []io.Closer // of what runs
	runs   []string
}

func newHomeNode(t *testing.T) *homeNode {
	n := &homeNode{home: t.TempDir(), bin: t.TempDir()}
	n.tool(t, "df", `echo "Filesystem 1024-blocks Used Available"; [ "$3" = "$HOME" ] && echo "fs 1 1 999999" || echo "fs 1 1 1"`)
	return n
}

// tool puts a program before the machine's own of that name.
func (n *homeNode) tool(t *testing.T, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(n.bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (n *homeNode) Name() string { return "w1" }
func (n *homeNode) Close() error { return nil }

func (n *homeNode) Run(ctx context.Context, cmd node.Command) error {
	c := exec.CommandContext(ctx, cmd.Argv[0], cmd.Argv[1:]...)
	c.Env = []string{"HOME=" + n.home, "PATH=" + n.bin + ":" + os.Getenv("PATH")}
	var stderr bytes.Buffer
	c.Stdout, c.Stderr = cmd.Stdout, &stderr
	input, err := c.StdinPipe() // whose sender is not waited for
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.inputs = append(n.inputs, input)
	n.runs = append(n.runs, strings.Join(cmd.Argv, " "))
	n.mu.Unlock()
	if err := c.Start(); err != nil {
		return err
	}
	go func() {
		if cmd.Stdin != nil {
			_, _ = io.Copy(input, cmd.Stdin)
		}
		_ = input.Close()
	}()
	err = c.Wait()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		return &node.ExitError{Node: "w1", Argv: cmd.Argv, Status: exit.ExitCode(), Stderr: stderr.String()}
	}
	return err
}

func (n *homeNode) Read(ctx context.Context, argv ...string) (string, error) {
	var out strings.Builder
	err := n.Run(ctx, node.Command{Argv: argv, Stdout: &out, ReadOnly: true})
	return out.String(), err
}

// cut breaks every connection: the machine notices the end of the input.
func (n *homeNode) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, input := range n.inputs {
		_ = input.Close()
	}
}

// brought counts how often the script ran that brings labnode.
func (n *homeNode) brought() (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, run := range n.runs {
		if strings.Contains(run, "mktemp") {
			count++
		}
	}
	return count
}

// left is what is in the home.
func (n *homeNode) left(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(n.home, func(path string, d os.DirEntry, err error) error {
		if err == nil && path != n.home && !d.IsDir() {
			files = append(files, strings.TrimPrefix(path, n.home+"/"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

const labnodeScript = "#!/bin/sh\necho \"labnode $*\"\n"

// carriedOn is a node to which this labnode is brought.
func carriedOn(t *testing.T, n *homeNode, keep bool) *carried {
	file := filepath.Join(t.TempDir(), "labnode")
	if err := os.WriteFile(file, []byte(labnodeScript), 0o755); err != nil {
		t.Fatal(err)
	}
	return &carried{Node: n, keep: keep, programs: &programs{of: func(string) (string, error) { return file, nil }}}
}

func wantAnswer(t *testing.T, c *carried) {
	t.Helper()
	out, err := c.Read(t.Context(), "env", "A=b", LabnodePath, "facts")
	if err != nil || out != "labnode facts\n" {
		t.Fatalf("%q, %v", out, err)
	}
}

// labnode is brought once, when it is first named, into a directory that only the login can read, and is gone after Close.
func TestLabnodeIsCarried(t *testing.T) {
	n := newHomeNode(t)
	c := carriedOn(t, n, false)
	if out, err := c.Read(t.Context(), "echo", "hello"); err != nil || out != "hello\n" || n.brought() != 0 {
		t.Errorf("without labnode: %q, %v, brought %d times", out, err, n.brought())
	}
	wantAnswer(t, c)
	var out strings.Builder
	if err := c.Run(t.Context(), node.Command{Argv: []string{LabnodePath, "validate"}, Stdout: &out}); err != nil || out.String() != "labnode validate\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	if n.brought() != 1 {
		t.Errorf("brought %d times", n.brought())
	}
	dirs, _ := filepath.Glob(filepath.Join(n.home, ".k8slab-*"))
	if len(dirs) != 1 {
		t.Fatalf("directories %q", dirs)
	}
	if info, err := os.Stat(dirs[0]); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(n.home); len(entries) > 0 {
		t.Errorf("Close leaves %v", entries)
	}
}

// When the connection breaks, as when labctl is killed, the machine removes labnode by itself. The next command brings it again.
func TestLabnodeGoesWithTheConnection(t *testing.T) {
	n := newHomeNode(t)
	c := carriedOn(t, n, false)
	wantAnswer(t, c)
	n.cut()
	err := wait.For(t.Context(), "labnode to be gone", 10*time.Second, 10*time.Millisecond, func(context.Context) error {
		if entries, _ := os.ReadDir(n.home); len(entries) > 0 {
			return errors.New("it is there")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	<-c.hold.ended
	wantAnswer(t, c)
	if n.brought() != 2 {
		t.Errorf("brought %d times", n.brought())
	}
	_ = c.Close()
}

// With keep_labnode it stays, and is sent only if the machine has another one or a damaged one.
func TestLabnodeIsKept(t *testing.T) {
	sum := sha256.Sum256([]byte(labnodeScript))
	kept := ".cache/k8slab/labnode-" + hex.EncodeToString(sum[:])
	n := newHomeNode(t)
	wantKept := func(why string) {
		t.Helper()
		c := carriedOn(t, n, true)
		wantAnswer(t, c)
		_ = c.Close()
		if left := n.left(t); len(left) != 1 || left[0] != kept {
			t.Errorf("%s: %q is left", why, left)
		}
	}
	old := filepath.Join(n.home, ".cache/k8slab/labnode-0123")
	if err := os.MkdirAll(filepath.Dir(old), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, []byte("of another version"), 0o700); err != nil {
		t.Fatal(err)
	}
	wantKept("the first time")
	before, err := os.Stat(filepath.Join(n.home, kept))
	if err != nil {
		t.Fatal(err)
	}
	wantKept("the second time")
	if again, err := os.Stat(filepath.Join(n.home, kept)); err != nil || !os.SameFile(before, again) {
		t.Errorf("it was sent again: %v", err)
	}
	if err := os.WriteFile(filepath.Join(n.home, kept), []byte("#!/bin/sh\necho evil\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	wantKept("a damaged one")
}

// What keeps labnode from the machine is said in the machine's words, and leaves nothing there.
func TestLabnodeCannotBeCarried(t *testing.T) {
	other := func(string) (string, error) { return "", errors.New("no labnode was built") }
	tests := []struct {
		name  string
		spoil func(*testing.T, *homeNode, *carried)
		want  string
	}{
		{"no room", func(t *testing.T, n *homeNode, _ *carried) {
			n.tool(t, "df", `echo head; echo "fs 1 1 1"`)
		}, "has no room for"},
		{"nothing may run", func(t *testing.T, n *homeNode, _ *carried) {
			n.tool(t, "chmod", "exit 0")
		}, "lets no program run"},
		{"no directory can be written", func(t *testing.T, n *homeNode, _ *carried) {
			n.tool(t, "mktemp", "exit 1")
		}, "cannot be written"},
		{"it arrives changed", func(_ *testing.T, _ *homeNode, c *carried) {
			p, err := pack(c.programs.of, "amd64")
			p.sum = strings.Repeat("0", 64)
			same := func() (program, error) { return p, err }
			c.programs.ready = map[string]func() (program, error){"amd64": same, "arm64": same}
		}, "did not arrive as it was sent"},
		{"a processor that it does not run on", func(t *testing.T, n *homeNode, _ *carried) {
			n.tool(t, "uname", "echo riscv64")
		}, `its processor is "riscv64"`},
		{"there is none to send", func(_ *testing.T, _ *homeNode, c *carried) { c.programs.of = other }, "no labnode was built"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newHomeNode(t)
			c := carriedOn(t, n, false)
			tt.spoil(t, n, c)
			_, err := c.Read(t.Context(), LabnodePath, "facts")
			if err == nil || !strings.HasPrefix(err.Error(), "w1: bring labnode: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if entries, _ := os.ReadDir(n.home); len(entries) > 0 {
				t.Errorf("it leaves %v", entries)
			}
			_ = c.Close()
		})
	}
}

// A machine that does not answer is told as that, and not as a labnode that cannot be brought.
func TestLabnodeForADeadMachine(t *testing.T) {
	c := carriedOn(t, newHomeNode(t), false)
	c.Node = deadNode{}
	_, err := c.Read(t.Context(), LabnodePath, "facts")
	if _, is := errors.AsType[*node.ConnectError](err); !is {
		t.Errorf("%v", err)
	}
}

type deadNode struct{ Node }

func (deadNode) Name() string { return "w1" }
func (deadNode) Run(context.Context, node.Command) error {
	return &node.ConnectError{Node: "w1", Address: "192.0.2.1:22", Cause: errors.New("no route to host")}
}
