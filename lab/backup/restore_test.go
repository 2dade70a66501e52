package backup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/session"
)

func differ(t *testing.T, s *session.Session, b Backup) string {
	t.Helper()
	changes, err := Diff(t.Context(), s, b, "w1")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range changes {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Kind, c.Path, c.Detail)))
	}
	return strings.Join(lines, "\n")
}

// damage changes the node's files in every way.
func damage(n *shellNode) {
	n.write("etc/kubernetes/kubelet.conf", "other", 0o600)
	n.write("etc/kubernetes/pki/ca.crt", "ca", 0o666)
	n.remove("etc/kubernetes/manifests")
	n.link("/tmp/x", "var/lib/kubelet/pki/kubelet-client-current.pem")
	n.remove("var/lib/kubelet/pki/kubelet-client-2026.pem")
	n.link("config.old", "var/lib/kubelet/config.yaml")
	n.write("etc/cni/net.d/05-cilium.conf", "{}", 0o600)
	n.write("etc/cni/net.d/sub/x", "x", 0o600)
	n.write("etc/kubernetes/tmp/old/member.db", "other", 0o600) // not saved
}

const damaged = `new /etc/cni/net.d/05-cilium.conf
new /etc/cni/net.d/sub
new /etc/cni/net.d/sub/x
changed /etc/kubernetes/kubelet.conf content
missing /etc/kubernetes/manifests
missing /etc/kubernetes/manifests/etcd.yaml
changed /etc/kubernetes/pki/ca.crt mode 0666, was 0644
changed /var/lib/kubelet/config.yaml it is a link, was a file
missing /var/lib/kubelet/pki/kubelet-client-2026.pem
changed /var/lib/kubelet/pki/kubelet-client-current.pem leads to /tmp/x, led to /var/lib/kubelet/pki/kubelet-client-2026.pem`

func paths(text string) (all []string) {
	for line := range strings.Lines(text) {
		all = append(all, strings.Fields(line)[1])
	}
	return all
}

// What was saved and put back is as it was, with modes, directories and links.
func TestRoundTrip(t *testing.T) {
	s, _, w1 := newLab(t)
	before := w1.tree()
	b := saved(t, s)
	if got := differ(t, s, b); got != "" {
		t.Errorf("at once it differs: %s", got)
	}
	damage(w1)
	if got := differ(t, s, b); got != damaged {
		t.Errorf("got\n%s", got)
	}
	undo := saved(t, s)
	after := w1.tree()
	done, err := Restore(t.Context(), s, b, "w1", paths(damaged))
	if err != nil {
		t.Fatal(err)
	}
	w1.write("etc/kubernetes/tmp/old/member.db", "large", 0o600)
	if got := w1.tree(); got != before {
		t.Errorf("got\n%s\nwant\n%s", got, before)
	}
	if got := strings.Join(w1.systemctl, ", "); got != "restart kubelet" || len(done.Files) != 7 || len(done.Removed) != 3 || len(done.Left) > 0 {
		t.Errorf("%s, %+v", got, done)
	}
	// An undo can be undone.
	if _, err := Restore(t.Context(), s, undo, "w1", paths(differ(t, s, undo))); err != nil {
		t.Fatal(err)
	}
	w1.write("etc/kubernetes/tmp/old/member.db", "other", 0o600)
	if got := w1.tree(); got != after {
		t.Errorf("got\n%s\nwant\n%s", got, after)
	}
}

// Of one file nothing else is touched, but a directory above it that is gone comes back. What is new stays unless it is named.
func TestRestoreOfOneFile(t *testing.T) {
	s, _, w1 := newLab(t)
	b := saved(t, s)
	damage(w1)
	done, err := Restore(t.Context(), s, b, "w1", []string{"/etc/kubernetes/manifests/etcd.yaml"})
	if err != nil || strings.Join(done.Files, " ") != "/etc/kubernetes/manifests /etc/kubernetes/manifests/etcd.yaml" || len(done.Left) != 3 || len(w1.systemctl) > 0 {
		t.Errorf("%v, %+v, systemctl %q", err, done, w1.systemctl)
	}
	text, err := os.ReadFile(filepath.Join(w1.root, "etc/kubernetes/kubelet.conf"))
	if string(text) != "other" || err != nil {
		t.Errorf("%s, %v", text, err)
	}
	if got := len(strings.Split(differ(t, s, b), "\n")); got != 8 {
		t.Errorf("%d differ", got)
	}
	// Nothing to do is no change.
	w1.changes = 0
	if done, err := Restore(t.Context(), s, b, "w1", []string{"/etc/kubernetes/manifests/etcd.yaml"}); err != nil || len(done.Files) > 0 || w1.changes > 0 {
		t.Errorf("%v, %+v", err, done)
	}
}

// Nothing outside of what is saved is written, also not through a link, and what does not arrive whole changes nothing.
func TestRestoreRefuses(t *testing.T) {
	tests := map[string]struct {
		spoil func(n *shellNode, b Backup)
		paths []string
		want  string
	}{
		"another file":    {nil, []string{"/etc/passwd"}, "/etc/passwd is not among the files that are saved"},
		"out of the tree": {nil, []string{"/etc/kubernetes/pki/../../passwd"}, "not among the files"},
		"a relative path": {nil, []string{"etc/kubernetes/pki/ca.crt"}, "not among the files"},
		"through a link": {func(n *shellNode, _ Backup) {
			n.write("etc/x/ca.crt", "x", 0o600)
			n.remove("etc/kubernetes/pki")
			n.link("../x", "etc/kubernetes/pki")
		}, []string{"/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt"}, "leads through a link to "},
		"cut off":          {func(n *shellNode, _ Backup) { n.stdin = func(r io.Reader) io.Reader { return io.LimitReader(r, 2048) } }, []string{"/etc/kubernetes/kubelet.conf"}, "exit status"},
		"a damaged backup": {func(_ *shellNode, b Backup) { _ = os.WriteFile(b.Archive("w1"), []byte("x"), 0o600) }, []string{"/etc/kubernetes/kubelet.conf"}, "it is damaged: its sha256"},
		"no answer":        {func(n *shellNode, _ Backup) { n.fail = errors.New("no route to w1") }, []string{"/etc/kubernetes/kubelet.conf"}, "no route to w1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, _, w1 := newLab(t)
			b := saved(t, s)
			w1.write("etc/kubernetes/kubelet.conf", "other", 0o600)
			if tt.spoil != nil {
				tt.spoil(w1, b)
			}
			before := w1.tree()
			if _, err := Restore(t.Context(), s, b, "w1", tt.paths); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
			if got := w1.tree(); got != before {
				t.Errorf("it changed\n%s\ninto\n%s", before, got)
			}
		})
	}
	s, cp1, _ := newLab(t)
	cp1.fail = errors.New("no route to cp1")
	b := saved(t, s)
	for node, want := range map[string]string{"cp1": "which could not be read then: no route to cp1", "w9": `no node "w9"`} {
		if _, err := Diff(t.Context(), s, b, node); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", node, err)
		}
	}
}

func TestReload(t *testing.T) {
	for path, want := range map[string]string{
		"/etc/kubernetes/pki/ca.crt": "", "/etc/cni/net.d/x": "", "/etc/default/kubelet": "restart kubelet", "/var/lib/kubelet/config.yaml": "restart kubelet",
		"/etc/systemd/system/kubelet.service.d/1.conf": "daemon-reload, restart kubelet", "/etc/containerd/config.toml": "by hand: restart containerd", "/etc/crio/x": "by hand: restart crio",
	} {
		run, next := Reload([]string{path})
		var got []string
		for _, argv := range run {
			got = append(got, strings.Join(argv[1:], " "))
		}
		for _, argv := range next {
			got = append(got, "by hand: "+strings.Join(argv[1:], " "))
		}
		if strings.Join(got, ", ") != want || slices.Contains(got, "") {
			t.Errorf("%s: %q", path, got)
		}
	}
}
