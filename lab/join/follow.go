package join

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"k8slab/lab/event"
	"k8slab/lab/symptom"
)

// ErrNoJoin is returned where no join has run.
var ErrNoJoin = errors.New("no join has run on this machine")

// Follow calls emit with each event line of the present series of attempts, from the given line on (1 is the first), as the unit writes
// them. It returns the series' Outcome when the unit has ended, and works for a series that has ended already, too. For a unit that died
// without an Outcome it returns one that says so.
func Follow(ctx context.Context, m Machine, from int, emit func(line []byte) error) (Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed, err := m.watchState(ctx)
	if err != nil {
		return Outcome{}, err
	}
	ended, err := m.unitEnd(ctx)
	if err != nil {
		return Outcome{}, err
	}
	events := &lineReader{path: m.Path(eventsFile), skip: from - 1}
	defer events.close()
	for running := true; running; {
		select {
		case <-ctx.Done():
			return Outcome{}, context.Cause(ctx)
		case <-ended:
			running = false
		case <-changed:
		}
		if err := events.copy(emit); err != nil {
			return Outcome{}, err
		}
	}
	return m.outcome(ctx, events)
}

// outcome reads the Outcome of a unit that has ended.
func (m Machine) outcome(ctx context.Context, events *lineReader) (o Outcome, err error) {
	err = m.readJSON(outcomeFile, &o)
	if !errors.Is(err, os.ErrNotExist) {
		return o, err
	}
	if events.file == nil {
		return o, ErrNoJoin
	}
	units, err := m.systemd(ctx, JoinUnit)
	if err != nil {
		return o, err
	}
	return died(units[JoinUnit], events.last), nil
}

// died is the Outcome of a unit that left none.
func died(u unit, lastEvent []byte) Outcome {
	var last event.Event
	_ = json.Unmarshal(lastEvent, &last) // without one the phase is not known
	how := "it was killed, or the machine restarted"
	o := Outcome{ExitCode: -1, Phase: Phase(last.Phase), Elapsed: last.Elapsed}
	switch u["Result"] {
	case "oom-kill":
		o.Symptom, how = symptom.OutOfMemory, "the kernel killed it for want of memory"
	case "", "success":
	default:
		how = fmt.Sprintf("systemd says: %s, status %s", u["Result"], u["ExecMainStatus"])
	}
	o.Evidence = fmt.Sprintf("the join's process (%s) ended without a result, last seen in %s: %s", JoinUnit, last.Phase, how)
	o.Hint = "journalctl -u " + JoinUnit + "; if it was to become a control plane, look for a learner that it left; then join again"
	return o
}

// unitEnd is closed when the unit has ended, at once when it does not run.
func (m Machine) unitEnd(ctx context.Context) (<-chan struct{}, error) {
	units, err := m.systemd(ctx, JoinUnit)
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	pid, _ := strconv.Atoi(units[JoinUnit]["MainPID"])
	if !(Facts{JoinUnit: units[JoinUnit]["ActiveState"]}).Running() || pid == 0 {
		close(ended)
		return ended, nil
	}
	return ended, watchProcess(ctx, pid, ended)
}

// watchProcess closes ended when a process, not a child of this one, has ended.
func watchProcess(ctx context.Context, pid int, ended chan<- struct{}) error {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		close(ended)
		return nil
	}
	if err != nil {
		return fmt.Errorf("watch process %d: %w", pid, err)
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	raw, err := f.SyscallConn()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = f.Close() })
	go func() {
		defer stop()
		defer f.Close()
		// The process's end makes its descriptor readable.
		err := raw.Read(func(fd uintptr) bool {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			return err == nil && n > 0
		})
		if err == nil {
			close(ended)
		}
	}()
	return nil
}

// rereadEvery is how often the events are read where the kernel has no watches left: all containers of a host share a limit.
const rereadEvery = 200 * time.Millisecond

// watchState sends a signal at each change of the state directory, and one at the beginning. A signal that waits may stand for several
// changes.
func (m Machine) watchState(ctx context.Context) (<-chan struct{}, error) {
	dir := m.Path(stateDir)
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoJoin
	}
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	tell := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		go reread(ctx, tell)
		return changed, nil
	}
	f := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_MODIFY|unix.IN_MOVED_TO); err != nil {
		go reread(ctx, tell)
		return changed, f.Close()
	}
	stop := context.AfterFunc(ctx, func() { _ = f.Close() })
	go func() {
		defer stop()
		defer f.Close()
		buf := make([]byte, 64<<10)
		for {
			if _, err := f.Read(buf); err != nil {
				return
			}
			tell()
		}
	}()
	return changed, nil
}

func reread(ctx context.Context, do func()) {
	ticker := time.NewTicker(rereadEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}

// lineReader reads the lines of a file that grows.
type lineReader struct {
	path string
	skip int // lines
	file *os.File
	part []byte
	last []byte
}

// copy calls emit with every whole line that the file has gained.
func (r *lineReader) copy(emit func([]byte) error) error {
	if r.file == nil {
		f, err := os.Open(r.path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		r.file = f
	}
	data, err := io.ReadAll(r.file)
	if err != nil {
		return err
	}
	r.part = append(r.part, data...)
	for {
		line, rest, whole := bytes.Cut(r.part, []byte("\n"))
		if !whole {
			return nil
		}
		r.part, r.last = rest, line
		if r.skip > 0 {
			r.skip--
			continue
		}
		if err := emit(line); err != nil {
			return err
		}
	}
}

func (r *lineReader) close() {
	if r.file != nil {
		_ = r.file.Close()
	}
}

// outcomeLine is the last line of a followed join.
type outcomeLine struct {
	Outcome *Outcome `json:"outcome"`
}

// OutcomeLine is the line that ends the output of a follower: {"outcome":{…}}.
func OutcomeLine(o Outcome) ([]byte, error) { return json.Marshal(outcomeLine{&o}) }

// ParseLine reads a line of a follower's output: an event, or at the end the Outcome.
func ParseLine(line []byte) (event.Event, *Outcome, error) {
	var end outcomeLine
	if err := json.Unmarshal(line, &end); err != nil {
		return event.Event{}, nil, fmt.Errorf("read a join's events: %w", err)
	}
	if end.Outcome != nil {
		return event.Event{}, end.Outcome, nil
	}
	var e event.Event
	err := json.Unmarshal(line, &e)
	return e, nil, err
}
