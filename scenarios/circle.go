package scenarios

import (
	"context"
	"encoding/json"
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

// Options of a circle.
type Options struct {
	Node     string            // "" is the last node of a role that the fault is for
	Evidence string            // directory for a bundle of a circle that fails, saved before anything is undone; "" for none
	Record   Record            // of what is in the lab while the circle is at work, for when it is killed
	Progress func(step string) // is told of each step as it begins; may be nil
	Patience int               // how many times longer everything may take, for machines whose processors are emulated; 0 is once
}

// Budgets of the steps that wait. A proven cluster may take a flannel or CoreDNS back-off of a minute.
const (
	biteBudget    = 3 * time.Minute
	nameBudget    = 30 * time.Second // what a kubelet or containerd logs only every 10 s
	healthyBudget = 4 * time.Minute
	goneBudget    = time.Minute
)

// Circle takes a healthy lab through the fault and back: it injects it, sees it take effect, has the diagnosis name it, recovers, and proves
// that the cluster is as healthy as before and lost nothing. A lab that did not come back is restored and brought up again.
func (f Fault) Circle(ctx context.Context, h Hands, o Options) Result {
	return Round{{Fault: f, Node: o.Node}}.Circle(ctx, h, o)
}

// NotBegun is the result of a round for which the lab could not be got healthy.
func (r Round) NotBegun(why error) Result {
	return Result{Fault: r.names(), Began: time.Now().UTC(), Class: SetupFailed, Reason: why.Error()}
}

// Circle is the circle of all faults of the round at the same time: all are made, all take effect, the diagnosis says one of them first, all
// are recovered.
func (r Round) Circle(ctx context.Context, h Hands, o Options) Result {
	c := &circle{round: r, options: o, result: Result{Fault: r.names(), Began: time.Now().UTC()}}
	c.site.Hands = h
	class, err := c.inDirectory(ctx)
	c.result.Class = class
	if err != nil {
		c.result.Reason = err.Error()
	}
	c.result.Seconds = time.Since(c.result.Began).Seconds()
	return c.result
}

type circle struct {
	round   Round
	options Options
	faults  []placed
	site    Site // of the first fault; what concerns the whole lab is asked through it
	result  Result
	written []Injected // in the record
	dir     string     // for files that recoveries need
	telling sync.Mutex // of progress
}

// placed is a fault and where it is made.
type placed struct {
	Fault
	site Site
}

func (c *circle) step(text string) {
	c.telling.Lock()
	defer c.telling.Unlock()
	if c.options.Progress != nil {
		c.options.Progress(text)
	}
}

// inDirectory runs the circle with a directory that only its user can read. It is the lab's, so that `down` takes what a killed one leaves.
func (c *circle) inDirectory(ctx context.Context) (class Class, err error) {
	if c.options.Record.Path == "" {
		return c.run(ctx)
	}
	c.dir = filepath.Join(filepath.Dir(c.options.Record.Path), "fault-files")
	if err := errors.Join(os.RemoveAll(c.dir), os.Mkdir(c.dir, 0o700)); err != nil {
		return SetupFailed, err
	}
	class, err = c.run(ctx)
	return class, errors.Join(err, os.RemoveAll(c.dir))
}

func (c *circle) run(ctx context.Context) (Class, error) {
	c.step("healthy before")
	err := c.place(ctx)
	if errors.Is(err, errNotApplicable) {
		return NotApplicable, err
	}
	if err != nil {
		return SetupFailed, err
	}
	if err := healthy(ctx, c.site); err != nil {
		return SetupFailed, fmt.Errorf("the lab is not healthy before the fault: %w", err)
	}
	before, err := c.remember(ctx)
	if err != nil {
		return SetupFailed, err
	}
	writes := c.watchWrites(ctx)
	class, err := c.there(ctx)
	if err == nil {
		class, err = Failed, c.back(ctx)
	}
	if err = errors.Join(err, writes()); err == nil {
		err = c.compare(ctx, before)
	}
	if err != nil {
		return class, errors.Join(err, c.rescue(ctx))
	}
	if err := errors.Join(c.forget(ctx), c.options.Record.Forget(c.written...)); err != nil {
		return Failed, err
	}
	return Passed, nil
}

// place finds where each fault is made.
func (c *circle) place(ctx context.Context) error {
	var nodes []string
	for _, t := range c.round {
		site, err := SiteOf(ctx, c.site.Hands, t.Fault, t.Node)
		if err != nil {
			return err
		}
		c.faults = append(c.faults, placed{t.Fault, site})
		nodes = append(nodes, site.Node)
	}
	c.result.Node = strings.Join(nodes, "+")
	for i := range c.faults {
		c.faults[i].site = c.faults[i].site.beside(nodes)
		c.faults[i].site.patience = c.options.Patience
	}
	c.site = c.faults[0].site
	return compose(c.faults)
}

// there takes the lab into the fault, up to its name.
func (c *circle) there(ctx context.Context) (Class, error) {
	for _, f := range c.faults {
		if err := c.write(f); err != nil {
			return SetupFailed, err
		}
		if err := f.inject(ctx, f.site, c.stepOf(f)); err != nil {
			return SetupFailed, err
		}
	}
	begun := time.Now()
	// Together, because some can be seen for a while only: a Node is Ready for 40 s after its machine was reset.
	group, each := errgroup.WithContext(ctx)
	for _, f := range c.faults {
		group.Go(func() error { return f.bites(each, f.site, c.stepOf(f)) })
	}
	err := group.Wait()
	if misnamed := (*misnamedError)(nil); errors.As(err, &misnamed) {
		return Failed, err
	}
	if err != nil {
		return SetupFailed, err
	}
	c.result.ToBite = time.Since(begun).Seconds()
	c.step("diagnose")
	return Failed, c.name(ctx)
}

// write notes the fault in the record.
func (c *circle) write(f placed) error {
	i := Injected{Fault: f.Name, Node: f.site.Node, Time: time.Now().UTC().Round(0), Circle: true}
	c.written = append(c.written, i)
	return c.options.Record.Add(i)
}

// stepOf tells of a step of one fault.
func (c *circle) stepOf(f placed) func(string) {
	if len(c.faults) == 1 {
		return c.step
	}
	return func(text string) { c.step(f.Name + ": " + text) }
}

// Make injects the fault and waits until it has taken effect. Patience is that of Options.
func (f Fault) Make(ctx context.Context, s Site, patience int, progress func(step string)) error {
	s.patience = patience
	if err := f.inject(ctx, s, progress); err != nil {
		return err
	}
	return f.bites(ctx, s, progress)
}

func (f Fault) inject(ctx context.Context, s Site, progress func(string)) error {
	if f.Outside {
		progress("reset " + s.Node)
		if _, err := s.Labctl(ctx, "reset", s.Node); err != nil {
			return err
		}
	}
	progress("inject")
	if err := f.Inject(ctx, s); err != nil {
		return fmt.Errorf("inject %s: %w", f.Name, err)
	}
	return nil
}

func (f Fault) bites(ctx context.Context, s Site, progress func(string)) error {
	progress("wait for the effect")
	return s.await(ctx, f.Name+" to take effect", biteBudget, 300*time.Millisecond, func(ctx context.Context) error { return f.Bites(ctx, s) })
}

// name has the diagnosis name the fault, one of them where there are several. What is not in any log yet is asked for again.
func (c *circle) name(ctx context.Context) error {
	begun := time.Now()
	wanted := sayings(c.faults)
	err := c.site.await(ctx, "the diagnosis to name "+c.result.Fault, nameBudget, time.Second, func(ctx context.Context) error {
		first, err := diagnosed(ctx, c.site)
		c.result.Symptom, c.result.SymptomOn, c.result.ToCause = first.Symptom, first.Node, time.Since(begun).Seconds()
		says := saying{first.Symptom, first.Node}
		if err != nil || slices.Contains(wanted, says) {
			return err
		}
		return &misdiagnosedError{wanted: wanted, says: says}
	})
	if wrong, other := errors.AsType[*misdiagnosedError](err); other {
		wrong.after = c.site.patiently(nameBudget)
		return wrong
	}
	return err
}

// misdiagnosedError is a diagnosis that names something else than the fault.
type misdiagnosedError struct {
	wanted []saying
	says   saying
	after  time.Duration
}

func (e *misdiagnosedError) Error() string {
	var wanted []string
	for _, w := range e.wanted {
		wanted = append(wanted, w.String())
	}
	return fmt.Sprintf("timed out after %.0f s: expected %s, diagnosis said %s", e.after.Seconds(), strings.Join(wanted, " or "), e.says)
}

// diagnosed is the first finding of `labctl diagnose`, empty when there is none.
func diagnosed(ctx context.Context, s Site) (first symptom.Finding, err error) {
	out, err := s.Labctl(ctx, "diagnose", "-o", "json") // exit status 1 says that there is something
	var report struct{ Findings []symptom.Finding }
	if unread := json.Unmarshal([]byte(out), &report); unread != nil {
		return first, errors.Join(err, unread)
	}
	if len(report.Findings) > 0 {
		first = report.Findings[0]
	}
	return first, nil
}
