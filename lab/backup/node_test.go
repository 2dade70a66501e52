package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/labtest"
	"k8slab/lab/node"
	"k8slab/lab/session"
)

// shellNode runs the scripts on a directory instead of a machine's root. It fails the test at a command that it does not know.
type shellNode struct {
	t         *testing.T
	name      string
	root      string
	systemctl []string
	fail      error
	filter    func(io.Writer) io.Writer // what happens to the output on its way; may be nil
	stdin     func(io.Reader) io.Reader
	changes   int
}

func (n *shellNode) Name() string { return n.name }
func (n *shellNode) Close() error { return nil }
func (n *shellNode) Dial(context.Context, string, string) (net.Conn, error) {
	panic("nobody dials")
}
func (n *shellNode) Copy(context.Context, string, fs.FileMode, io.Reader) error {
	panic("nobody copies")
}

// Read is for the administrator's credentials: the cluster does not answer.
func (n *shellNode) Read(context.Context, ...string) (string, error) {
	return "", errors.New("no admin.conf")
}

func (n *shellNode) Run(ctx context.Context, cmd node.Command) error {
	if n.fail != nil {
		return n.fail
	}
	if !cmd.ReadOnly {
		n.changes++
	}
	if cmd.Argv[0] == "systemctl" {
		n.systemctl = append(n.systemctl, strings.Join(cmd.Argv[1:], " "))
		return nil
	}
	if !slices.Equal(cmd.Argv[:2], []string{"sh", "-c"}) || cmd.Argv[4] != "/" {
		n.t.Errorf("unexpected command %q", cmd.Argv)
	}
	if pack := cmd.Argv[2] == packScript; pack != cmd.ReadOnly {
		n.t.Errorf("read-only is %v", cmd.ReadOnly)
	}
	argv := slices.Clone(cmd.Argv)
	argv[4] = n.root
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stderr bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = cmd.Stdin, cmd.Stdout, &stderr
	if n.filter != nil {
		c.Stdout = n.filter(cmd.Stdout)
	}
	if n.stdin != nil && cmd.Stdin != nil {
		c.Stdin = n.stdin(cmd.Stdin)
	}
	err := c.Run()
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%s: %w", n.name, context.Cause(ctx))
	}
	if err != nil {
		return &node.ExitError{Node: n.name, Argv: cmd.Argv, Status: max(c.ProcessState.ExitCode(), 1), Stderr: stderr.String()}
	}
	return nil
}

// write makes a file of the node, and the directories above it.
func (n *shellNode) write(name, content string, mode fs.FileMode) {
	n.t.Helper()
	path := filepath.Join(n.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		n.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		n.t.Fatal(err)
	}
}

func (n *shellNode) link(to, name string) {
	n.t.Helper()
	path := filepath.Join(n.root, name)
	_ = os.Remove(path)
	if err := os.Symlink(to, path); err != nil {
		n.t.Fatal(err)
	}
}

func (n *shellNode) remove(name string) {
	n.t.Helper()
	if err := os.RemoveAll(filepath.Join(n.root, name)); err != nil {
		n.t.Fatal(err)
	}
}

// tree is what is below the root: types, modes, links and contents.
func (n *shellNode) tree() string {
	n.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(n.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(n.root, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		b.WriteString(rel + " " + info.Mode().String())
		switch {
		case info.Mode().IsRegular():
			text, _ := os.ReadFile(path)
			b.WriteString(" " + string(text))
		case info.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			b.WriteString(" -> " + to)
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return b.String()
}

// newLab is a session of two nodes, cp1 and w1, each with some files.
func newLab(t *testing.T) (s *session.Session, cp1, w1 *shellNode) {
	t.Helper()
	s = labtest.Session(t, labtest.Small)
	make := func(name string) *shellNode {
		n := &shellNode{t: t, name: name, root: t.TempDir()}
		n.write("etc/kubernetes/kubelet.conf", "kubelet of "+name, 0o600)
		n.write("etc/kubernetes/pki/ca.crt", "ca", 0o644)
		n.write("etc/kubernetes/manifests/etcd.yaml", "etcd", 0o640)
		n.write("etc/kubernetes/tmp/old/member.db", "large", 0o600)
		n.write("var/lib/kubelet/config.yaml", "kind: KubeletConfiguration", 0o644)
		n.write("var/lib/kubelet/pki/kubelet-client-2026.pem", "key", 0o600)
		n.write("var/lib/kubelet/pods/p/volume", "data", 0o644)
		n.link("/var/lib/kubelet/pki/kubelet-client-2026.pem", "var/lib/kubelet/pki/kubelet-client-current.pem")
		n.write("etc/cni/net.d/10-flannel.conflist", "{}", 0o600)
		s.Nodes[name] = n
		return n
	}
	return s, make("cp1"), make("w1")
}

func nodesOf(t *testing.T, s *session.Session, names ...string) (nodes []config.Node) {
	t.Helper()
	for _, name := range names {
		nodes = append(nodes, labtest.Node(t, s.Lab, name))
	}
	return nodes
}

func saved(t *testing.T, s *session.Session) Backup {
	t.Helper()
	b, err := Take(t.Context(), s, nil, "labctl repair", nodesOf(t, s, "w1"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
