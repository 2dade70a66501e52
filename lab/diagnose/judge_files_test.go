package diagnose

import (
	"context"
	"strings"
	"testing"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/inventory"
	joining "k8slab/lab/join"
	"k8slab/lab/node"
	"k8slab/lab/symptom"
)

func differs(path string, kind inventory.Kind, component string) inventory.Difference {
	return inventory.Difference{Path: path, Kind: kind, What: "it differs", Component: component}
}

// failingCheck has the check of the machine fail.
func failingCheck(c joining.Check) func(*fact.Machine) { return func(m *fact.Machine) { fail(m, c) } }

// filesCases are changed files of w1, beside what else is wrong there, and what is found of them.
var filesCases = []struct {
	name  string
	files []inventory.Difference
	also  func(*fact.Machine)
	want  []want
	level symptom.Level // of the first
	fixed bool          // the first is repairable
}{
	{"runc is not the image's", []inventory.Difference{differs("/usr/sbin/runc", inventory.Changed, "containerd")}, nil,
		[]want{{symptom.FileChanged, "w1", "containerd", ""}}, symptom.Fail, true},
	{"a program that nothing needs", []inventory.Difference{differs("/usr/bin/less", inventory.Missing, "")}, nil,
		[]want{{symptom.FileChanged, "w1", "", ""}}, symptom.Warn, true},
	{"a part of a unit that somebody wrote", []inventory.Difference{differs("/etc/systemd/system/containerd.service.d/memory.conf", inventory.Extra, "containerd")}, nil,
		[]want{{symptom.FileChanged, "w1", extraFile, ""}}, symptom.Warn, false},
	{"a masked unit", []inventory.Difference{differs("/etc/systemd/system/systemd-journald.service", inventory.Masks, "systemd")}, nil,
		[]want{{symptom.FileChanged, "w1", "systemd", ""}}, symptom.Fail, true},
	{"containerd does not start with its configuration", []inventory.Difference{differs("/etc/containerd/config.toml", inventory.Changed, "containerd")},
		failingCheck(joining.Check{ID: "cri", Result: joining.Fixable, Symptom: symptom.RuntimeSocketMissing, Evidence: "the socket is not there"}),
		[]want{{symptom.FileChanged, "w1", "containerd", ""}, {symptom.RuntimeSocketMissing, "w1", "", symptom.FileChanged}}, symptom.Fail, true},
	{"the configuration switches CRI off", []inventory.Difference{differs("/etc/containerd/config.toml", inventory.Changed, "containerd")},
		failingCheck(joining.Check{ID: "cri", Result: joining.Fixable, Symptom: symptom.CRIPluginDisabled, Evidence: "it serves no CRI"}),
		[]want{{symptom.CRIPluginDisabled, "w1", "", ""}}, symptom.Fail, true},
	{"containerd is masked and stopped", []inventory.Difference{differs("/etc/systemd/system/containerd.service", inventory.Masks, "containerd")},
		failingCheck(joining.Check{ID: "cri", Result: joining.Fixable, Symptom: symptom.RuntimeSocketMissing, Evidence: "the socket is not there"}),
		[]want{{symptom.RuntimeSocketMissing, "w1", "", ""}}, symptom.Fail, true},
	{"kubelet is gone", []inventory.Difference{differs("/usr/bin/kubelet", inventory.Missing, "kubelet")},
		failingCheck(joining.Check{ID: "kube-binaries", Result: joining.Blocked, Symptom: symptom.KubeBinariesMissing, Evidence: "no kubelet"}),
		[]want{{symptom.KubeBinariesMissing, "w1", "", ""}}, symptom.Fail, true},
	{"a plugin is gone", []inventory.Difference{differs("/opt/cni/bin/bridge", inventory.Missing, "pod network")},
		failingCheck(joining.Check{ID: "cni-plugins", Result: joining.Fixable, Symptom: symptom.CNIPluginBinaryMissing, Evidence: "no bridge"}),
		[]want{{symptom.CNIPluginBinaryMissing, "w1", "", ""}}, symptom.Fail, true},
	{"another network comes first", []inventory.Difference{differs("/etc/cni/net.d/00-old.conflist", inventory.Extra, "pod network")},
		failingCheck(joining.Check{ID: "cni-config", Result: joining.Fixable, Symptom: symptom.CNIStaleConfig, Evidence: "another wins"}),
		[]want{{symptom.CNIStaleConfig, "w1", "", ""}}, symptom.Fail, true},
	{"kubelet does not run, and less is gone", []inventory.Difference{differs("/usr/bin/less", inventory.Missing, "")}, stoppedKubelet,
		[]want{{symptom.KubeletNotRunning, "w1", "", ""}, {symptom.FileChanged, "w1", "", ""}}, symptom.Fail, true},
	{"kubelet does not run, and sshd is another", []inventory.Difference{differs("/usr/sbin/sshd", inventory.Changed, "ssh")}, stoppedKubelet,
		[]want{{symptom.FileChanged, "w1", "ssh", ""}, {symptom.KubeletNotRunning, "w1", "", ""}}, symptom.Fail, true},
}

func TestChangedFiles(t *testing.T) {
	for _, tt := range filesCases {
		t.Run(tt.name, func(t *testing.T) {
			f := healthyFacts(1)
			m := f.Machine("w1")
			m.Inside.Files = tt.files
			if tt.also != nil {
				tt.also(m)
			}
			found := Judge(f)
			got := outlined(found)
			if len(got) != len(tt.want) {
				t.Fatalf("%+v, want %+v", found, tt.want)
			}
			for i := range got {
				if got[i] != tt.want[i] {
					t.Errorf("%+v, want %+v", got[i], tt.want[i])
				}
			}
			if found[0].Level != tt.level || found[0].Repairable != tt.fixed {
				t.Errorf("level %s, repairable %v", found[0].Level, found[0].Repairable)
			}
		})
	}
}

// Of many files a finding names some, and how many there are besides.
func TestManyChangedFiles(t *testing.T) {
	f := healthyFacts(1)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		m := f.Machine("w1")
		m.Inside.Files = append(m.Inside.Files, differs("/usr/lib/x86_64-linux-gnu/lib"+name+".so", inventory.Missing, "libraries"))
	}
	found := Judge(f)
	if len(found) != 1 || len(found[0].Evidence) != evidenceLimit || !strings.Contains(found[0].Evidence[0].Text, "/liba.so: it differs") ||
		!strings.Contains(found[0].Evidence[evidenceLimit-1].Text, "3 more files") {
		t.Errorf("%+v", found)
	}
}

// A labnode that is missing or no program is a file that changed; one that runs and fails is not.
func TestLabnodeThatIsNoProgram(t *testing.T) {
	for status, want := range map[int]symptom.ID{126: symptom.FileChanged, 127: symptom.FileChanged, 139: symptom.FileChanged, 1: symptom.Unexplained, 137: symptom.Unexplained} {
		m := Machine{Name: "w1", Role: "worker", State: func(context.Context) (string, error) { return stateRunning, nil },
			Read: func(_ context.Context, argv ...string) (string, error) {
				if argv[0] == "true" {
					return "", nil
				}
				return "", &node.ExitError{Node: "w1", Argv: argv, Status: status}
			}}
		f := healthyFacts(1)
		f.Machines[3] = Collect(t.Context(), Sources{Labnode: "/usr/bin/labnode", Machines: []Machine{m}}).Machines[0]
		found := Judge(f)
		if len(found) == 0 || found[0].Symptom != want || found[0].Node != "w1" || found[0].Detail != "labnode" || found[0].Repairable != (want == symptom.FileChanged) {
			t.Errorf("exit status %d: %+v", status, found)
		}
	}
}
