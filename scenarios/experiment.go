package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"k8slab/lab/symptom"
)

// Options of an experiment.
type Options struct {
	Node     string            // "" is the last node of a role that the fault is for
	Evidence string            // directory for the diagnosis bundle of a failed experiment, saved before anything is undone; "" for none
	Record   Record            // says which faults are in the lab, in case the experiment is killed
	Progress func(step string) // is told of each step as it begins; may be nil
	Patience int               // how many times longer everything may take, for machines whose processors are emulated; 0 is once
	Tool     *Tool             // diagnoses and repairs instead of labctl; nil is labctl
}

// Budgets of the steps that wait. A healthy cluster may have to wait for a minute of back-off of flannel or CoreDNS.
const (
	effectBudget  = 3 * time.Minute
	nameBudget    = 30 * time.Second // kubelet and containerd log some errors only every 10 s
	healthyBudget = 4 * time.Minute
	goneBudget    = time.Minute
)

// Run is an experiment with one fault in a healthy lab: it injects the fault, waits for its effect, has the diagnosis name it, recovers, and
// proves that the cluster is as healthy as before and lost nothing. If the lab does not recover, Run restores it and brings it up again.
func (f Fault) Run(ctx context.Context, d Driver, o Options) Result {
	return Round{{Fault: f, Node: o.Node}}.Run(ctx, d, o)
}

// NotBegun is the result of a round that did not begin because the lab could not be made healthy.
func (r Round) NotBegun(why error) Result {
	result := r.result()
	result.Class, result.Reason = SetupFailed, why.Error()
	return result
}

// result is the result of a round that begins.
func (r Round) result() Result {
	var stories []string
	for _, p := range r {
		stories = append(stories, p.Fault.Story)
	}
	return Result{Fault: r.names(), Story: strings.Join(stories, "; "), Began: time.Now().UTC(), Recovery: []string{}}
}

// Run is an experiment with all faults of the round at the same time: it injects all and waits for the effect of each, the diagnosis must name
// one of them first, and all must recover.
func (r Round) Run(ctx context.Context, d Driver, o Options) Result {
	e := &experiment{round: r, options: o, result: r.result()}
	e.target.Driver = d
	class, err := e.inDirectory(ctx)
	e.result.Class = class
	if err != nil {
		e.result.Reason = err.Error()
	}
	e.result.Seconds = time.Since(e.result.Began).Seconds()
	return e.result
}

type experiment struct {
	round    Round
	options  Options
	faults   []placed
	target   Target // of the first fault; also used for what concerns the whole lab
	result   Result
	named    symptom.Finding // what the diagnosis says first of the fault
	misnamed error           // what a tool said instead of the fault
	written  []Injected      // in the record
	dir      string          // for files that recoveries need
	progress sync.Mutex      // of progress
}

// placed is a fault and the node that it is injected on.
type placed struct {
	Fault
	target Target
}

func (e *experiment) step(text string) {
	e.progress.Lock()
	defer e.progress.Unlock()
	if e.options.Progress != nil {
		e.options.Progress(text)
	}
}

// inDirectory runs the experiment with a directory that only its user can read. It is in the lab's state, so that `down` removes it after a kill.
func (e *experiment) inDirectory(ctx context.Context) (class Class, err error) {
	if e.options.Record.Path == "" {
		return e.inHealthyLab(ctx)
	}
	e.dir = filepath.Join(filepath.Dir(e.options.Record.Path), "fault-files")
	if err := errors.Join(os.RemoveAll(e.dir), os.Mkdir(e.dir, 0o700)); err != nil {
		return SetupFailed, err
	}
	class, err = e.inHealthyLab(ctx)
	return class, errors.Join(err, os.RemoveAll(e.dir))
}

func (e *experiment) inHealthyLab(ctx context.Context) (Class, error) {
	lab, err := e.survey(ctx)
	if err == nil && slices.ContainsFunc(e.round, func(p Placement) bool { return p.Fault.Upgrade != "" }) {
		e.target.Next, err = nextVersion(ctx, e.target)
	}
	if err == nil {
		err = e.place(lab.members)
	}
	if errors.Is(err, errNotApplicable) {
		return NotApplicable, err
	}
	if err != nil {
		return SetupFailed, err
	}
	if lab.unhealthy != nil {
		return SetupFailed, fmt.Errorf("the lab is not healthy before the fault: %w", lab.unhealthy)
	}
	before, err := e.remember(ctx)
	if err != nil {
		return SetupFailed, err
	}
	writes := e.watchWrites(ctx)
	class, err := e.enterFault(ctx)
	if err == nil {
		class, err = Failed, e.leaveFault(ctx)
	}
	if err = errors.Join(err, writes()); err == nil {
		err = e.prove(ctx, before)
	}
	if err != nil {
		e.salvage(ctx, before)
		if e.misnamed != nil {
			err = fmt.Errorf("%w; %w", e.misnamed, err)
		}
		return class, errors.Join(err, e.rescue(ctx))
	}
	if err := errors.Join(e.forget(ctx), e.options.Record.Forget(e.written...), e.options.Record.proven(lab.members)); err != nil {
		return Failed, err
	}
	if e.result.Repaired = true; e.misnamed != nil {
		return Failed, e.misnamed
	}
	return Passed, nil
}

// survey looks whether the lab is healthy, unless the experiment before has just proven that.
func (e *experiment) survey(ctx context.Context) (surveyed, error) {
	if members := e.options.Record.takeProof(); members != nil {
		return surveyed{members: members}, nil
	}
	e.step("healthy before")
	return survey(ctx, e.target)
}

// place finds the target of each fault.
func (e *experiment) place(members []Member) error {
	var nodes []string
	for _, p := range e.round {
		target, err := Target{Driver: e.target.Driver, Members: members, Next: e.target.Next}.of(p.Fault, p.Node)
		if err = errors.Join(err, p.Fault.canUpgrade(e.target)); err != nil {
			return err
		}
		e.faults = append(e.faults, placed{p.Fault, target})
		nodes = append(nodes, target.Node)
	}
	e.result.Node = strings.Join(nodes, "+")
	for i := range e.faults {
		e.faults[i].target = e.faults[i].target.beside(nodes)
		e.faults[i].target.patience = e.options.Patience
	}
	e.target = e.faults[0].target
	return compose(e.faults)
}

// enterFault injects the faults, waits for their effects, and has the diagnosis name one.
func (e *experiment) enterFault(ctx context.Context) (Class, error) {
	for _, f := range e.faults {
		if err := e.write(f); err != nil {
			return SetupFailed, err
		}
		if err := f.inject(ctx, f.target, e.stepOf(f)); err != nil {
			return SetupFailed, err
		}
	}
	begun := time.Now()
	// All at the same time, because some effects pass: a Node stays Ready for only 40 s after its machine was reset.
	group, each := errgroup.WithContext(ctx)
	for _, f := range e.faults {
		group.Go(func() error { return f.awaitEffect(each, f.target, e.stepOf(f)) })
	}
	err := group.Wait()
	if misnamed := (*misnamedError)(nil); errors.As(err, &misnamed) {
		return Failed, err
	}
	if err != nil {
		return SetupFailed, err
	}
	e.result.ToEffect = time.Since(begun).Seconds()
	if e.options.Tool != nil {
		return Failed, e.askTool(ctx)
	}
	e.step("diagnose")
	return Failed, e.name(ctx)
}

// write adds the fault to the record.
func (e *experiment) write(f placed) error {
	i := Injected{Fault: f.Name, Node: f.target.Node, Time: time.Now().UTC().Round(0), Experiment: true}
	e.written = append(e.written, i)
	return e.options.Record.Add(i)
}

// stepOf reports a step of one fault.
func (e *experiment) stepOf(f placed) func(string) {
	if len(e.faults) == 1 {
		return e.step
	}
	return func(text string) { e.step(f.Name + ": " + text) }
}

// Make injects the fault and waits for its effect. Patience is as in Options.
func (f Fault) Make(ctx context.Context, t Target, patience int, progress func(step string)) error {
	if err := f.canUpgrade(t); err != nil {
		return err
	}
	t.patience = patience
	if err := f.inject(ctx, t, progress); err != nil {
		return err
	}
	return f.awaitEffect(ctx, t, progress)
}

func (f Fault) inject(ctx context.Context, t Target, progress func(string)) error {
	if f.Outside {
		progress("reset " + t.Node)
		if _, err := t.Labctl(ctx, "reset", t.Node); err != nil {
			return err
		}
	}
	progress("inject")
	if err := f.Inject(ctx, t); err != nil {
		return fmt.Errorf("inject %s: %w", f.Name, err)
	}
	return nil
}

func (f Fault) awaitEffect(ctx context.Context, t Target, progress func(string)) error {
	if f.Effect == nil { // until an upgrade begins
		return nil
	}
	progress("wait for the effect")
	return t.await(ctx, f.Name+" to take effect", effectBudget, 300*time.Millisecond, func(ctx context.Context) error { return f.Effect(ctx, t) })
}
