package join

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func started(t *testing.T, script string) *process {
	t.Helper()
	p, err := startProcess([]string{"sh", "-c", script})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		p.close()
	})
	return p
}

// What the process wrote before the signal is read before the signal is sent: a learner that it is just adding forbids it.
func TestEndReadsEverythingFirst(t *testing.T) {
	said := filepath.Join(t.TempDir(), "said")
	p := started(t, `echo '`+etcdLines.adding+`'; touch `+said+`; exec sleep 60`)
	for missing := true; missing; { // until it has written what nobody has read yet
		_, err := os.Stat(said)
		missing = err != nil
		time.Sleep(time.Millisecond)
	}
	var w learnerWindow
	if p.end(w.see, func() bool { return !w.open() }) {
		t.Error("it was ended while it adds its learner")
	}
	select {
	case err := <-p.exited:
		t.Fatalf("it has ended: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if w.see(etcdLines.promoted); !p.end(w.see, func() bool { return !w.open() }) {
		t.Error("it was not ended after the promotion")
	}
	if code, byItself := exitCode(<-p.exited); code != -1 || byItself {
		t.Errorf("exit code %d, by itself %t", code, byItself)
	}
}

func TestProcessLines(t *testing.T) {
	p := started(t, "echo out; echo err >&2; printf unfinished; exit 7")
	var got []string
	for s := range p.lines {
		got = append(got, s)
	}
	if code, byItself := exitCode(<-p.exited); code != 7 || !byItself || len(got) != 3 || got[0] != "out" || got[1] != "err" || got[2] != "unfinished" {
		t.Errorf("%q, exit code %d, by itself %t", got, code, byItself)
	}
}

// A child that keeps the output open does not keep the join waiting.
func TestFinishDoesNotWaitForChildren(t *testing.T) {
	p := started(t, "sleep 60 & echo $!")
	pid := <-p.lines
	<-p.exited
	begin := time.Now()
	p.finish(func(string) {})
	if took := time.Since(begin); took > 2*lastWords {
		t.Errorf("waited %s", took)
	}
	_ = syscall.Kill(atoi(t, pid), syscall.SIGKILL)
}

func atoi(t *testing.T, s string) (n int) {
	t.Helper()
	for _, c := range s {
		n = 10*n + int(c-'0')
	}
	return n
}

func TestParseJournal(t *testing.T) {
	tests := []struct {
		name, line string
		want       journalLine
		ok, news   bool
	}{
		{"kubelet", `{"MESSAGE":"E0301 10:11:12.1 7 x.go:1] \"Unable to register node\"","_SYSTEMD_UNIT":"kubelet.service"}`,
			journalLine{"kubelet", `E0301 10:11:12.1 7 x.go:1] "Unable to register node"`}, true, true},
		{"systemd about containerd", `{"MESSAGE":"containerd.service: Main process exited, code=killed, status=9/KILL","UNIT":"containerd.service","_SYSTEMD_UNIT":"init.scope"}`,
			journalLine{"containerd", "containerd.service: Main process exited, code=killed, status=9/KILL"}, true, true},
		{"bytes", `{"MESSAGE":[104,105,255],"_SYSTEMD_UNIT":"kubelet.service"}`, journalLine{"kubelet", "hi?"}, true, false},
		{"no news", `{"MESSAGE":"I0301 10:11:12.1 7 x.go:1] \"Starting\"","_SYSTEMD_UNIT":"kubelet.service"}`,
			journalLine{"kubelet", `I0301 10:11:12.1 7 x.go:1] "Starting"`}, true, false},
		{"no message", `{"_SYSTEMD_UNIT":"kubelet.service"}`, journalLine{}, false, false},
		{"no JSON", `-- Journal begins`, journalLine{}, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := parseJournal([]byte(tt.line))
			if ok != tt.ok || ok && (got != tt.want || got.news() != tt.news) {
				t.Errorf("%+v, %t, news %t", got, ok, got.news())
			}
		})
	}
}
