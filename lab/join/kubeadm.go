package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8slab/lab/event"
	"k8slab/lab/symptom"
)

// kubeadmRun is one run of kubeadm: what it and its surroundings said, and where it stands.
type kubeadmRun struct {
	engine *Engine
	step   *event.Step
	shown  *repeats

	phase    Phase
	started  bool // kubeadm has started kubelet: from here on what kubelet says is about this join
	window   learnerWindow
	out      output
	cause    symptom.ID // certain
	evidence string
}

// kubeadm runs kubeadm join and watches it. It ends it early only for a cause that is certain, for ctx or for a budget beyond kubeadm's own
// time-outs, and never between the adding and the promotion of its etcd learner.
func (e *Engine) kubeadm(ctx context.Context, job *Job, o *Outcome) bool {
	o.Phase = PhaseKubeadm
	budget, err := job.Config.budget()
	if err != nil {
		o.Evidence = err.Error()
		return false
	}
	step := e.step(job, PhaseKubeadm, budget)
	run := &kubeadmRun{engine: e, step: step, shown: newRepeats(), phase: PhaseKubeadm}
	exit, why := e.runKubeadm(ctx, job, run, budget)
	o.Phase, o.Output = run.phase, run.out.text()
	o.ExitCode, o.Finished = exitCode(exit)
	if exit == nil {
		if err = e.Machine.markJoined(); err == nil {
			step.EndWith("")
			return true
		}
		o.Evidence = err.Error()
		_ = step.End(err)
		return false
	}
	run.judge(o, exit, why)
	_ = step.End(fmt.Errorf("%s: %s", cmp.Or(string(o.Symptom), string(run.phase)), o.Evidence))
	return false
}

// runKubeadm returns how kubeadm ended, nil for success, and why it was ended, nil when it ended by itself.
func (e *Engine) runKubeadm(ctx context.Context, job *Job, run *kubeadmRun, budget time.Duration) (exit, why error) {
	text, err := job.Config.YAML()
	if err != nil {
		return err, nil
	}
	if err := e.Machine.writePrivate(kubeadmConfig, text); err != nil {
		return err, nil
	}
	defer func() { _ = e.Machine.sweepKubeadm() }()
	log, err := e.openLog(job)
	if err != nil {
		return err, nil
	}
	defer log.Close()
	run.out.log = log
	around, cancel := context.WithCancel(ctx)
	defer cancel()
	journal := e.followJournal(around)
	argv := e.Kubeadm
	if len(argv) == 0 {
		argv = []string{cmp.Or(e.Machine.Find("kubeadm"), "kubeadm")}
	}
	// At -v=5 kubeadm says why discovery and etcd fail, and when it adds and promotes its learner.
	p, err := startProcess(append(argv[:len(argv):len(argv)], "join", "--config", e.Machine.Path(kubeadmConfig), "-v=5"))
	if err != nil {
		return err, nil
	}
	defer p.close()
	if job.Target.ControlPlane {
		go e.restartKubelet(around, job.Config.apiPort(), run.step)
	}
	return run.watch(ctx, p, journal, budget)
}

// sweepKubeadm removes the files that kubeadm needs only while it runs: its configuration, and kubelet's bootstrap kubeconfig, which
// contains the token. kubeadm removes that one itself only if it gets far enough.
func (m Machine) sweepKubeadm() error {
	return errors.Join(remove(m.Path(kubeadmConfig)), remove(m.Path(bootstrapConf)), m.removeBridge())
}

func (e *Engine) openLog(job *Job) (*os.File, error) {
	path := e.Machine.Path(kubeadmLog)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(log, "== attempt %d, %s\n", job.Number, time.Now().UTC().Format(time.RFC3339))
	}
	return log, err
}

var errCertain = errors.New("its failure is certain")

// watch follows kubeadm to its end.
func (r *kubeadmRun) watch(ctx context.Context, p *process, journal <-chan journalLine, budget time.Duration) (exit, why error) {
	timer := time.NewTimer(budget)
	defer timer.Stop()
	var kill <-chan time.Time // when SIGTERM was not enough
	interrupted := ctx.Done()
	lines := p.lines
	for {
		select {
		case raw, ok := <-lines:
			if ok {
				r.said(raw)
			} else {
				lines = nil
			}
		case l, ok := <-journal:
			if ok {
				r.journal(l)
			} else {
				journal = nil
			}
		case <-interrupted:
			interrupted = nil
			why = cmp.Or(why, context.Cause(ctx))
		case <-timer.C:
			why = cmp.Or(why, fmt.Errorf("its budget of %s ran out, which is longer than all of kubeadm's own time-outs", budget))
		case <-kill:
			if !r.window.open() {
				_ = p.cmd.Process.Kill()
			}
		case exit = <-p.exited:
			p.finish(r.said)
			return exit, why
		}
		if r.cause != "" && why == nil {
			why = errCertain
		}
		if why != nil && kill == nil && !r.window.open() && p.end(r.said, func() bool { return !r.window.open() }) {
			kill = time.After(termGrace)
		} else if why != nil && kill == nil {
			r.progress(fmt.Sprintf("%v, but kubeadm is not ended before its etcd learner is promoted: nothing else would finish or remove it", why))
		}
	}
}

// said takes in a line of kubeadm's.
func (r *kubeadmRun) said(raw string) {
	l := parseLine(raw)
	r.out.add(raw, l)
	r.window.see(l.text)
	if l.phase != "" && (l.level == 0 || l.phase == phaseEtcd || l.phase == phaseDiscovery) {
		r.phase = l.phase
	}
	if strings.Contains(l.text, "Starting the kubelet") {
		r.started = true
	}
	if l.progress() {
		r.progress(l.text)
	}
	r.certain(l.text, nil)
}

// askedAgain are causes that a refusal by the API server suggests, which may be over at kubelet's next try: a server that has just started
// refuses everything until it has read its roles and tokens. A joining control plane's own API server is such a server.
var askedAgain = []symptom.ID{symptom.BootstrapRBACForbidden, symptom.TokenExpiredOrInvalid}

// journal takes in a message of kubelet or containerd. Until kubeadm starts kubelet, its messages are not about this join; something else
// may have started it.
func (r *kubeadmRun) journal(l journalLine) {
	if l.unit == "kubelet" && !r.started {
		if strings.Contains(l.text, "failed to load kubelet config file") || strings.Contains(l.text, "failed to load Kubelet config file") {
			r.engine.Machine.bridgeKubelet(r.progress)
		}
		return
	}
	if l.news() {
		r.progress(l.String())
	}
	r.certain(l.String(), askedAgain)
}

func (r *kubeadmRun) progress(text string) {
	if text = r.shown.show(text); text != "" {
		r.step.Progress("%s", r.out.redact(text))
	}
}

// certain keeps the first cause that no waiting cures, except those of which kubelet asks again. "Too many learners" is no such cause once
// our own learner is in the cluster: then it is the learner that is meant.
func (r *kubeadmRun) certain(text string, again []symptom.ID) {
	if r.cause != "" || r.engine.Certain == nil {
		return
	}
	id, ok := r.engine.Certain(text)
	if !ok || slices.Contains(again, id) || id == symptom.EtcdTooManyLearners && r.window.added() {
		return
	}
	r.cause, r.evidence = id, text
}

// judge says why kubeadm failed: by the cause that is certain, or by the likeliest that its output shows.
func (r *kubeadmRun) judge(o *Outcome, exit, why error) {
	switch {
	case r.cause != "":
		o.Symptom, o.Evidence = r.cause, r.evidence
	case errors.Is(exit, exec.ErrNotFound) || errors.Is(exit, os.ErrNotExist) || o.ExitCode == 127:
		o.Symptom, o.Evidence = symptom.KubeBinariesMissing, cmp.Or(verdictOf(r.out.tail), exit.Error())
	case why == nil && killed(exit):
		o.Killed = true
		o.Evidence = fmt.Sprintf("somebody killed kubeadm in %s: %v", r.phase, exit) // what it had said until then is no cause
	default:
		o.Evidence = cmp.Or(verdictOf(r.out.tail), exit.Error())
		if r.engine.Causes != nil {
			if causes := r.engine.Causes(r.out.text()); len(causes) > 0 {
				o.Symptom = causes[0]
			}
		}
	}
	if why != nil && !errors.Is(why, errCertain) {
		o.Evidence = fmt.Sprintf("kubeadm was ended in %s: %v; its last message: %s", r.phase, why, o.Evidence)
	}
}

func killed(exit error) bool {
	e, ok := errors.AsType[*exec.ExitError](exit)
	if !ok {
		return false
	}
	status, ok := e.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

// verdictOf is the line of kubeadm's output that says why it failed.
func verdictOf(lines []string) string {
	for _, mark := range []string{"[ERROR ", "error execution phase", "error: ", "error:"} {
		for _, l := range lines {
			if strings.Contains(l, mark) {
				return strings.TrimSpace(parseLine(l).text)
			}
		}
	}
	if len(lines) > 0 {
		return strings.TrimSpace(parseLine(lines[len(lines)-1]).text)
	}
	return ""
}
