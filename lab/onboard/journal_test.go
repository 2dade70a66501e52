package onboard

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"k8slab/lab/atomicfile"
)

// pen is a journal of a phase in progress.
func pen(t *testing.T, f *fake) *Journal {
	t.Helper()
	must(t, f.Store.makeDirs())
	st := newState(target)
	st.CurrentPhase = GitOpsActivation
	st.set(GitOpsActivation, InProgress, nil)
	st.PhaseTimes[GitOpsActivation] = Times{Started: now(), Attempts: 1}
	return &Journal{session: &session{Engine: f.Engine, state: st}, phase: GitOpsActivation, step: f.Events.Start("w2", "gitops_activation", 0)}
}

func TestDo(t *testing.T) {
	errLost := errors.New("connection lost")
	tests := []struct {
		name   string
		before Status // of the change in the journal
		has    bool   // the world has the thing
		look   error
		do     error
		want   Status
		effect string // what was done
		err    error
	}{
		{name: "new", want: Made, effect: "make:commit"},
		{name: "there before, by somebody else", has: true, want: ""},
		{name: "intended and not made", before: Intended, want: Made, effect: "make:commit"},
		{name: "intended and made", before: Intended, has: true, want: Made},
		{name: "made", before: Made, has: true, want: Made},
		{name: "made, and taken away by somebody", before: Made, want: Made, effect: "make:commit"},
		{name: "the world cannot be seen", look: errLost, want: "", err: errLost},
		{name: "made, and the world cannot be seen", before: Made, look: errLost, want: Made, err: errLost},
		{name: "made, but the answer is lost", do: errLost, want: Intended, effect: "make:commit", err: errLost},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t.TempDir())
			j := pen(t, f)
			c := f.world.change("commit")
			if tt.before != "" {
				c := c
				c.Phase = GitOpsActivation
				must(t, j.session.note(c, tt.before))
			}
			err := j.Do(t.Context(), c, func(context.Context) (bool, error) { return tt.has, tt.look }, func(context.Context) error {
				if st, err := f.Store.current(); err != nil || st == nil || len(st.Changes) != 1 || st.Changes[0].Status != Intended {
					t.Errorf("made before it was written down: %+v, %v", st, err)
				}
				return errors.Join(f.world.make("commit"), tt.do)
			})
			if !errors.Is(err, tt.err) {
				t.Errorf("got %v", err)
			}
			c.Phase = GitOpsActivation
			if got := j.session.status(c); got != tt.want {
				t.Errorf("it is %q", got)
			}
			if got := f.world.done(); got != tt.effect {
				t.Errorf("done: %q", got)
			}
		})
	}
}

// What cannot be written down is not made, and what is said later is still written.
func TestDoWithoutDisk(t *testing.T) {
	f := newFake(t.TempDir())
	j := pen(t, f)
	errFull := errors.New("no space left on device")
	atomicfile.Rename = func(string, string) error { return errFull }
	isMade := func(context.Context) (bool, error) { return false, nil }
	do := func(context.Context) error { t.Error("it was made"); return nil }
	if err := j.Do(t.Context(), f.world.change("commit"), isMade, do); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
	atomicfile.Rename = os.Rename
	huge := f.world.change("commit")
	huge.What = strings.Repeat("x", maxSize)
	contains(t, j.Do(t.Context(), huge, isMade, do), "is not written: it is larger than")
	odd := f.world.change("commit")
	odd.Params = map[string]string{"thing": "\xff"}
	contains(t, j.Do(t.Context(), odd, isMade, do), `parameter "thing" is "\xff", which is not text`)
	must(t, j.session.update(func(st *State) { st.record(GitOpsActivation, errFull) }))
	if st, err := f.Store.current(); err != nil || st == nil || len(st.Changes) != 0 || len(st.Errors) != 1 {
		t.Errorf("got %+v, %v", st, err)
	}
	left, err := os.ReadDir(f.Store.dir)
	if err != nil || len(left) != 2 {
		t.Errorf("left are %v, %v", left, err)
	}
}
