package join

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"k8slab/lab/atomicfile"
)

// Request is a series of attempts, as it travels to the unit that makes them.
type Request struct {
	Config        string        `json:"config"` // the JoinConfiguration, complete, with its secrets
	Node          string        `json:"node"`
	First         int           `json:"first"` // number of the first attempt; 1 begins a new series, another continues one
	Policy        Policy        `json:"policy"`
	Ready         time.Duration `json:"ready"` // as Job's
	MemberRemoved bool          `json:"memberRemoved"`
	Login         string        `json:"login"` // USER@HOST of a control plane; "" is none
	// Peers and Known are what the configuration does not say of the target.
	Peers []string          `json:"peers,omitempty"`
	Known map[string]string `json:"known,omitempty"`
}

// stopLimit is what systemd gives the unit to end when somebody stops it: it may have to wait until a learner is promoted.
const stopLimit = 15 * time.Minute

// Start starts the series in a unit of its own, so that nothing that happens to this process or its connection ends it, and returns when it
// runs. While another runs, nothing is started: the caller follows that one, and attached says so. argv is the command that calls
// RunRequest.
func Start(ctx context.Context, m Machine, r Request, argv []string) (attached bool, err error) {
	unlock, err := m.lockStart()
	if err != nil {
		return false, err
	}
	defer unlock()
	units, err := m.systemd(ctx, JoinUnit)
	if err != nil {
		return false, err
	}
	if (Facts{JoinUnit: units[JoinUnit]["ActiveState"]}).Running() {
		return true, nil
	}
	if err := m.makeReady(r); err != nil {
		return false, err
	}
	if argv, err = m.lasting(argv); err != nil {
		return false, errors.Join(fmt.Errorf("start %s: %w", JoinUnit, err), m.sweepSecrets())
	}
	_, _ = m.Run(ctx, "systemctl", "reset-failed", JoinUnit) // of one that was killed; mostly there is none
	if _, err := m.Run(ctx, unitCommand(argv)...); err != nil {
		return false, errors.Join(fmt.Errorf("start %s: %w", JoinUnit, err), m.sweepSecrets(), remove(m.Path(unitProgram)))
	}
	return false, nil
}

// lasting is the command with a program that stays as long as the unit needs it: an installed one, or a copy, because the directory of the
// login that it was brought to may go any time. The shell starts the copy: SELinux does not let systemd itself start a program from there.
func (m Machine) lasting(argv []string) ([]string, error) {
	if len(argv) == 0 || !path.IsAbs(argv[0]) || slices.Contains(programDirs, path.Dir(argv[0])) {
		return argv, nil
	}
	program, err := os.ReadFile(m.Path(argv[0]))
	if err == nil {
		err = atomicfile.Write(m.Path(unitProgram), 0o700, program)
	}
	return append([]string{"/bin/sh", "-c", `exec "$0" "$@"`, unitProgram}, argv[1:]...), err
}

// makeReady leaves the state of a series that has not begun.
func (m Machine) makeReady(r Request) error {
	if err := os.MkdirAll(m.Path(stateDir), 0o700); err != nil {
		return err
	}
	err := errors.Join(m.sweepSecrets(), remove(m.Path(outcomeFile)))
	if r.First <= 1 {
		err = errors.Join(err, m.beginSeries())
	}
	if err != nil {
		return err
	}
	return m.writeJSON(requestFile, r)
}

// unitCommand starts the unit. Stopping it signals only the engine, which ends kubeadm when that is safe; whatever ends it, the secrets go.
func unitCommand(argv []string) []string {
	command := []string{
		"systemd-run", "--quiet", "--unit=" + JoinUnit, "--service-type=exec", "--description=join this machine to a Kubernetes cluster",
		"--property=KillMode=mixed", fmt.Sprintf("--property=TimeoutStopSec=%d", int(stopLimit.Seconds())), "--property=UMask=0077",
		"--property=ExecStopPost=-/bin/rm -f " + requestFile + " " + kubeadmConfig + " " + unitProgram,
	}
	if agent := os.Getenv("SSH_AUTH_SOCK"); agent != "" {
		command = append(command, "--setenv=SSH_AUTH_SOCK="+agent)
	}
	return append(append(command, "--"), argv...)
}

// lockStart lets one process at a time decide whether a unit runs.
func (m Machine) lockStart() (unlock func(), err error) {
	lock := m.Path(startLock)
	if err := os.MkdirAll(filepath.Dir(lock), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(lock, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", startLock, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}
