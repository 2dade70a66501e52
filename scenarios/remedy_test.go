package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/symptom"
)

// Where labctl refuses, the hint has commands, or the fault says why it can have none. They are all that a person has to do: none has a
// placeholder left once the finding's values are in it.
func TestPersonsRemediesAreCommands(t *testing.T) {
	capitals, refused := "ABCDEFGHIJKLMNOPQRSTUVWXYZ", 0
	for _, f := range All() {
		if f.Stops() {
			refused++
		}
		if f.Remedy.Text != "" && f.ByHand != "" || f.ByHand != "" && (f.Restore == nil || len(strings.Fields(f.ByHand)) < 5) {
			t.Errorf("%s: remedy %q, by hand %q", f.Name, f.Remedy.Text, f.ByHand)
		}
		if f.Remedy.Text == "" {
			continue
		}
		values := []string{"a", "it is; b", "c", "4"}
		hint := "Look first: `journalctl -u kubelet`. Then " + f.Remedy.With(values...) + ", or ask somebody."
		commands := f.Remedy.Commands(hint)
		if want := strings.Count(f.Remedy.Text, "`") / 2; len(commands) != want || want == 0 {
			t.Errorf("%s: %d commands, want %d: %q", f.Name, len(commands), want, hint)
		}
		for _, c := range commands {
			for _, word := range c.Argv {
				if len(word) > 1 && strings.Trim(word, capitals) == "" {
					t.Errorf("%s: %s is left in %s", f.Name, word, c)
				}
			}
		}
		if all := symptom.Commands(hint); fmt.Sprint(all) != fmt.Sprint(commands) {
			t.Errorf("%s: the catalogue of remedies has %q", f.Name, all)
		}
	}
	if refused < 15 {
		t.Errorf("only %d faults are refused", refused)
	}
}

// hinted is the model, whose labctl refuses a join until a person has done what the hint says.
type hinted struct {
	*model
	hint string
	node string   // that the finding names
	heal string   // the command that takes the fault away
	ran  []string // beside what an experiment always asks for
}

func (h *hinted) Run(ctx context.Context, node string, argv ...string) (string, error) {
	if argv[0] == "systemctl" || argv[0] == "kubeadm" {
		h.did(strings.Join(argv, " ") + " on " + node)
	}
	return h.model.Run(ctx, node, argv...)
}

func (h *hinted) did(command string) {
	h.ran = append(h.ran, command)
	if command == h.heal {
		clear(h.on)
	}
}

func (h *hinted) Labctl(ctx context.Context, args ...string) (string, error) {
	switch {
	case args[0] == "diagnose" && len(h.on) > 0:
		return fmt.Sprintf(`{"findings": [{"symptom": "port-in-use", "level": "fail", "node": %q, "hint": %q}]}`, h.node, h.hint), nil
	case args[0] == "kubectl" && slices.Contains(args, "cluster-info"):
		h.did(strings.Join(args, " "))
		return "", nil
	case args[0] == "repair" && len(h.on) > 0:
		return "", errors.New("port-in-use is left to a person")
	}
	return h.model.Labctl(ctx, args...)
}

func TestExperimentDoesWhatTheHintSays(t *testing.T) {
	tests := []struct {
		name   string
		fault  Fault // what of it matters
		node   string
		hint   string
		heal   string
		ran    string
		passed bool
	}{
		{"on the finding's node", Fault{Remedy: symptom.StopUnit}, "w1", "`ss -ltnp`; `systemctl stop a.service`, or `systemctl stop UNIT`",
			"systemctl stop a.service on w1", "[systemctl stop a.service on w1]", true},
		{"as the administrator, then on a control plane", Fault{Remedy: symptom.RenewClusterInfo}, "w1", symptom.RenewClusterInfo.Text,
			"kubeadm init phase bootstrap-token on cp1",
			"[kubectl -- -n kube-public delete configmap cluster-info kubeadm init phase bootstrap-token on cp1]", true},
		{"a wrong hint does not help", Fault{Remedy: symptom.StopUnit}, "w1", "`systemctl stop b.service`", "systemctl stop a.service on w1",
			"[systemctl stop b.service on w1]", false},
		{"a hint without the command", Fault{Remedy: symptom.StopUnit}, "w1", "`systemctl stop UNIT`, `reboot`", "", "[]", false},
		{"a hint of no node", Fault{Remedy: symptom.StopUnit, Of: theCluster}, "", "`systemctl stop a.service`", "", "[]", false},
		{"by hand", Fault{ByHand: "the fault's own script acts"}, "w1", "Buy one.", "systemctl by-hand on w1", "[systemctl by-hand on w1]", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := &hinted{model: newModel(t), hint: tt.hint, node: tt.node, heal: tt.heal}
			f := h.breaks("taken", symptom.PortInUse, repair)
			f.Remedy, f.ByHand, f.Of = tt.fault.Remedy, tt.fault.ByHand, tt.fault.Of
			restored := 0
			f.Restore = func(ctx context.Context, s Target) error {
				if restored++; restored == 1 && f.ByHand != "" {
					return s.run(ctx, "systemctl", "by-hand")
				}
				return nil
			}
			r := f.Run(t.Context(), h, Options{Node: "w1"})
			if (r.Class == Passed) != tt.passed || fmt.Sprint(h.ran) != tt.ran || !tt.passed && !strings.Contains(r.Reason, string(symptom.PortInUse)) {
				t.Errorf("%s: %s, after %q", r.Class, r.Reason, h.ran)
			}
		})
	}
}
