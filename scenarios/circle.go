package scenarios

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

// Class says how a circle ended.
type Class string

// The classes of results. Failed is the product's failure; setup-failed says that there was no healthy lab to begin with, or that the fault
// could not be made.
const (
	Passed        Class = "passed"
	Failed        Class = "failed"
	SetupFailed   Class = "setup-failed"
	NotApplicable Class = "not-applicable"
)

// Result is how one circle went.
type Result struct {
	Fault     string     `json:"fault"`
	Node      string     `json:"node"`
	Began     time.Time  `json:"began"`
	Class     Class      `json:"class"`
	Reason    string     `json:"reason,omitempty"` // why it is not Passed
	Symptom   symptom.ID `json:"symptom"`          // that the diagnosis said first
	ToBite    float64    `json:"to_bite"`          // seconds from the injection's end until its effect showed
	ToCause   float64    `json:"to_cause"`         // seconds that the diagnosis took to name it
	ToRecover float64    `json:"to_recover"`       // seconds from the first command of the recovery to a proven healthy cluster
	Seconds   float64    `json:"seconds"`          // of the whole circle
}

// Err is why the circle did not pass; nil when it passed or does not apply.
func (r Result) Err() error {
	if r.Class == Passed || r.Class == NotApplicable {
		return nil
	}
	return fmt.Errorf("%s on %s: %s: %s", r.Fault, r.Node, r.Class, r.Reason)
}

// Options of a circle.
type Options struct {
	Node     string            // "" is the last node of a role that the fault is for
	Evidence string            // directory for a bundle of a circle that fails, saved before anything is undone; "" for none
	Progress func(step string) // is told of each step as it begins; may be nil
}

// Budgets of the steps that wait. A proven cluster may take a flannel or CoreDNS back-off of a minute.
const (
	biteBudget    = 3 * time.Minute
	nameBudget    = 30 * time.Second // what a kubelet or containerd logs only every 10 s
	healthyBudget = 4 * time.Minute
)

// Circle takes a healthy lab through the fault and back: it injects it, sees it take effect, has the diagnosis name it, recovers, and proves
// that the cluster is as healthy as before and lost nothing. A lab that did not come back is restored and brought up again.
func (f Fault) Circle(ctx context.Context, h Hands, o Options) Result {
	c := &circle{fault: f, options: o, result: Result{Fault: f.Name, Began: time.Now().UTC()}}
	c.site.Hands = h
	class, err := c.run(ctx)
	c.result.Class = class
	if err != nil {
		c.result.Reason = err.Error()
	}
	c.result.Seconds = time.Since(c.result.Began).Seconds()
	return c.result
}

type circle struct {
	fault   Fault
	options Options
	site    Site
	result  Result
}

func (c *circle) step(text string) {
	if c.options.Progress != nil {
		c.options.Progress(text)
	}
}

func (c *circle) run(ctx context.Context) (Class, error) {
	c.step("healthy before")
	site, err := SiteOf(ctx, c.site.Hands, c.fault, c.options.Node)
	if errors.Is(err, errNotApplicable) {
		return NotApplicable, err
	}
	if err != nil {
		return SetupFailed, err
	}
	c.site, c.result.Node = site, site.Node
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
	if err == nil {
		return Passed, c.forget(ctx)
	}
	return class, errors.Join(err, c.rescue(ctx))
}

// there takes the lab into the fault, up to its name.
func (c *circle) there(ctx context.Context) (Class, error) {
	if err := c.fault.inject(ctx, c.site, c.step); err != nil {
		return SetupFailed, err
	}
	begun := time.Now()
	if err := c.fault.bites(ctx, c.site, c.step); err != nil {
		return SetupFailed, err
	}
	c.result.ToBite = time.Since(begun).Seconds()
	c.step("diagnose")
	return Failed, c.name(ctx)
}

// Make injects the fault and waits until it has taken effect.
func (f Fault) Make(ctx context.Context, s Site, progress func(step string)) error {
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
	progress("wait until it bites")
	return wait.For(ctx, f.Name+" to take effect", biteBudget, 300*time.Millisecond, func(ctx context.Context) error { return f.Bites(ctx, s) })
}

// name has the diagnosis name the fault. What is not in any log yet is asked for again.
func (c *circle) name(ctx context.Context) error {
	begun := time.Now()
	return wait.For(ctx, "the diagnosis to name "+c.fault.Name, nameBudget, time.Second, func(ctx context.Context) error {
		first, err := diagnosed(ctx, c.site)
		c.result.Symptom, c.result.ToCause = first.Symptom, time.Since(begun).Seconds()
		if err != nil || first.Symptom == c.fault.Symptom {
			return err
		}
		return fmt.Errorf("the diagnosis says %q first (%s), not %q", first.Symptom, first.Meaning, c.fault.Symptom)
	})
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

// back takes the lab out of the fault.
func (c *circle) back(ctx context.Context) error {
	if c.fault.Stops {
		c.step("refuse")
		if err := c.refused(ctx); err != nil {
			return err
		}
		if err := c.fault.Restore(ctx, c.site); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}
	begun := time.Now()
	for _, args := range c.calls() {
		c.step("labctl " + strings.Join(args, " "))
		if _, err := c.site.Labctl(ctx, args...); err != nil {
			return err
		}
	}
	c.step("healthy after")
	if err := wait.For(ctx, "a healthy lab", healthyBudget, time.Second, func(ctx context.Context) error { return healthy(ctx, c.site) }); err != nil {
		return err
	}
	c.result.ToRecover = time.Since(begun).Seconds()
	if err := c.restore(ctx); err != nil {
		return err
	}
	c.step("diagnose again")
	return wait.For(ctx, "the diagnosis to find nothing that fails", nameBudget, time.Second, func(ctx context.Context) error {
		first, err := diagnosed(ctx, c.site)
		if err == nil && first.Level == symptom.Fail {
			err = fmt.Errorf("%s on %s: %s", first.Symptom, first.Node, first.Meaning)
		}
		return err
	})
}

// refused wants the recovery to be refused, and the symptom to be the reason.
func (c *circle) refused(ctx context.Context) error {
	for _, args := range c.calls() {
		_, err := c.site.Labctl(ctx, args...)
		if err == nil {
			return fmt.Errorf("labctl %s had to be refused", strings.Join(args, " "))
		}
		if !strings.Contains(err.Error(), string(c.fault.Symptom)) {
			return fmt.Errorf("labctl %s was refused, but not for %s: %w", strings.Join(args, " "), c.fault.Symptom, err)
		}
	}
	return nil
}

func (c *circle) calls() [][]string { return c.fault.Calls(c.site.Node) }

// Calls are the calls of labctl that end the fault on the node.
func (f Fault) Calls(node string) [][]string {
	calls := make([][]string, len(f.Recover))
	for i, args := range f.Recover {
		calls[i] = slices.Clone(args)
		for k, a := range args {
			if a == Node {
				calls[i][k] = node
			}
		}
	}
	return calls
}

func (c *circle) restore(ctx context.Context) error {
	if c.fault.Restore == nil {
		return nil
	}
	if err := c.fault.Restore(ctx, c.site); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return nil
}

// rescue saves the evidence of a circle that failed and gets the lab back, so that the next one can begin. Ctrl-C leaves things as they are.
func (c *circle) rescue(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	if c.options.Evidence != "" {
		c.step("save evidence")
		_, _ = c.site.Labctl(ctx, "diagnose", "--bundle", filepath.Join(c.options.Evidence, c.fault.Name+".tar.gz")) // says 1 for a broken lab
	}
	c.step("restore")
	err := c.restore(ctx)
	if _, upErr := c.site.Labctl(ctx, "up"); upErr != nil {
		err = errors.Join(err, fmt.Errorf("the lab did not come back: %w", upErr))
	}
	return errors.Join(err, c.forget(ctx))
}

// healthy is nil when `labctl status` proves the cluster healthy.
func healthy(ctx context.Context, s Site) error {
	out, err := s.Labctl(ctx, "status", "-o", "json")
	if err == nil {
		return nil
	}
	var status struct{ Problems []string }
	if json.Unmarshal([]byte(out), &status) == nil && len(status.Problems) > 0 {
		return errors.New(strings.Join(status.Problems, "; "))
	}
	return err
}

var errNotApplicable = errors.New("not applicable")

// SiteOf is where the fault can be made in the lab: on the node, or on the last one of a role that it is for.
func SiteOf(ctx context.Context, h Hands, f Fault, node string) (Site, error) {
	out, statusErr := h.Labctl(ctx, "status", "-o", "json") // exit status 1 says that it is not healthy
	var status struct {
		Nodes []struct {
			Member
			Note string
		}
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		return Site{}, errors.Join(statusErr, err)
	}
	s := Site{Hands: h, Node: node}
	for _, n := range status.Nodes {
		if n.Note == "" { // not one to be onboarded later
			s.Members = append(s.Members, n.Member)
		}
	}
	for _, m := range s.Members {
		if node == "" && f.For(m.Role) {
			s.Node = m.Name
		}
	}
	return s.complete(f)
}

// complete fills in what follows from the node, and says why the fault is not for it.
func (s Site) complete(f Fault) (Site, error) {
	var role config.Role
	for _, m := range s.Members {
		if m.Name == s.Node {
			s.Address, role = m.Address, m.Role
		} else if m.Role == config.ControlPlane {
			s.ControlPlane = cmp.Or(s.ControlPlane, m.Name)
		}
	}
	switch {
	case s.Node == "":
		return s, fmt.Errorf("%w: %s is for a %s, and the lab has none", errNotApplicable, f.Name, f.Roles[0])
	case role == "":
		return s, fmt.Errorf("no node %q in the lab", s.Node)
	case !f.For(role):
		return s, fmt.Errorf("%w: %s is for a %s, and %s is none", errNotApplicable, f.Name, f.Roles[0], s.Node)
	}
	s.ControlPlane = cmp.Or(s.ControlPlane, s.Node)
	if f.Applies != nil {
		if why := f.Applies(s); why != "" {
			return s, fmt.Errorf("%w: %s", errNotApplicable, why)
		}
	}
	return s, nil
}
