package join

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8slab/lab/event"
	"k8slab/lab/symptom"
)

func TestAJoinInItsUnitIsFollowedToItsEnd(t *testing.T) {
	u := newFakeUnit(t, `echo "[preflight] token `+testToken+`"; sleep 0.1; echo "error: error execution phase kubelet-start: no luck"; exit 1`)
	u.work = func() {
		e := *u.engine
		e.Events = nil
		if err := RunRequest(context.Background(), e); err != nil {
			t.Error(err)
		}
	}
	attached, err := Start(t.Context(), u.Machine, u.request(), []string{"/usr/bin/labnode", "join", "--run"})
	if err != nil || attached {
		t.Fatalf("attached %t, %v", attached, err)
	}
	live, o, err := u.lines(1)
	if err != nil || o.Joined || o.ExitCode != 1 || o.Phase != "kubelet-start" {
		t.Fatalf("%+v, %v", o, err)
	}
	all, again, err := u.lines(1)
	if err != nil || !slices.Equal(live, all) || again.Evidence != o.Evidence {
		t.Errorf("who follows later sees another join: %v\n%s\n%s", err, strings.Join(live, "\n"), strings.Join(all, "\n"))
	}
	rest, _, err := u.lines(3)
	if err != nil || !slices.Equal(rest, all[2:]) {
		t.Errorf("from the third line on: %v\n%s", err, strings.Join(rest, "\n"))
	}
	phases := []Phase{}
	for _, l := range all {
		e, end, err := ParseLine([]byte(l))
		if err != nil || end != nil || e.Node != "w1" {
			t.Errorf("%s: %v", l, err)
		}
		if !slices.Contains(phases, Phase(e.Phase)) {
			phases = append(phases, Phase(e.Phase))
		}
	}
	if !slices.Equal(phases, []Phase{PhasePrepare, PhaseKubeadm}) {
		t.Errorf("phases %q", phases)
	}
	if strings.Contains(strings.Join(all, "\n"), "0123456789abcdef") {
		t.Error("the token is in the events")
	}
	var first Outcome
	if err := u.readJSON(firstFile, &first); err != nil || first.Phase != o.Phase {
		t.Errorf("the first attempt's outcome: %+v, %v", first, err)
	}
	if u.Exists(requestFile) || u.Exists(kubeadmConfig) {
		t.Error("secrets are left")
	}
	for _, file := range []string{eventsFile, outcomeFile, firstFile} {
		if info, err := os.Stat(u.Path(file)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	if info, err := os.Stat(u.Path(stateDir)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%s: %v, %v", stateDir, info, err)
	}
}

// A unit that is killed is said to have been; nobody waits for its outcome.
func TestAUnitThatDiesSaysSo(t *testing.T) {
	tests := []struct {
		result string
		cause  symptom.ID
		says   string
	}{
		{"signal", "", "systemd says: signal"},
		{"oom-kill", symptom.OutOfMemory, "want of memory"},
		{"success", "", "the machine restarted"}, // systemd knows nothing of it any more
	}
	for _, tt := range tests {
		t.Run(tt.result, func(t *testing.T) {
			u := newFakeUnit(t, "")
			u.result = tt.result
			if _, err := Start(t.Context(), u.Machine, u.request(), []string{"labnode"}); err != nil {
				t.Fatal(err)
			}
			sink, err := event.File(u.Path(eventsFile))
			if err != nil {
				t.Fatal(err)
			}
			event.NewStream(sink).Start("w1", "kubeadm", 0).Progress("[etcd] Announced new etcd member joining")
			time.AfterFunc(50*time.Millisecond, u.end)
			begin := time.Now()
			lines, o, err := u.lines(1)
			if err != nil || o.Joined || o.Finished || o.ExitCode != -1 || o.Phase != "kubeadm" || o.Symptom != tt.cause || !strings.Contains(o.Evidence, tt.says) {
				t.Errorf("%+v, %v", o, err)
			}
			if len(lines) != 2 || time.Since(begin) > 3*time.Second {
				t.Errorf("%q after %s", lines, time.Since(begin))
			}
		})
	}
}

func TestFollowWhereNothingRan(t *testing.T) {
	u := newFakeUnit(t, "")
	if _, _, err := u.lines(1); !errors.Is(err, ErrNoJoin) {
		t.Errorf("%v", err)
	}
	if err := os.MkdirAll(u.Path(stateDir), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := u.lines(1); !errors.Is(err, ErrNoJoin) {
		t.Errorf("%v", err)
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	u := newFakeUnit(t, "")
	if _, err := Start(t.Context(), u.Machine, u.request(), []string{"labnode"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("the connection is gone"))
	defer cancel()
	if _, err := Follow(ctx, u.Machine, 1, func([]byte) error { return nil }); err == nil || err.Error() != "the connection is gone" {
		t.Errorf("%v", err)
	}
	if u.process == nil {
		t.Error("the join ended with its follower")
	}
}

// A new series forgets the one before; a later attempt goes on with it.
func TestSeries(t *testing.T) {
	u := newFakeUnit(t, "")
	for _, file := range []string{eventsFile, outcomeFile, firstFile} {
		u.write(file, "{}\n")
	}
	r := u.request()
	r.First = 2
	if err := u.makeReady(r); err != nil || !u.Exists(eventsFile) || !u.Exists(firstFile) || u.Exists(outcomeFile) {
		t.Errorf("a later attempt: %v", err)
	}
	r.First = 1
	if err := u.makeReady(r); err != nil || u.Exists(eventsFile) || u.Exists(firstFile) {
		t.Errorf("a new series: %v", err)
	}
}

// The series' outcome is the first attempt's, and attempts after the first do not overwrite what that one left on the disk.
func TestTheFirstCauseIsKept(t *testing.T) {
	u := newFakeUnit(t, `n=$(cat $(dirname $0)/n 2>/dev/null); echo x$n >$(dirname $0)/n; echo "error: error execution phase try$n: no luck"; exit 1`)
	r := u.request()
	r.Policy = Policy{Attempts: 2}
	if err := u.makeReady(r); err != nil {
		t.Fatal(err)
	}
	ended := 0
	u.engine.Ended = func(Outcome) error { ended++; return nil }
	if err := RunRequest(t.Context(), *u.engine); err != nil || ended != 2 {
		t.Fatalf("%v, told of %d attempts", err, ended)
	}
	var o, first Outcome
	if err := errors.Join(u.readJSON(outcomeFile, &o), u.readJSON(firstFile, &first)); err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]Outcome{"series": o, "first": first} {
		if !strings.HasSuffix(got.Evidence, "phase try: no luck") {
			t.Errorf("%s: %q", what, got.Evidence)
		}
	}
	if log, _ := u.Read(kubeadmLog); strings.Count(log, "== attempt") != 2 || !strings.Contains(log, "tryx: no luck") {
		t.Errorf("the log has not both attempts:\n%s", log)
	}
}
