package scenarios

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8slab/lab/symptom"
)

// back takes the lab out of the fault.
func (c *circle) back(ctx context.Context) error {
	for _, f := range c.faults {
		if !f.Stops {
			continue
		}
		c.step("refuse")
		if err := f.refused(ctx); err != nil {
			return err
		}
		if err := f.Restore(ctx, f.site); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}
	begun := time.Now()
	if err := c.recover(ctx); err != nil {
		return err
	}
	c.step("healthy after")
	if err := c.site.await(ctx, "a healthy lab", healthyBudget, time.Second, func(ctx context.Context) error { return healthy(ctx, c.site) }); err != nil {
		return err
	}
	if err := c.bitesNoMore(ctx); err != nil {
		return err
	}
	c.result.ToRecover = time.Since(begun).Seconds()
	if err := c.restore(ctx); err != nil {
		return err
	}
	c.step("diagnose again")
	return c.site.await(ctx, "the diagnosis to find nothing that fails", nameBudget, time.Second, func(ctx context.Context) error {
		first, err := diagnosed(ctx, c.site)
		if err == nil && first.Level == symptom.Fail {
			err = fmt.Errorf("%s on %s: %s", first.Symptom, first.Node, first.Meaning)
		}
		return err
	})
}

// bitesNoMore wants the effects to be gone before anything else is taken away.
func (c *circle) bitesNoMore(ctx context.Context) error {
	for _, f := range c.faults {
		if f.Outside || f.Once {
			continue
		}
		c.step("wait until the effect is gone")
		err := c.site.await(ctx, "the effect of "+f.Name+" to be gone", goneBudget, 300*time.Millisecond, func(ctx context.Context) error {
			err := f.Bites(ctx, f.site)
			if err == nil {
				return errors.New("it is there, although the lab looks healthy")
			}
			if _, gone := errors.AsType[absence](err); gone {
				return nil
			}
			return err // nobody could tell
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// recover makes the calls that end the faults. What ends one of several may have to wait until another one is gone.
func (c *circle) recover(ctx context.Context) error {
	for pending := c.faults; len(pending) > 0; {
		var left []placed
		var errs []error
		for _, f := range pending {
			if err := c.end(ctx, f); err != nil {
				left, errs = append(left, f), append(errs, err)
			}
		}
		if len(left) == len(pending) {
			return errors.Join(errs...)
		}
		pending = left
	}
	return nil
}

func (c *circle) end(ctx context.Context, f placed) error {
	for _, args := range f.Calls(f.site.Node) {
		for i, a := range args {
			if a == File {
				args[i] = filepath.Join(c.dir, f.Name)
			}
		}
		c.step("labctl " + strings.Join(args, " "))
		if _, err := f.site.Labctl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// refused wants the recovery to be refused, and the symptom to be the reason.
func (f placed) refused(ctx context.Context) error {
	for _, args := range f.Calls(f.site.Node) {
		_, err := f.site.Labctl(ctx, args...)
		if err == nil {
			return fmt.Errorf("labctl %s should have been refused", strings.Join(args, " "))
		}
		if !strings.Contains(err.Error(), string(f.Symptom)) {
			return fmt.Errorf("labctl %s was refused, but not for %s: %w", strings.Join(args, " "), f.Symptom, err)
		}
	}
	return nil
}

func (c *circle) restore(ctx context.Context) error {
	var errs []error
	for _, f := range c.faults {
		if f.Restore == nil {
			continue
		}
		if err := f.Restore(ctx, f.site); err != nil {
			errs = append(errs, fmt.Errorf("restore %s: %w", f.Name, err))
		}
	}
	return errors.Join(errs...)
}

// rescue saves the evidence of a circle that failed and gets the lab back, so that the next one can begin. Ctrl-C leaves things as they are,
// and in the record.
func (c *circle) rescue(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	if c.options.Evidence != "" {
		c.step("save evidence")
		name := fmt.Sprintf("%s-%s-%s.tar.gz", c.result.Fault, c.result.Node, c.result.Began.Format("20060102T150405"))
		_, _ = c.site.Labctl(ctx, "diagnose", "--bundle", filepath.Join(c.options.Evidence, name)) // says 1 for a broken lab
	}
	c.step("restore")
	err := errors.Join(c.restore(ctx), BringBack(ctx, c.site))
	if err == nil {
		err = c.options.Record.Forget(c.written...)
	}
	return errors.Join(err, c.forget(ctx))
}

// BringBack makes a lab whose faults were restored a healthy one. What an injector did to a member, to etcd's members or to pods' sandboxes
// is for `repair`; what it cannot do, such as starting a machine, is for `up`, which then says whether all is well.
func BringBack(ctx context.Context, h Hands) error {
	_, _ = h.Labctl(ctx, "repair")
	if _, err := h.Labctl(ctx, "up"); err != nil {
		return fmt.Errorf("the lab did not come back: %w", err)
	}
	return nil
}
