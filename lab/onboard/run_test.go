package onboard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8slab/lab/wait"
)

func view(t *testing.T, f *fake) View {
	t.Helper()
	v, err := f.Store.Status()
	must(t, err)
	return v
}

// The table is what the phases are known by: nine, in this order, and each needs only earlier ones.
func TestPhases(t *testing.T) {
	want := "pre_validation gitops_activation node_join_monitoring storage_integration network_validation monitoring_integration " +
		"security_validation post_validation health_verification"
	var ids []string
	for i, p := range Phases() {
		ids = append(ids, string(p.ID))
		if p.Title == "" || p.Purpose == "" || p.Impact == "" || len(p.Checks)+len(p.Actions) == 0 || p.Timeout <= 0 {
			t.Errorf("%s lacks something: %+v", p.ID, p)
		}
		for _, need := range p.Needs {
			if !slices.Contains(ids[:i], string(need)) {
				t.Errorf("%s needs %s, which is not before it", p.ID, need)
			}
		}
		if (len(p.Needs) == 0) != (i == 0) {
			t.Errorf("%s needs %v", p.ID, p.Needs)
		}
	}
	if got := strings.Join(ids, " "); got != want {
		t.Errorf("got %s", got)
	}
}

func TestRunAndRefuseTwice(t *testing.T) {
	f := newFake(t.TempDir())
	must(t, f.Run(t.Context(), Options{}))
	v := view(t, f)
	if v.Condition != Onboarded || phasesOf(v.State) != "+++++++++" || v.CompletedPhases != 9 {
		t.Errorf("got %s %s", v.Condition, phasesOf(v.State))
	}
	if f.world.things() != allThings || f.world.done() != allMade {
		t.Errorf("there are %s; done: %s", f.world.things(), f.world.done())
	}
	for _, c := range v.Changes {
		if c.Status != Made || c.Params["thing"] == found {
			t.Errorf("change %+v", c)
		}
	}
	contains(t, f.Run(t.Context(), Options{}), "w2 was onboarded at ", "--resume", "--rollback")
	for _, line := range []string{
		"PROGRESS pre_validation: \n", "SUCCESS pre_validation: \n", "INFO gitops_activation: make commit: done\n",
		"DEBUG storage_integration: debug: make found: it was so before\n",
	} {
		if !strings.Contains(f.events.String(), line) {
			t.Errorf("%q is not in\n%s", line, f.events)
		}
	}
}

func TestFailureAndResume(t *testing.T) {
	dir := t.TempDir()
	f := newFake(dir)
	f.runners[StorageIntegration].run = broken
	err := f.Run(t.Context(), Options{})
	if !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	contains(t, err, "onboard w2: phase 4 of 9, storage_integration: the API server does not answer\n",
		"impact: volumes have no replicas on the node\n", "--resume", "--rollback")
	v := view(t, f)
	if v.Condition != Broken || phasesOf(v.State) != "+++!....." || v.PhaseErrors[StorageIntegration] != errBroken.Error() || v.FailedPhases != 1 {
		t.Errorf("got %s %s %q", v.Condition, phasesOf(v.State), v.PhaseErrors)
	}
	contains(t, f.Run(t.Context(), Options{}), "is not finished", "--resume", "--rollback")

	f = newFake(dir)
	must(t, f.Run(t.Context(), Options{Resume: true}))
	v = view(t, f)
	if v.Condition != Onboarded || f.world.done() != allMade || f.runners[NodeJoinMonitoring].ran != 0 || f.runners[StorageIntegration].ran != 1 {
		t.Errorf("got %s, %s", v.Condition, f.world.done())
	}
	const phase = StorageIntegration
	if len(v.Errors) != 1 || v.Errors[0].Error != errBroken.Error() || v.Errors[0].Phase != phase || v.PhaseErrors[phase] != "" {
		t.Errorf("the history is %+v, the errors %q", v.Errors, v.PhaseErrors)
	}
	if got := v.PhaseTimes[StorageIntegration].Attempts; got != 2 {
		t.Errorf("%d attempts", got)
	}
}

// What was completed is believed only as far as the world shows it, in an onboarding under way and in a finished one.
func TestResumeVerifies(t *testing.T) {
	for _, finished := range []bool{false, true} {
		dir := t.TempDir()
		f := newFake(dir)
		if !finished {
			f.runners[NetworkValidation].run = broken
		}
		if err := f.Run(t.Context(), Options{}); (err == nil) != finished {
			t.Fatal(err)
		}
		must(t, f.world.Undo(t.Context(), f.world.change("node")))
		f = newFake(dir)
		must(t, f.Run(t.Context(), Options{Resume: true}))
		v := view(t, f)
		if v.Condition != Onboarded || f.world.things() != allThings || f.runners[NodeJoinMonitoring].ran != 1 || f.runners[GitOpsActivation].ran != 0 {
			t.Errorf("finished %v: got %s, %s", finished, v.Condition, f.world.things())
		}
		want := "WARN node_join_monitoring: warning: what was completed no longer holds: node is gone; the phase runs again\n"
		events := f.events.String()
		if !strings.Contains(events, want) || !strings.Contains(events, "SUCCESS gitops_activation: verified: what was completed at ") {
			t.Errorf("finished %v: the events are\n%s", finished, events)
		}
		if last := v.Errors[len(v.Errors)-1]; last.Phase != NodeJoinMonitoring || !strings.Contains(last.Error, "node is gone") {
			t.Errorf("the history ends with %+v", last)
		}
		isNode := func(c Change) bool { return c.Params["thing"] == "node" }
		if i := slices.IndexFunc(v.Changes, isNode); v.Changes[i].Status != Made || len(v.Changes) != 5 {
			t.Errorf("changes %+v", v.Changes)
		}
	}
}

func TestNothingToResume(t *testing.T) {
	f := newFake(t.TempDir())
	if err := f.Run(t.Context(), Options{Resume: true}); !errors.Is(err, ErrNothing) {
		t.Errorf("got %v", err)
	}
}

func TestSkipValidation(t *testing.T) {
	dir := t.TempDir()
	f := newFake(dir)
	f.runners[PreValidation].run = broken
	if err := f.Run(t.Context(), Options{}); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	f.runners[HealthVerification].run = broken
	if err := f.Run(t.Context(), Options{Resume: true, SkipValidation: true}); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	if v := view(t, f); phasesOf(v.State) != "-+++++++!" || v.CompletedPhases != 7 {
		t.Errorf("got %s", phasesOf(v.State))
	}
	f = newFake(dir)
	must(t, f.Run(t.Context(), Options{Resume: true})) // what was skipped stays so
	if v := view(t, f); phasesOf(v.State) != "-++++++++" || f.runners[PreValidation].ran != 0 {
		t.Errorf("got %s", phasesOf(v.State))
	}
}

// Ctrl-C leaves what a kill leaves, and what a resumed run takes.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	f := newFake(dir)
	ctx, cancel := context.WithCancelCause(t.Context())
	f.runners[NodeJoinMonitoring].run = func(ctx context.Context, _ *Journal) error {
		cancel(errors.New("Ctrl-C"))
		return fmt.Errorf("wait for the Node: %w", ctx.Err())
	}
	err := f.Run(ctx, Options{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	contains(t, err, "interrupted in phase 3 of 9, node_join_monitoring: wait for the Node", "--resume")
	v := view(t, f)
	if v.Condition != Interrupted || phasesOf(v.State) != "++>......" || v.FailedPhases != 0 || len(v.Errors) != 1 {
		t.Errorf("got %s %s %+v", v.Condition, phasesOf(v.State), v.Errors)
	}
	f = newFake(dir)
	must(t, f.Run(t.Context(), Options{Resume: true}))
	if f.world.done() != allMade || !strings.Contains(f.events.String(), "INFO node_join_monitoring: an earlier attempt was interrupted") {
		t.Errorf("got %s\n%s", f.world.done(), f.events)
	}
}

func TestTimeouts(t *testing.T) {
	slow := func(ctx context.Context, j *Journal) error {
		j.Info("no Node w2 yet")
		j.Debug("nobody reads this")
		return wait.For(ctx, "Node w2", time.Hour, time.Second, func(context.Context) error { return errors.New("w2 is not Ready") })
	}
	tests := []struct {
		name     string
		timeouts map[PhaseID]time.Duration
		took     time.Duration
		want     []string
	}{
		{"the phase's own", nil, 5 * time.Minute, []string{"phase node_join_monitoring: 5m0s budget ran out; last seen: Node w2: stopped",
			"w2 is not Ready; before that: no Node w2 yet"}},
		{"the caller's", map[PhaseID]time.Duration{NodeJoinMonitoring: time.Minute}, time.Minute, []string{"1m0s budget ran out", "w2 is not Ready"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				f := newFake(dir)
				f.Timeouts = tt.timeouts
				f.runners[NodeJoinMonitoring].run = slow
				start := time.Now()
				contains(t, f.Run(t.Context(), Options{}), tt.want...)
				if took := time.Since(start); took != tt.took {
					t.Errorf("it took %v", took)
				}
				if v := view(t, f); v.Condition != Broken {
					t.Errorf("got %s", v.Condition)
				}
			})
		})
	}
}

// The times of attempts add up, and what is between them does not count.
func TestTimesAddUp(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(dir)
		begin := time.Now()
		work := func(d time.Duration, err error) func(context.Context, *Journal) error {
			return func(context.Context, *Journal) error { time.Sleep(d); return err }
		}
		f.runners[PreValidation].run = work(time.Second, nil)
		f.runners[GitOpsActivation].run = work(10*time.Second, errBroken)
		if f.Run(t.Context(), Options{}) == nil {
			t.Fatal("it did not fail")
		}
		time.Sleep(time.Hour)
		f.runners[GitOpsActivation].run = work(20*time.Second+500*time.Millisecond, nil)
		must(t, f.Run(t.Context(), Options{Resume: true}))
		v := view(t, f)
		got := v.PhaseTimes[GitOpsActivation]
		want := Times{
			Started: begin.Add(time.Second).UTC(), Ended: begin.Add(time.Hour + 31*time.Second + 500*time.Millisecond).UTC(), Attempts: 2, Seconds: 30.5,
		}
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if got := v.PhaseTimes[PreValidation]; got.Attempts != 1 || got.Seconds != 1 {
			t.Errorf("a phase that was only verified took %+v", got)
		}
		if !v.Started.Equal(begin) || !v.Timestamp.Equal(begin.Add(time.Hour+31*time.Second+500*time.Millisecond)) {
			t.Errorf("from %v to %v", v.Started, v.Timestamp)
		}
	})
}

func TestEngineLacksRunners(t *testing.T) {
	dir := t.TempDir()
	f := newFake(dir)
	delete(f.Runners, PostValidation)
	delete(f.Runners, PreValidation)
	before := tree(t, dir)
	contains(t, f.Run(t.Context(), Options{}), "nothing runs pre_validation, post_validation")
	if tree(t, dir) != before {
		t.Error("it changed something")
	}
}

// A phase that had nothing to do is not completed. A resumed run asks it again.
func TestNotApplicable(t *testing.T) {
	dir := t.TempDir()
	f := newFake(dir)
	f.runners[StorageIntegration].run = func(_ context.Context, j *Journal) error {
		j.NotApplicable("the cluster has no storage")
		return nil
	}
	must(t, f.Run(t.Context(), Options{}))
	v := view(t, f)
	if phasesOf(v.State) != "+++0+++++" || v.Condition != Onboarded || v.CompletedPhases != 8 || v.Progress() != "8 of 9 completed, 1 not applicable" {
		t.Errorf("got %s %s, %s", phasesOf(v.State), v.Condition, v.Progress())
	}
	if !strings.Contains(f.events.String(), "not applicable: the cluster has no storage") {
		t.Errorf("it is not said:\n%s", f.events)
	}
	f = newFake(dir)
	must(t, f.Run(t.Context(), Options{Resume: true}))
	if v := view(t, f); phasesOf(v.State) != "+++++++++" || f.runners[StorageIntegration].ran != 1 {
		t.Errorf("resumed: %s, the phase ran %d times", phasesOf(v.State), f.runners[StorageIntegration].ran)
	}
}
