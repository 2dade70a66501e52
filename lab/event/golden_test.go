package event

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8slab/lab/golden"
)

func TestMain(m *testing.M) {
	if os.Getenv("EVENT_TEST_BROKEN_STDOUT") != "" {
		os.Exit(writeToBrokenStdout())
	}
	time.Local = time.UTC
	os.Exit(m.Run())
}

const (
	certKey = "6bd1a5a1b3a3d8f1e0c9b7a65443322110ffeeddccbbaa99887766554433221f"
	caHash  = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	token   = "abcdef.0123456789abcdef"
	secret  = "0123456789abcdef"
)

const joinError = "exit status 1\n" +
	"error execution phase preflight: couldn't validate the identity of the API Server\n" +
	"\x1b[31m\tkubeadm join 10.17.0.10:6443 --token " + token + " \\\r\n" +
	"\t--discovery-token-ca-cert-hash " + caHash + " --certificate-key " + certKey + "\x1b[0m\n\n"

// runLab is a short run with everything in it that a view has to show. look is
// called at the moments worth looking at.
func runLab(s *Stream, look func(moment string)) {
	image := s.Start("", "fetch image", 2*time.Minute)
	time.Sleep(1500 * time.Millisecond)
	image.Progress("%d of %d MiB", 212, 655)
	look("host alone, 1.5s")
	time.Sleep(2 * time.Second)
	image.EndWith("655 MiB <cached>")

	cp1 := s.Start("cp1", "create vm", 0)
	worker := s.Start("worker1", "create vm", 0)
	time.Sleep(3200 * time.Millisecond)
	_ = cp1.End(nil)
	cp1 = s.Start("cp1", "kubeadm init", 5*time.Minute)
	cp1.Progress("[wait-control-plane] Waiting for the kubelet to boot up the control plane\nas static Pods")
	time.Sleep(26 * time.Second)
	look("long steps, 26s into kubeadm init")
	worker.Progress("\x1b[2J\x1b[Hboot \u202emessage 日本語\a")
	look("hostile detail")
	_ = worker.End(nil)
	time.Sleep(50 * time.Second)
	_ = cp1.End(nil)

	cp2 := s.Start("cp2", "kubeadm join", 5*time.Minute)
	time.Sleep(4200 * time.Millisecond)
	_ = cp2.End(errors.New(joinError))
	look("failed")
	logs := s.Start("cp2", "collect logs", 0)
	time.Sleep(time.Second)
	_ = logs.End(nil)
	s.Start("worker1", "kubeadm join", time.Minute)
	time.Sleep(2 * time.Second)
}

func TestLineViews(t *testing.T) {
	tests := []struct {
		golden string
		sink   func(*strings.Builder) Sink
	}{
		{"plain.txt", func(b *strings.Builder) Sink { return Plain(b) }},
		{"events.jsonl", func(b *strings.Builder) Sink { return JSON(b) }},
		{"summary.txt", func(b *strings.Builder) Sink { return Summary(b) }},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b strings.Builder
				s := NewStream(tt.sink(&b))
				runLab(s, func(string) {})
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if strings.Contains(b.String(), secret) || strings.Contains(b.String(), certKey) {
					t.Error("a secret reached the view")
				}
				golden.Check(t, tt.golden, b.String())
			})
		})
	}
}

func TestTerminalFrames(t *testing.T) {
	tests := []struct {
		golden string
		width  int
	}{
		{"terminal-40.txt", 40},
		{"terminal-100.txt", 100},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scr := newScreen(t, tt.width)
				s := NewStream(Terminal(scr, func() int { return tt.width }))
				var b strings.Builder
				look := func(moment string) {
					synctest.Wait()
					b.WriteString("== " + moment + "\n" + scr.text())
				}
				runLab(s, look)
				look("before close")
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				look("after close")
				if scr.col != 0 || scr.row != len(scr.lines())-1 {
					t.Errorf("the cursor is left in row %d, column %d", scr.row, scr.col)
				}
				golden.Check(t, tt.golden, b.String())
			})
		})
	}
}
