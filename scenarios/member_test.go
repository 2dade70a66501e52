package scenarios

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// answering is a driver to which every command says the same.
type answering struct {
	out string
	err error
}

func (a answering) Run(context.Context, string, ...string) (string, error) { return a.out, a.err }
func (a answering) Labctl(context.Context, ...string) (string, error)      { return a.out, a.err }

// One that is asked again after the recovery knows an absence from a node or a cluster that does not answer.
func TestNoAnswerIsNoAbsence(t *testing.T) {
	refused := answering{err: errors.New("connection refused")}
	for _, f := range All() {
		if f.Outside || f.Once || f.Effect == nil {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			err := f.Effect(t.Context(), targetOf(f, refused))
			if _, gone := errors.AsType[absence](err); err == nil || gone {
				t.Errorf("%s: %v", f.Name, err)
			}
		})
	}
}

func TestWhatIsAbsent(t *testing.T) {
	for _, tt := range []struct {
		fault Fault
		out   string
		gone  bool
	}{
		{apiServerCrashloop, "running\n", true},
		{apiServerCrashloop, "137\n", false},
		{cniPluginMissing, "5d5e\nsucceeded\n", true},
		{cniPluginMissing, "the name is reserved\n", false},
		{deadContainerd, "RuntimeApiVersion:  v1\nsucceeded\n", true},
		{deadContainerd, "context deadline exceeded\n", false},
		{ipForwardOff, "open\n", true},
		{kubeletStopped, "ok", true},
		{missingCNI, `{"status":{"conditions":[{"type":"NetworkReady","status":true}]}}`, true},
		{missingCNI, "no answer", false},
		{staleCNI, "10.244.3.7", true},
		{staleCNI, "", false},
		{staleLearner, "Error: etcdserver: request timed out", false},
		{standaloneKubelet, `{"items":[{}]}`, true},
		{wipedVoter, "", true},
	} {
		t.Run(tt.fault.Name+" "+tt.out, func(t *testing.T) {
			err := tt.fault.Effect(t.Context(), targetOf(tt.fault, answering{out: tt.out}))
			if _, gone := errors.AsType[absence](err); gone != tt.gone || err == nil {
				t.Error(err)
			}
		})
	}
}

// What etcd was asked to take is taken back, also when the answer was lost, and where the ID begins with a zero: etcdctl's own table pads such
// a one with a space.
func TestRoomForALearnerIsLeft(t *testing.T) {
	for _, lost := range []bool{false, true} {
		driver := &learning{lost: lost}
		s := targetOf(staleLearner, driver)
		err := staleLearner.Effect(t.Context(), s)
		if lost {
			if _, gone := errors.AsType[absence](err); err == nil || gone {
				t.Errorf("without an answer: %v", err)
			}
			err = staleLearner.Effect(t.Context(), s)
		}
		if _, gone := errors.AsType[absence](err); !gone || driver.member {
			t.Errorf("lost %v: %v, and it is a member: %v", lost, err, driver.member)
		}
	}
}

// learning is a driver of an etcd that takes one learner.
type learning struct {
	answering
	lost   bool // what it first answers
	member bool
}

func (l *learning) Run(_ context.Context, _ string, argv ...string) (string, error) {
	switch {
	case slices.Contains(argv, "list") && l.member:
		return `{"members":[{"ID":1045683117421011935,"peerURLs":["https://192.0.2.43:2380"],"isLearner":true}]}`, nil
	case slices.Contains(argv, "list"):
		return `{"members":[]}`, nil
	case slices.Contains(argv, "remove") && slices.Contains(argv, "e8303414980a3df"):
		l.member = false
	case slices.Contains(argv, "add") && l.member:
		return "", errors.New("etcdserver: too many learner members in cluster")
	case slices.Contains(argv, "add"):
		l.member = true
		if l.lost {
			l.lost = false
			return "", errors.New("context deadline exceeded")
		}
	}
	return "", nil
}

func TestEffectsOnEtcd(t *testing.T) {
	const members = `{"members":[{"ID":1,"name":"cp1"},{"ID":2,"name":"cp2"},{"ID":3,"name":"cp3","isLearner":LEARNER}]}`
	const unnamed = `{"members":[{"ID":1,"name":"cp1"},{"ID":3,"isLearner":LEARNER}]}`
	learner := func(text, is string) answering { return answering{out: strings.ReplaceAll(text, "LEARNER", is)} }
	refused := answering{err: errors.New("connection refused")}
	tests := []struct {
		name   string
		asks   func(context.Context, Target) error
		driver answering
		effect bool
	}{
		{"nobody can ask", memberDown, refused, false},
		{"a member answers", memberDown, answering{}, false},
		{"the member learns", learns, learner(members, "true"), true},
		{"the member votes", learns, learner(members, "false"), false},
		{"the member has not started", learns, learner(unnamed, "true"), false},
		{"the node's member votes", func(ctx context.Context, s Target) error { return s.votes(ctx) }, learner(members, "false"), true},
		{"the node's member is a learner", func(ctx context.Context, s Target) error { return s.votes(ctx) }, learner(members, "true"), false},
		{"the join failed", joinFailed, answering{out: `{"joinUnit":"inactive","outcome":{"joined":false}}`}, true},
		{"the join is at work", joinFailed, answering{out: `{"joinUnit":"active"}`}, false},
		{"the join succeeded", joinFailed, answering{out: `{"joinUnit":"inactive","outcome":{"joined":true}}`}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.asks(t.Context(), Target{Driver: tt.driver, Node: "cp3", Address: "10.0.0.9", ControlPlane: "cp1"})
			if (err == nil) != tt.effect {
				t.Error(err)
			}
		})
	}
}

// asking is a driver with which cp1 asks its own etcd, and cp3's.
type asking struct {
	own, other         error
	ownTakes           time.Duration
	otherTakes, beside time.Duration // in turn
	called             []string
}

func (a *asking) Run(_ context.Context, _ string, argv ...string) (string, error) {
	if slices.Contains(argv, "https://127.0.0.1:2379") {
		time.Sleep(a.ownTakes)
		return "", a.own
	}
	time.Sleep(a.otherTakes)
	a.otherTakes, a.beside = a.beside, a.otherTakes
	return "", a.other
}

// A link that loses packets makes late what crosses it, and nothing else.
func TestSlowAnswers(t *testing.T) {
	const at, late = 50 * time.Millisecond, 400 * time.Millisecond
	lost := errors.New("context deadline exceeded")
	for _, tt := range []struct {
		name        string
		driver      asking
		slow, known bool
	}{
		{"most were sent again", asking{ownTakes: at, otherTakes: late, beside: at}, true, true},
		{"few were sent again", asking{ownTakes: at, otherTakes: at, beside: late}, false, true},
		{"all were lost", asking{ownTakes: at, other: lost, otherTakes: late, beside: late}, true, true},
		{"all come at once", asking{ownTakes: at, otherTakes: at, beside: at}, false, true},
		{"they are refused at once", asking{ownTakes: at, other: errors.New("refused")}, false, true},
		{"the computer is slow", asking{ownTakes: late, otherTakes: late, beside: late}, false, true},
		{"nobody can ask", asking{own: lost, ownTakes: late, other: lost, otherTakes: late, beside: late}, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := slowAnswers(t.Context(), Target{Driver: &tt.driver, Node: "cp3", Address: "10.0.0.9", ControlPlane: "cp1"})
				if _, gone := errors.AsType[absence](err); (err == nil) != tt.slow || gone != (!tt.slow && tt.known) {
					t.Error(err)
				}
			})
		})
	}
}

func (a *asking) Labctl(_ context.Context, args ...string) (string, error) {
	a.called = append(a.called, strings.Join(args, " "))
	return "", nil
}

// A member is down when another control plane, which can ask, gets no answer. One that is not proven down is never made anew.
func TestMemberDown(t *testing.T) {
	lost := errors.New("connection lost")
	for _, tt := range []struct {
		name       string
		own, other error
		down       bool
		calls      string
	}{
		{"healthy", nil, nil, false, ""},
		{"down", nil, lost, true, "rejoin cp3"},
		{"nobody can ask", lost, lost, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				driver := &asking{own: tt.own, other: tt.other}
				s := Target{Driver: driver, Node: "cp3", Address: "10.0.0.9", ControlPlane: "cp1"}
				if err := memberDown(t.Context(), s); (err == nil) != tt.down {
					t.Error(err)
				}
				err := etcdDataCorrupt.Restore(t.Context(), s)
				if got := strings.Join(driver.called, "; "); got != tt.calls || (err != nil) != (tt.own != nil) {
					t.Errorf("restore called %q: %v", got, err)
				}
			})
		})
	}
}

// A join that is at work keeps its token until it has ended.
func TestForgetJoinByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		driver := &joining{looks: 3}
		if err := forgetJoinByHand(t.Context(), targetOf(learnerLagging, driver)); err != nil || driver.looks != 0 || !driver.deleted {
			t.Errorf("%d looks before it ends, token deleted: %v; %v", driver.looks, driver.deleted, err)
		}
	})
}

// joining is a driver of a node whose join by hand ends after some looks.
type joining struct {
	looks   int
	deleted bool
}

func (j *joining) Run(_ context.Context, _ string, argv ...string) (string, error) {
	if slices.Contains(argv, byHand) && j.looks > 0 {
		j.looks--
		return "", errors.New("exit status 1")
	}
	return "", nil
}

func (j *joining) Labctl(context.Context, ...string) (string, error) {
	j.deleted = j.looks == 0
	return "", nil
}
