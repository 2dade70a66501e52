package phase

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8slab/config"
	"k8slab/lab/diagnose"
	"k8slab/lab/join"
	"k8slab/lab/machine"
	"k8slab/lab/onboard"
	"k8slab/lab/symptom"
	"k8slab/lab/validate"
)

func (b *bench) looking(id onboard.PhaseID, checks ...validate.Check) *looking {
	l := &looking{id: id, node: target.Node, seen: b.seen, checks: func() []validate.Check { return checks }}
	b.Runners[id] = l
	return l
}

func TestLookingTells(t *testing.T) {
	b := newBench(t)
	b.looking(onboard.SecurityValidation,
		finding(validate.AreaSecurity, "a", validate.Passed, "all is well", ""),
		finding(validate.AreaSecurity, "b", validate.Warned, "no policy", "write one"),
		finding(validate.AreaSecurity, "c", validate.NotApplicable, "there is no SOPS", ""))
	must(t, b.Run(t.Context(), onboard.Options{}))
	for _, want := range []string{
		"DEBUG security_validation: debug: passed: a: all is well",
		"WARN security_validation: warning: security: b: no policy; next: write one",
		"INFO security_validation: not applicable: c: there is no SOPS",
	} {
		if !b.events.has(want) {
			t.Errorf("%q was not said; said was\n%s", want, strings.Join(b.events.text, "\n"))
		}
	}
	r, err := b.seen.Read()
	if err != nil || len(r.Findings[onboard.SecurityValidation]) != 3 {
		t.Errorf("kept %+v, %v", r, err)
	}
}

func TestLookingFails(t *testing.T) {
	b := newBench(t)
	b.looking(onboard.SecurityValidation,
		finding(validate.AreaSecurity, "a", validate.Passed, "fine", ""),
		finding(validate.AreaSecurity, "b", validate.Failed, "token: abcdef.0123456789abcdef", "delete it"),
		validate.Check{Area: validate.AreaGitOps, Name: "c", Look: func(context.Context) (validate.Finding, error) { return validate.Finding{}, errBroken }})
	err := b.Run(t.Context(), onboard.Options{})
	contains(t, err, "phase 7 of 9, security_validation: 2 of 3 checks failed:", "security: b: ", "; next: delete it", "gitops: c: "+errBroken.Error())
	st := b.state(t)
	if st.PhaseStatus[onboard.SecurityValidation] != onboard.Failed || st.PhaseStatus[onboard.PostValidation] != onboard.NotStarted {
		t.Errorf("phases are %v", st.PhaseStatus)
	}
	r, err := b.seen.Read()
	data, _ := json.Marshal(r)
	if err != nil || len(r.Findings[onboard.SecurityValidation]) != 3 || strings.Contains(string(data), "0123456789abcdef") {
		t.Errorf("kept %s, %v; want the three findings without the secret", data, err)
	}
}

// A phase that awaits goes on when what failed holds.
func TestLookingAwaits(t *testing.T) {
	b := newBench(t)
	tries := 0
	l := b.looking(onboard.MonitoringIntegration, validate.Check{Area: validate.AreaMonitoring, Name: "a", Look: func(context.Context) (validate.Finding, error) {
		if tries++; tries == 1 {
			return validate.Finding{Status: validate.Failed, Detail: "no target yet"}, nil
		}
		return validate.Finding{Status: validate.Passed}, nil
	}})
	l.await = true
	must(t, b.Run(t.Context(), onboard.Options{}))
	if tries != 2 || !b.events.has("not yet: a: no target yet") {
		t.Errorf("%d tries; said was\n%s", tries, strings.Join(b.events.text, "\n"))
	}
}

// When the time runs out, the error has what failed last, and the limit.
func TestLookingRunsOutOfTime(t *testing.T) {
	b := newBench(t)
	b.looking(onboard.MonitoringIntegration, finding(validate.AreaMonitoring, "a", validate.Failed, "no target", "look at Prometheus")).await = true
	b.Timeouts = map[onboard.PhaseID]time.Duration{onboard.MonitoringIntegration: 50 * time.Millisecond}
	contains(t, b.Run(t.Context(), onboard.Options{}), "50ms", "1 of 1 checks failed:\n  monitoring: a: no target; next: look at Prometheus")
}

// Test objects are in the journal before they are made, whatever the checks say.
func TestTestObjectsAreJournalled(t *testing.T) {
	b := newBench(t)
	seen := ""
	b.looking(onboard.NetworkValidation, validate.Check{Area: validate.AreaNetwork, Name: "a", Tries: true, Look: func(context.Context) (validate.Finding, error) {
		seen = b.changes(t)
		return validate.Finding{Status: validate.Failed}, nil
	}})
	if err := b.Run(t.Context(), onboard.Options{}); err == nil {
		t.Error("the failure was lost")
	}
	if seen != "test-objects:intended" || b.changes(t) != "test-objects:made" {
		t.Errorf("the journal had %q and has %q", seen, b.changes(t))
	}
}

func TestOrderOfAPhase(t *testing.T) {
	b := newBench(t)
	var order []string
	step := func(name string, err error) func(context.Context) error {
		return func(context.Context) error { order = append(order, name); return err }
	}
	l := b.looking(onboard.HealthVerification, validate.Check{Look: func(context.Context) (validate.Finding, error) {
		order = append(order, "check")
		return validate.Finding{Status: validate.Passed}, nil
	}})
	l.first, l.last = step("first", nil), step("last", nil)
	must(t, b.Run(t.Context(), onboard.Options{}))
	if want := []string{"first", "check", "last"}; !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
	order, b = nil, newBench(t)
	b.Runners[onboard.HealthVerification] = l
	l.seen, l.first = b.seen, step("first", errBroken)
	contains(t, b.Run(t.Context(), onboard.Options{}), errBroken.Error())
	if want := []string{"first"}; !slices.Equal(order, want) {
		t.Errorf("after a failure: got %v, want %v", order, want)
	}
}

func TestVerifyLooksOnceAndKeepsNothing(t *testing.T) {
	b := newBench(t)
	l := b.looking(onboard.NetworkValidation, finding(validate.AreaNetwork, "a", validate.Failed, "no route", ""))
	l.await = true
	before := files(t, b.dir)
	contains(t, l.Verify(t.Context()), "network: a: no route")
	if after := files(t, b.dir); after != before {
		t.Errorf("Verify wrote:\n%s", after)
	}
}

// What a later phase of the same run tries is not tried by each resumption too.
func TestVerifyLeavesTrialsToALaterPhase(t *testing.T) {
	for later, want := range map[bool][]string{true: {"look"}, false: {"look", "try"}} {
		var mu sync.Mutex // checks are made at once
		var made []string
		check := func(name string, tries bool) validate.Check {
			return validate.Check{Name: name, Tries: tries, Look: func(context.Context) (validate.Finding, error) {
				mu.Lock()
				defer mu.Unlock()
				made = append(made, name)
				return validate.Finding{Status: validate.Passed}, nil
			}}
		}
		l := &looking{later: later, checks: func() []validate.Check { return []validate.Check{check("look", false), check("try", true)} }}
		must(t, l.Verify(t.Context()))
		if slices.Sort(made); !slices.Equal(made, want) {
			t.Errorf("later %v: made %v, want %v", later, made, want)
		}
	}
}

// remains are test objects of owners.
type remains struct{ owners []string }

func (r *remains) Leftovers(context.Context) (all []validate.Leftover, err error) {
	for _, o := range r.owners {
		all = append(all, validate.Leftover{Namespace: "k8slab-validate-" + o, Owner: o})
	}
	return all, nil
}

func (r *remains) RemoveLeftovers(_ context.Context, owner string) error {
	r.owners = slices.DeleteFunc(r.owners, func(o string) bool { return o == owner })
	return nil
}

func TestLeftoversAreRemoved(t *testing.T) {
	r := &remains{owners: []string{"labctl", Owner("w3")}}
	c := testObjectsOf("w3")
	contains(t, leftovers{r}.Verify(t.Context(), c), "k8slab-validate-onboard-w3")
	must(t, leftovers{r}.Undo(t.Context(), c))
	must(t, leftovers{r}.Verify(t.Context(), c))
	if !slices.Equal(r.owners, []string{"labctl"}) {
		t.Errorf("left are those of %v, want another's alone", r.owners)
	}
}

func TestOwnerIsALabel(t *testing.T) {
	long := strings.Repeat("a", 63)
	if got := Owner(long); len(got) > 63 || got == Owner(long+"a") {
		t.Errorf("the owner of a long name is %s", got)
	}
}

// Room for one more node is no question once it is in.
func TestCapacityIsForANodeToCome(t *testing.T) {
	full := finding(validate.AreaCluster, "room", validate.Failed, "none is left", "")
	for want, w := range map[validate.Status]*world{validate.Failed: {}, validate.NotApplicable: {node: readyNode("w3")}} {
		if f, err := beforeJoining(full, w, "w3").Look(t.Context()); err != nil || f.Status != want {
			t.Errorf("got %+v, %v, want %s", f, err, want)
		}
	}
}

func TestPreflightFinding(t *testing.T) {
	warn := join.Check{ID: "swap", Result: join.Warn, Evidence: "it is on", Hint: "swapoff -a"}
	blocked := join.Check{ID: "time", Result: join.Blocked, Evidence: "an hour late", Hint: "set it"}
	fixable := join.Check{ID: "modules", Result: join.Fixable, Evidence: "overlay is missing"}
	for _, tt := range []struct {
		checks []join.Check
		status validate.Status
		detail string
	}{
		{[]join.Check{{ID: "x"}}, validate.Passed, "1 checks"},
		{[]join.Check{warn, {ID: "x"}}, validate.Warned, "swap: it is on"},
		{[]join.Check{warn, fixable}, validate.Failed, "modules: overlay is missing"},
		{[]join.Check{warn, blocked}, validate.Failed, "time: an hour late"},
	} {
		if f := preflightFinding(tt.checks); f.Status != tt.status || !strings.Contains(f.Detail, tt.detail) {
			t.Errorf("got %+v, want %s with %q", f, tt.status, tt.detail)
		}
	}
}

func TestMachineCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		lab    Lab
		status validate.Status
		detail string
	}{
		"elsewhere": {nil, validate.NotApplicable, "not the lab's"},
		"absent":    {&world{state: machine.Absent}, validate.NotApplicable, "is made later"},
		"off":       {&world{state: machine.Off, admitted: true}, validate.NotApplicable, "is started later"},
		"strange":   {&world{state: machine.Running}, validate.Failed, "no onboarding made it"},
		"member":    {&world{state: machine.Running, admitted: true}, validate.NotApplicable, "joined already"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := machineCheck(tt.lab, "w3").Look(t.Context())
			if err != nil || f.Status != tt.status || !strings.Contains(f.Detail, tt.detail) {
				t.Errorf("got %+v, %v, want %s with %q", f, err, tt.status, tt.detail)
			}
		})
	}
}

// cluster.yaml has a time-out for each phase, by its name.
func TestTimeoutsAreOfPhases(t *testing.T) {
	all := config.Timeouts{}.ByPhase()
	for _, p := range onboard.Phases() {
		if _, ok := all[string(p.ID)]; !ok {
			t.Errorf("cluster.yaml has no onboard.timeouts.%s", p.ID)
		}
		delete(all, string(p.ID))
	}
	if len(all) > 0 {
		t.Errorf("cluster.yaml has time-outs of no phase: %v", all)
	}
}

func TestEvidence(t *testing.T) {
	b := newBench(t)
	b.looking(onboard.SecurityValidation, finding(validate.AreaSecurity, "a", validate.Failed, "x", ""))
	taken := 0
	take := func(context.Context) (validate.Snapshot, error) {
		taken++
		return validate.Snapshot{Nodes: map[string]bool{"cp1": true}}, nil
	}
	_ = b.Run(t.Context(), onboard.Options{})
	for range 2 {
		must(t, b.seen.keepBefore(t.Context(), take))
	}
	path := filepath.Join(b.dir, "w3", evidenceFile)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || taken != 1 {
		t.Errorf("%v, %v; taken %d times, want a private file and one snapshot", info, err, taken)
	}
	r, err := b.seen.Read()
	if err != nil || r.Before == nil || !r.Before.Nodes["cp1"] || len(r.Findings) != 1 {
		t.Errorf("read %+v, %v", r, err)
	}
	// Of another onboarding it is nothing.
	other := &Evidence{path: path, began: func() (time.Time, error) { return r.Began.Add(time.Second), nil }}
	if r, err := other.Read(); err != nil || r.Before != nil || len(r.Findings) != 0 {
		t.Errorf("of another onboarding: %+v, %v", r, err)
	}
	// Damage is said, and the next writer begins anew.
	must(t, os.WriteFile(path, []byte("{"), 0o600))
	if _, err := b.seen.Read(); err == nil {
		t.Error("damage was not said")
	}
	must(t, b.seen.keep(onboard.NetworkValidation, nil))
	if _, err := b.seen.Read(); err != nil {
		t.Error(err)
	}
}

func TestSnapshotFailure(t *testing.T) {
	b := newBench(t)
	_ = b.Run(t.Context(), onboard.Options{})
	err := b.seen.keepBefore(t.Context(), func(context.Context) (validate.Snapshot, error) { return validate.Snapshot{}, errBroken })
	if !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	if r, err := b.seen.Read(); err != nil || r.Before != nil {
		t.Errorf("kept %+v, %v", r, err)
	}
}

// A phase of which every check is not applicable has completed nothing.
func TestLookingAtNothing(t *testing.T) {
	b := newBench(t)
	b.looking(onboard.StorageIntegration,
		finding(validate.AreaStorage, "a", validate.NotApplicable, "there is no Longhorn", ""),
		finding(validate.AreaStorage, "b", validate.NotApplicable, "there is no StorageClass", ""))
	must(t, b.Run(t.Context(), onboard.Options{}))
	if st := b.state(t); st.PhaseStatus[onboard.StorageIntegration] != onboard.NotApplicable || st.Progress() != "8 of 9 completed, 1 not applicable" {
		t.Errorf("phases are %v, %s", st.PhaseStatus, st.Progress())
	}
}

// A node that has not joined yet is no reason against an onboarding; what is wrong elsewhere is.
func TestDiagnosisBesideTheNode(t *testing.T) {
	failing := func(node string) symptom.Finding {
		return symptom.Finding{Symptom: symptom.DiskFull, Level: symptom.Fail, Node: node}
	}
	for _, tt := range []struct {
		nodes   []string
		healthy bool
	}{{[]string{"w3"}, true}, {[]string{"w3", "w1"}, false}, {[]string{""}, false}, {nil, true}} {
		r, err := beside("w3", func(context.Context) (r diagnose.Report, err error) {
			for _, node := range tt.nodes {
				r.Findings = append(r.Findings, failing(node))
			}
			return r, nil
		})(t.Context())
		if err != nil || r.Healthy != tt.healthy {
			t.Errorf("%q: %+v, %v", tt.nodes, r, err)
		}
	}
	if beside("w3", nil) != nil {
		t.Error("a cluster that only its API server tells of has a diagnosis of its own")
	}
}
