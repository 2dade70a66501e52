package repair

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"k8slab/lab/join"
	"k8slab/lab/node"
	"k8slab/lab/session"
)

// manifestShell is a control plane with one manifest, and a kubeadm that makes another or the same.
type manifestShell struct {
	manifest, kubeadm string
	containers        string
	broken            string // the command that fails
	ran               []string
}

func (m *manifestShell) Copy(context.Context, string, fs.FileMode, io.Reader) error { return nil }

func (m *manifestShell) Read(_ context.Context, argv ...string) (string, error) {
	switch {
	case argv[0] == "crictl":
		return m.containers, nil
	case strings.HasPrefix(argv[1], remakeDir):
		return m.kubeadm, nil
	}
	return m.manifest, nil
}

func (m *manifestShell) Run(_ context.Context, cmd node.Command) error {
	line := strings.Join(cmd.Argv, " ")
	m.ran = append(m.ran, line)
	if m.broken != "" && strings.Contains(line, m.broken) {
		return errors.New("it fails")
	}
	return nil
}

// wrote tells whether kubelet's manifest was touched.
func (m *manifestShell) wrote() bool {
	return slices.ContainsFunc(m.ran, func(line string) bool { return strings.HasSuffix(line, " "+session.ManifestDir+"/kube-apiserver.yaml") })
}

func TestRemakeManifest(t *testing.T) {
	tests := []struct {
		name    string
		shell   manifestShell
		dryRun  bool
		changed bool
		wrote   bool
		fails   bool
	}{
		{"another manifest", manifestShell{manifest: "bad", kubeadm: "good"}, false, true, true, false},
		{"another manifest, only looked at", manifestShell{manifest: "bad", kubeadm: "good"}, true, true, false, false},
		{"kubeadm's own manifest is not the cause", manifestShell{manifest: "good", kubeadm: "good"}, false, false, false, false},
		{"kubeadm fails", manifestShell{manifest: "bad", kubeadm: "good", broken: "kubeadm init"}, false, false, false, true},
		{"the old one cannot be kept", manifestShell{manifest: "bad", kubeadm: "good", broken: "k8slab-saved"}, false, false, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			kept, changed, err := remake(t.Context(), &tt.shell, staticPods[0], "", tt.dryRun)
			if changed != tt.changed || (err != nil) != tt.fails || tt.shell.wrote() != tt.wrote {
				t.Errorf("%q %v %v, ran %q", kept, changed, err, tt.shell.ran)
			}
			if strings.HasPrefix(kept, session.ManifestDir) {
				t.Errorf("kubelet would run %s", kept)
			}
			if last := tt.shell.ran[len(tt.shell.ran)-1]; last != "rm -rf "+remakeConfig+" "+remakeDir {
				t.Errorf("left behind; the last command was %q", last)
			}
		})
	}
}

func TestCrashing(t *testing.T) {
	now := time.Unix(1000, 0)
	container := func(state, attempt, created string) string {
		return `{"containers":[{"metadata":{"attempt":` + attempt + `},"state":"` + state + `","createdAt":"` + created + `"}]}`
	}
	tests := []struct {
		name, containers string
		want             bool
	}{
		{"it has ended", container("CONTAINER_EXITED", "0", "900000000000"), true},
		{"it was just started again", container("CONTAINER_RUNNING", "3", "990000000000"), true},
		{"it runs since long", container("CONTAINER_RUNNING", "3", "900000000000"), false},
		{"it has just started for the first time", container("CONTAINER_RUNNING", "0", "999000000000"), false},
		{"there is none", `{"containers":[]}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := crashing(t.Context(), &manifestShell{containers: tt.containers}, "kube-apiserver", now)
			if got != tt.want || err != nil {
				t.Errorf("%v %v", got, err)
			}
		})
	}
}

// What is not known to be sound is not: the repair then leaves the control plane alone.
func TestSound(t *testing.T) {
	checks := []join.Check{{ID: "kubelet", Result: join.OK}, {ID: "etcd-member", Result: join.Blocked}}
	if !passes(checks, "kubelet") || passes(checks, "etcd-member") || passes(nil, "kubelet") {
		t.Error(checks)
	}
}
