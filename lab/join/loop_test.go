package join

import (
	"context"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8slab/lab/symptom"
)

func failedWith(id symptom.ID) Outcome {
	return Outcome{Symptom: id, Phase: "kubelet-start", Evidence: "because of " + string(id), ExitCode: 1}
}

// script is attempts that end as told.
func script(outcomes ...Outcome) func(context.Context, int) (Outcome, error) {
	return func(_ context.Context, n int) (Outcome, error) { return outcomes[n-1], nil }
}

func always(context.Context, Outcome) (bool, error) { return true, nil }

func TestLoop(t *testing.T) {
	joined := Outcome{Joined: true}
	a, b := failedWith(symptom.TLSBootstrapTimeout), failedWith(symptom.LeftoverState)
	three := Policy{Attempts: 3, Sleep: time.Second}
	tests := []struct {
		name     string
		policy   Policy
		outcomes []Outcome
		repair   func(context.Context, Outcome) (bool, error)
		want     Outcome
		err      []string // parts; none for success
		took     time.Duration
	}{
		{"at once", three, []Outcome{joined}, nil, joined, nil, 0},
		{"second try", three, []Outcome{a, joined}, always, joined, nil, time.Second},
		{"no pause after a cure", three, []Outcome{failedWith(symptom.TokenExpiredOrInvalid), joined}, always, joined, nil, 0},
		{"growing pauses", three, []Outcome{a, a, joined}, always, joined, nil, 3 * time.Second},
		{"the first cause is kept", three, []Outcome{a, b, b}, always, a, []string{"3 attempts", "tls-bootstrap-timeout", "the last attempt: leftover-state"}, 3 * time.Second},
		{"one attempt when none is said", Policy{}, []Outcome{a}, nil, a, []string{"not joined: tls-bootstrap-timeout"}, 0},
		{"repair says that it is of no use", three, []Outcome{a}, func(context.Context, Outcome) (bool, error) { return false, nil }, a, []string{"tls-bootstrap-timeout"}, 0},
		{"repair refuses", three, []Outcome{a}, func(context.Context, Outcome) (bool, error) { return false, errors.New("another machine lives") }, a,
			[]string{"no further attempt: another machine lives"}, 0},
		{"the total budget", Policy{Attempts: 9, Sleep: 4 * time.Second, MaxTotal: 10 * time.Second}, []Outcome{a, b, b}, always, a, []string{"budget of 10s"}, 4 * time.Second},
		{"the longest pause", Policy{Attempts: 4, Sleep: 4 * time.Second, MaxSleep: 5 * time.Second}, []Outcome{a, a, a, joined}, always, joined, nil, 14 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				got, err := Loop(t.Context(), tt.policy, script(tt.outcomes...), tt.repair)
				if got.Symptom != tt.want.Symptom || got.Joined != tt.want.Joined || (err == nil) != (tt.err == nil) {
					t.Errorf("got %+v, %v", got, err)
				}
				for _, part := range tt.err {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%q is not in %q", part, err)
					}
				}
				if took := time.Since(begin); took != tt.took {
					t.Errorf("took %s, want %s", took, tt.took)
				}
			})
		})
	}
}

func TestLoopEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(errors.New("stopped by a person")) })
		begin := time.Now()
		o, err := Loop(ctx, Policy{Attempts: 3, Sleep: time.Hour}, script(failedWith(symptom.EtcdSlow)), always)
		if o.Symptom != symptom.EtcdSlow || err == nil || !strings.Contains(err.Error(), "stopped by a person") || time.Since(begin) != 3*time.Second {
			t.Errorf("%+v, %v, after %s", o, err, time.Since(begin))
		}
	})
}

func TestLoopEndsWithAnAttemptThatCannotBeMade(t *testing.T) {
	lost := errors.New("the machine is gone")
	o, err := Loop(t.Context(), Policy{Attempts: 3}, func(_ context.Context, n int) (Outcome, error) {
		if n == 1 {
			return failedWith(symptom.EtcdSlow), nil
		}
		return Outcome{}, lost
	}, always)
	if !errors.Is(err, lost) || o.Symptom != symptom.EtcdSlow {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestJitterOnlyShortens(t *testing.T) {
	for draw, want := range map[float64]time.Duration{0: 2 * time.Second, 0.5: 3 * time.Second, 0.999: 3998 * time.Millisecond} {
		p := Policy{Sleep: 4 * time.Second, Jitter: func() float64 { return draw }}
		if got := p.sleep(1); got != want {
			t.Errorf("%v: %s, want %s", draw, got, want)
		}
	}
}

func TestRemedy(t *testing.T) {
	for id, want := range map[symptom.ID]Action{
		symptom.TokenExpiredOrInvalid: NewToken, symptom.CertificateKeyExpired: UploadCertificates, symptom.NodeNameExists: DeleteNode,
		symptom.EtcdTooManyLearners: RemoveLearner, symptom.RuntimeSocketMissing: FixLocally, symptom.CNINotInitialized: FixLocally,
		symptom.KubeletStandalone: FixLocally, symptom.KubeletConfigMissing: FixLocally, symptom.LeftoverState: FixLocally,
		symptom.JoinConfigMissing: RestoreJoins, symptom.BootstrapRBACForbidden: RestoreJoins, symptom.AdmissionRejects: Stop, symptom.CSRNotApproved: Stop,
		symptom.CACertHashMismatch: Stop, symptom.VersionSkew: Stop, symptom.KubeBinariesMissing: Stop, symptom.DiskFull: Stop,
		symptom.EtcdNoQuorum: Stop, "": Retry, "unheard-of": Stop,
	} {
		if got := Remedy(id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}

// The table of actions in the documents is the one in the code.
func TestRemediesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/join.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## From the cause to the action")
	table, _, _ = strings.Cut(table, "\n## ")
	documented := map[symptom.ID]Action{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		action := Action(strings.Split(cells[1], "`")[1])
		for i, id := range strings.Split(cells[2], "`") {
			if i%2 == 1 {
				documented[symptom.ID(id)] = action
			}
		}
	}
	if !maps.Equal(documented, remedies) {
		t.Errorf("documented %v\nin the code %v", documented, remedies)
	}
}
