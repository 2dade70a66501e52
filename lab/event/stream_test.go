package event

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

type recorder struct {
	events []Event
	closed int
	err    error
}

func (r *recorder) Emit(e Event) { r.events = append(r.events, e) }
func (r *recorder) Close() error { r.closed++; return r.err }

func (r *recorder) states() string {
	var all []string
	for _, e := range r.events {
		all = append(all, fmt.Sprintf("%v %s %s", e.Elapsed, e.State, e.Detail))
	}
	return strings.Join(all, "\n")
}

func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{}
		s := NewStream(rec)
		st := s.Start("cp1", "kubeadm init", time.Minute)
		time.Sleep(12 * time.Second)
		st.Progress("pulling images")
		time.Sleep(21 * time.Second)
		_ = st.End(nil)
		time.Sleep(time.Hour)
		want := "0s started \n10s progress still running\n12s progress pulling images\n" +
			"22s progress still running: pulling images\n32s progress still running: pulling images\n33s done "
		if got := rec.states(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		for _, e := range rec.events {
			if e.Limit != time.Minute || e.Node != "cp1" || e.Phase != "kubeadm init" {
				t.Errorf("incomplete event %+v", e)
			}
		}
	})
}

func TestHeartbeatSaysWhatIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{}
		st := NewStream(rec).Start("", "proof", 0)
		st.Progress("CoreDNS running")
		st.Waiting(errors.New("0 of 2 pods ready"))
		time.Sleep(5 * time.Second)
		st.Waiting(errors.New("1 of 2 pods ready\n" + token))
		time.Sleep(6 * time.Second)
		st.Progress("pods reach pods")
		time.Sleep(11 * time.Second)
		_ = st.End(nil)
		want := "0s started \n0s progress CoreDNS running\n10s progress CoreDNS running: waiting: 1 of 2 pods ready; abcdef.***\n" +
			"11s progress pods reach pods\n21s progress still running: pods reach pods\n22s done "
		if got := rec.states(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if rec.events[2].heartbeat {
			t.Error("what is waited for is news")
		}

		rec = &recorder{}
		st = NewStream(rec).Start("", "API server", 0)
		st.Waiting(errors.New("connection refused"))
		time.Sleep(11 * time.Second)
		_ = st.End(nil)
		if got, want := rec.states(), "0s started \n10s progress waiting: connection refused\n11s done "; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

func TestOnlyTheFirstEndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{}
		st := NewStream(rec).Start("cp1", "kubeadm init", 0)
		failure := errors.New("100% failed with " + token)
		if err := st.End(failure); err != failure {
			t.Errorf("End returned %v", err)
		}
		if err := st.End(nil); err != nil {
			t.Errorf("End returned %v", err)
		}
		st.EndWith("late")
		st.Progress("late")
		if got, want := rec.states(), "0s started \n0s failed 100% failed with abcdef.***"; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

func TestHeartbeatRepeatsNoSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{}
		st := NewStream(rec).Start("cp1", "read key", 0)
		_, tail, _ := strings.Cut(rsaKey, "\n")
		st.Progress("%s", tail) // only its last line tells that it is a key
		time.Sleep(11 * time.Second)
		_ = st.End(nil)
		if got := rec.states(); strings.Contains(got, "MIIE") || !strings.Contains(got, "still running: ***") {
			t.Errorf("got\n%s", got)
		}
	})
}

func TestStreamClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("disk full")
		a, b := &recorder{err: full}, &recorder{}
		s := NewStream(a, b)
		st := s.Start("cp1", "kubeadm init", 0)
		if err := s.Close(); !errors.Is(err, full) {
			t.Errorf("Close returned %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("second Close returned %v", err)
		}
		time.Sleep(time.Minute)
		st.Progress("late")
		_ = st.End(nil)
		_ = s.Start("cp2", "late", 0).End(nil)
		if a.closed != 1 || b.closed != 1 || len(b.events) != 1 {
			t.Errorf("closed %d and %d times, %d events", a.closed, b.closed, len(b.events))
		}
	})
}

func TestConcurrentSteps(t *testing.T) {
	const nodes, notes = 8, 50
	var plainOut, jsonOut bytes.Buffer
	s := NewStream(Plain(&plainOut), JSON(&jsonOut), Terminal(&bytes.Buffer{}, nil), Summary(&bytes.Buffer{}))
	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() {
			st := s.Start(fmt.Sprintf("cp%d", i), "kubeadm join", time.Minute)
			for n := range notes {
				st.Progress("note %d", n)
			}
			_ = st.End(nil)
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(plainOut.String(), "\n"); n != nodes*(notes+2) {
		t.Errorf("%d plain lines", n)
	}
	last := time.Time{}
	for in := bufio.NewScanner(&jsonOut); in.Scan(); {
		var e Event
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if e.Time.Before(last) {
			t.Errorf("%v comes after %v", e.Time, last)
		}
		last = e.Time
	}
}

func TestEventJSON(t *testing.T) {
	tests := []struct {
		event Event
		want  string
	}{
		{
			Event{Time: time.Unix(0, 0).UTC(), Phase: "fetch image", State: Started},
			`{"time":"1970-01-01T00:00:00Z","phase":"fetch image","state":"started"}`,
		},
		{
			Event{Time: time.Unix(0, 0).UTC(), Node: "cp1", Phase: "kubeadm init", State: Done, Detail: "ok", Elapsed: 8500 * time.Millisecond, Limit: 5 * time.Minute},
			`{"time":"1970-01-01T00:00:00Z","node":"cp1","phase":"kubeadm init","state":"done","detail":"ok","elapsed":8.5,"limit":300}`,
		},
	}
	for _, tt := range tests {
		data, err := json.Marshal(tt.event)
		if err != nil || string(data) != tt.want {
			t.Errorf("got %s, %v; want %s", data, err, tt.want)
		}
		var back Event
		if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, tt.event) {
			t.Errorf("read back %+v, %v", back, err)
		}
	}
}
