package diagnose

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"k8slab/lab/diagnose/fact"
)

// Condition is something that must hold in a healthy cluster.
type Condition struct {
	Organ string // what it is about
	Name  string
	Check func(context.Context) error // of one that a node does not meet, an Ailing; of several, joined
}

// Ailing is what is wrong with one node, or with another organ than the condition's.
type Ailing struct {
	Node  string
	Organ string // "" for the condition's
	Err   error
}

func (a Ailing) Error() string {
	if a.Node == "" {
		return a.Err.Error()
	}
	return a.Node + ": " + a.Err.Error()
}

func (a Ailing) Unwrap() error { return a.Err }

// Measure checks all conditions once, so many at the same time; -1 is all.
func Measure(ctx context.Context, all []Condition, atOnce int) []fact.Organ {
	found := make([][]fact.Organ, len(all))
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i, one := range all {
		g.Go(func() error {
			began := time.Now()
			err := one.Check(ctx)
			found[i] = one.organs(err)
			for k := range found[i] {
				found[i][k].Elapsed = time.Since(began).Round(time.Millisecond).Seconds()
				found[i][k].Late = err != nil && ctx.Err() != nil
			}
			return nil
		})
	}
	_ = g.Wait()
	return slices.Concat(found...)
}

// organs are one for each node that does not meet the condition, or else one for the cluster.
func (c Condition) organs(err error) []fact.Organ {
	var all []fact.Organ
	for _, one := range parts(err) {
		o := fact.Organ{Name: c.Organ, Detail: c.Name}
		if a, ok := errors.AsType[Ailing](one); ok {
			o.Node, o.Name, one = a.Node, cmp.Or(a.Organ, c.Organ), a.Err
		}
		o.Error = one.Error()
		all = append(all, o)
	}
	if len(all) == 0 {
		all = []fact.Organ{{Name: c.Organ, Detail: c.Name}}
	}
	return all
}

// parts are the errors that were joined.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, parts(one)...)
	}
	return all
}
