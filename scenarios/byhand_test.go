package scenarios

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/symptom"
)

// owner is a driver of a machine whose joins end as told.
type owner struct {
	recorder
	outcome string // JSON of how joins end, "" for no word
	name    string // of the machine, "" for the node's
}

func (o *owner) Run(ctx context.Context, node string, argv ...string) (string, error) {
	_, _ = o.recorder.Run(ctx, node, argv...)
	switch {
	case o.outcome == "":
		return "", errors.New("connection lost")
	case argv[0] == "hostname":
		return cmp.Or(o.name, node) + "\n", nil
	case argv[0] == labnode:
		return `{"outcome":` + o.outcome + `}`, nil
	}
	return `{"phase":"preflight"}` + "\n" + `{"outcome":` + o.outcome + "}\n", errors.New("exit status 1")
}

func TestRefusedByHand(t *testing.T) {
	tests := []struct{ name, outcome, err string }{
		{"of the cause", `{"joined":false,"symptom":"disk-full","evidence":"2 %"}`, ""},
		{"of another cause", `{"joined":false,"symptom":"swap-enabled","evidence":"swap is on"}`, `"swap-enabled" (swap is on), not "disk-full"`},
		{"not at all", `{"joined":true}`, "the join succeeded"},
		{"without a word", "", "connection lost"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			driver := &owner{outcome: tt.outcome}
			target := Target{Driver: driver, Node: "w", Members: []Member{{"w", config.Worker, "10.0.0.9"}}}
			for what, ask := range map[string]func(context.Context, Target) error{"refuses": refuses(symptom.DiskFull), "recorded": recorded(symptom.DiskFull)} {
				err := ask(t.Context(), target)
				if misnamed := (*misnamedError)(nil); errors.As(err, &misnamed) != (tt.name == "of another cause") {
					t.Errorf("%s: a wrong name: %v", what, err)
				}
				if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%s: %v, want %q", what, err, tt.err)
				}
			}
		})
	}
}

// The command that is used is the changed one, for the node's role, and its token is worthless afterwards.
func TestByHand(t *testing.T) {
	driver := &owner{outcome: `{"joined":false}`}
	target := Target{Driver: driver, Node: "n", Members: []Member{{"n", config.ControlPlane, "10.0.0.9"}}}
	if err := dnsFailure.Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	ran := strings.Join(driver.ran, "\n")
	for _, want := range []string{
		"labctl: join-command -o json --control-plane", "kubeadm join control-plane.fault.invalid:6443 --token abcdef.", "bootstrap-token-abcdef",
	} {
		if !strings.Contains(ran, want) {
			t.Errorf("no %q in\n%s", want, ran)
		}
	}
	if strings.Contains(ran, "kubeadm join 10.0.0.10") || strings.Contains(ran, "--node-name") {
		t.Errorf("the real command was used, or a name is in it:\n%s", ran)
	}
}

// A machine that has another name than its Node is told the Node's; one without a name shows what a join makes of that.
func TestByHandOnAnotherName(t *testing.T) {
	for name, told := range map[string]bool{"n": false, "m1": true, noName: false} {
		driver := &owner{outcome: `{"joined":false,"symptom":"disk-full"}`, name: name}
		target := Target{Driver: driver, Node: "n", Members: []Member{{"n", config.Worker, "10.0.0.9"}}}
		if err := refuses(symptom.DiskFull)(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(driver.ran, "\n"), " --node-name n"); got != told {
			t.Errorf("%s: told the name: %t", name, got)
		}
	}
}
