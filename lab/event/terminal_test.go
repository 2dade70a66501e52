package event

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTerminalTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scr := newScreen(t, 60)
		s := NewStream(Terminal(scr, func() int { return 60 }))
		st := s.Start("cp1", "kubeadm init", time.Minute)
		time.Sleep(5*time.Second + time.Millisecond)
		synctest.Wait()
		if got := scr.lines()[0]; got != "cp1  5s/1m  kubeadm init" {
			t.Errorf("after 5s: %q", got)
		}
		_ = st.End(nil)
		writes := scr.writes
		time.Sleep(time.Minute)
		synctest.Wait()
		if scr.writes != writes {
			t.Errorf("%d writes while nothing changed", scr.writes-writes)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if scr.writes != writes {
			t.Error("wrote after Close")
		}
	})
}

func TestTerminalNarrowedWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		width := 60
		s := NewStream(Terminal(&b, func() int { return width }))
		defer s.Close()
		st := s.Start("cp1", "a phase with a long name", time.Minute)
		st.Progress("and a detail that goes on and on to the edge of it")
		b.Reset()
		width = 25
		st.Progress("x")
		if got := b.String(); !strings.HasPrefix(got, "\x1b[3A\r") {
			t.Errorf("a line of 60 columns takes 3 rows of 25, got %q", got)
		}
		_ = st.End(nil)
	})
}

func TestTerminalParallelStepsOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scr := newScreen(t, 80)
		s := NewStream(Terminal(scr, nil))
		defer s.Close()
		want := func(text string) {
			t.Helper()
			if got := scr.lines()[0]; got != text {
				t.Errorf("line %q, want %q", got, text)
			}
		}
		a := s.Start("cp1", "copy images", 0)
		b := s.Start("cp1", "install packages", 0)
		want("cp1  0s  install packages")
		_ = b.End(errors.New("no space left"))
		want("cp1  0s  copy images")
		_ = a.End(nil)
		want("cp1  failed 0.0s  install packages: no space left")
		_ = s.Start("cp1", "install packages", 0).End(nil)
		want("cp1  failed 0.0s  install packages: no space left") // above the line, for good
		if got := scr.lines()[1]; got != "cp1  done 0.0s  install packages" {
			t.Errorf("the line is %q", got)
		}
	})
}

func TestText(t *testing.T) {
	tests := []struct{ name, got, want string }{
		{"short", took(8500 * time.Millisecond), "8.5s"},
		{"rounds up to ten", took(9960 * time.Millisecond), "10s"},
		{"rounds up to a minute", took(59600 * time.Millisecond), "1m00s"},
		{"hours", took(62 * time.Minute), "1h02m"},
		{"limit", limitText(5 * time.Minute), "5m"},
		{"odd limit", limitText(90 * time.Second), "1m30s"},
		{"limit of hours", limitText(2 * time.Hour), "2h"},
		{"short limit", limitText(30 * time.Second), "30s"},
		{"no limit", running(time.Second, 0), "1s"},
		{"fits", cut("12345", 5), "12345"},
		{"cut", cut("123456", 5), "1234…"},
		{"cut wide", cut("日本語", 5), "日本…"},
		{"cut between cells", cut("日本語", 4), "日…"},
		{"combining", cut("e\u0301e\u0301", 2), "e\u0301e\u0301"},
		{"escape sequences", OneLine("\x1b[1;31mred\x1b[0m \x1b]0;title\x07\x1b7\u202e\x9b"), "red ?7?\ufffd"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}
