package join

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeUnit is systemd with one transient unit, whose process is a real one.
type fakeUnit struct {
	*scenery
	mu      sync.Mutex
	process *exec.Cmd
	result  string
	starts  [][]string
	work    func() // what the unit does; nil: nothing, until it is ended
	t       *testing.T
}

func newFakeUnit(t *testing.T, kubeadm string) *fakeUnit {
	u := &fakeUnit{scenery: newScenery(t, false, kubeadm), result: "success", t: t}
	run := u.Run
	u.Run = func(ctx context.Context, argv ...string) (string, error) {
		switch {
		case argv[0] == "systemd-run":
			return "", u.start(argv)
		case strings.HasSuffix(strings.Join(argv, " "), " "+JoinUnit):
			return u.show(), nil
		}
		return run(ctx, argv...)
	}
	u.answer("systemctl reset-failed "+JoinUnit, "")
	u.engine.Machine = u.Machine
	t.Cleanup(u.end)
	return u
}

func (u *fakeUnit) start(argv []string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.process != nil {
		return errors.New("unit exists")
	}
	u.starts = append(u.starts, argv)
	u.process = exec.Command("sleep", "60")
	if err := u.process.Start(); err != nil {
		return err
	}
	if u.work != nil {
		go func() {
			u.work()
			u.end()
		}()
	}
	return nil
}

// end ends the unit's process, whatever it was about to do.
func (u *fakeUnit) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.process != nil {
		_ = u.process.Process.Kill()
		_ = u.process.Wait()
		u.process = nil
	}
}

func (u *fakeUnit) show() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.process == nil {
		return "Id=" + JoinUnit + "\nActiveState=inactive\nMainPID=0\nResult=" + u.result + "\n"
	}
	return fmt.Sprintf("Id=%s\nActiveState=active\nMainPID=%d\nResult=success\n", JoinUnit, u.process.Process.Pid)
}

// request is one attempt at the scenery's cluster.
func (u *fakeUnit) request() Request {
	text, err := u.job.Config.YAML()
	if err != nil {
		u.t.Fatal(err)
	}
	return Request{Config: string(text), Node: "w1", First: 1, Policy: Policy{Attempts: 1}, Ready: 200 * time.Millisecond}
}

func (u *fakeUnit) lines(from int) ([]string, Outcome, error) {
	var lines []string
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	o, err := Follow(ctx, u.Machine, from, func(line []byte) error {
		lines = append(lines, string(line))
		return nil
	})
	return lines, o, err
}

// A start while a join runs starts nothing and disturbs nothing.
func TestASecondStartAttaches(t *testing.T) {
	u := newFakeUnit(t, "")
	if attached, err := Start(t.Context(), u.Machine, u.request(), []string{"labnode"}); err != nil || attached {
		t.Fatal(attached, err)
	}
	u.write(eventsFile, "{}\n")
	u.write(requestFile, "not yet read")
	other := u.request()
	other.Node = "other"
	attached, err := Start(t.Context(), u.Machine, other, []string{"labnode"})
	if err != nil || !attached || len(u.starts) != 1 {
		t.Errorf("attached %t, %d starts, %v", attached, len(u.starts), err)
	}
	if text, _ := u.Read(requestFile); text != "not yet read" || !u.Exists(eventsFile) {
		t.Error("the running join's files were touched")
	}
}

func TestTheUnit(t *testing.T) {
	u := newFakeUnit(t, "")
	t.Setenv("SSH_AUTH_SOCK", "/run/agent")
	if _, err := Start(t.Context(), u.Machine, u.request(), []string{"/usr/bin/labnode", "join", "--run"}); err != nil {
		t.Fatal(err)
	}
	command := strings.Join(u.starts[0], " ")
	for _, want := range []string{
		"--unit=" + JoinUnit, "KillMode=mixed", "TimeoutStopSec=900", "ExecStopPost=-/bin/rm -f " + requestFile + " " + kubeadmConfig, "--setenv=SSH_AUTH_SOCK=/run/agent",
		"-- /usr/bin/labnode join --run",
	} {
		if !strings.Contains(command, want) {
			t.Errorf("%q is not in %s", want, command)
		}
	}
	if strings.Contains(command, "0123456789abcdef") {
		t.Error("a secret is on the command line")
	}
	if info, err := os.Stat(u.Path(requestFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the request: %v, %v", info, err)
	}
}

// A labnode in a directory of the login may go while the unit runs: the unit has a copy, which goes with it.
func TestTheUnitOfALabnodeThatIsNotInstalled(t *testing.T) {
	u := newFakeUnit(t, "")
	u.write("/home/ops/.cache/k8slab/labnode-1", "a program")
	if _, err := Start(t.Context(), u.Machine, u.request(), []string{"/home/ops/.cache/k8slab/labnode-1", "join", "--run"}); err != nil {
		t.Fatal(err)
	}
	command := strings.Join(u.starts[0], " ")
	if !strings.Contains(command, kubeadmConfig+" "+unitProgram+" ") || !strings.HasSuffix(command, `exec "$0" "$@" `+unitProgram+" join --run") {
		t.Errorf("%s", command)
	}
	if text, _ := u.Read(unitProgram); text != "a program" {
		t.Errorf("%q", text)
	}
	if info, err := os.Stat(u.Path(unitProgram)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestAStartThatFailsLeavesNoSecret(t *testing.T) {
	u := newFakeUnit(t, "")
	run := u.Run
	u.Run = func(ctx context.Context, argv ...string) (string, error) {
		if argv[0] == "systemd-run" {
			return "", exec.ErrNotFound
		}
		return run(ctx, argv...)
	}
	if _, err := Start(t.Context(), u.Machine, u.request(), nil); !errors.Is(err, exec.ErrNotFound) || u.Exists(requestFile) {
		t.Errorf("%v", err)
	}
}
