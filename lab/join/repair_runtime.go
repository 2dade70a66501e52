package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8slab/lab/wait"
)

// restartWaits are the longest times between two starts of the runtime: 5, 10, ... 30 s. An answer ends a wait at once.
var restartWaits = []time.Duration{5 * time.Second, 10 * time.Second, 15 * time.Second, 20 * time.Second, 25 * time.Second, 30 * time.Second}

func containerdBudget() time.Duration {
	sum := time.Duration(0)
	for _, w := range restartWaits {
		sum += w
	}
	return sum
}

// repairCRI brings the runtime to serve CRI with an image file system of some size. It never touches its state: what containerd's shims run
// goes on, and what it keeps of them in /run is theirs.
func repairCRI(ctx context.Context, p *preflight) (string, error) {
	r := p.runtime()
	u, err := p.units(ctx)
	switch {
	case err != nil:
		return "", err
	case r.unit == "":
		return "", refuse("which unit listens on "+r.socket+" is not known", r.restarting())
	case u.runtime.absent():
		return "", refuse(r.unit+" is not installed", "install "+r.unit)
	}
	var did []string
	if u.runtime.masked() {
		if err := p.m.unmask(ctx, u.runtime, r.service()); err != nil {
			return "", err
		}
		did = append(did, "unmasked "+r.unit)
	}
	if r.unit == "containerd" {
		changed, err := p.m.enableCRIPlugin()
		if err != nil {
			return "", err
		}
		if changed {
			did = append(did, "took cri out of disabled_plugins in "+containerdConfig)
		}
	}
	if _, err := p.m.Run(ctx, "systemctl", "enable", r.service()); err != nil {
		return "", err
	}
	starts, err := p.restarts(ctx, p.criServes)
	if err != nil {
		return "", err
	}
	did = append(did, fmt.Sprintf("restarted %s (%d)", r, starts))
	return strings.Join(did, ", "), nil
}

func (m Machine) enableCRIPlugin() (bool, error) {
	text, err := m.Read(containerdConfig)
	if err != nil {
		return false, nil // containerd's defaults enable it
	}
	enabled, changed := enableCRI(text)
	if !changed {
		return false, nil
	}
	return true, m.replace(containerdConfig, enabled)
}

// restarts starts the runtime anew, each time waiting longer for it to serve, and says how often.
func (p *preflight) restarts(ctx context.Context, serves func(context.Context) error) (int, error) {
	var last error
	r := p.runtime()
	for i, limit := range restartWaits {
		// A unit that failed too often is not started again before this.
		_, _ = p.m.Run(ctx, "systemctl", "reset-failed", r.service())
		_, started := p.m.Run(ctx, "systemctl", "restart", r.service())
		last = wait.For(ctx, r.String()+" to serve CRI", limit, 100*time.Millisecond, serves)
		if last == nil {
			return i + 1, nil
		}
		if ctx.Err() != nil {
			return i + 1, context.Cause(ctx)
		}
		last = cmp.Or(started, last) // a failed start says more than a failed question
	}
	return len(restartWaits), refuse(fmt.Sprintf("%s was restarted %d times: %v", r, len(restartWaits), last), "journalctl -u "+r.unit)
}

// criServes is what a wait for the runtime asks.
func (p *preflight) criServes(ctx context.Context) error {
	facts, err := p.m.talkCRI(ctx, p.runtime().socket)
	switch {
	case err != nil:
		return err
	case facts.problem != "":
		return errors.New(facts.problem)
	}
	if _, empty := errors.AsType[*emptyError](facts.imageFSError); empty { // it serves; what is mounted there is not its doing
		return nil
	}
	return facts.imageFSError
}
