// Package wait polls one condition until it holds, is hopeless, or its budget runs out, and keeps what was last seen for the error. It does
// not abandon a check that ignores its context, retry with back-off, or wait for several conditions at once.
package wait

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// minInterval keeps a forgotten interval from turning into a busy loop.
const minInterval = time.Millisecond

// TimeoutError says which wait ran out of time and what was in the way.
type TimeoutError struct {
	What   string
	Budget time.Duration
	Last   error
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s: %v budget ran out; last seen: %s", e.What, e.Budget, seen(e.Last))
}

func (e *TimeoutError) Unwrap() error { return e.Last }

// stoppedError is a wait ended from outside. It unwraps to both the cause and the context's own error, so that a caller may ask for either.
type stoppedError struct {
	what   string
	cause  error
	ctxErr error
	last   error
}

func (e *stoppedError) Error() string {
	return fmt.Sprintf("%s: stopped: %v; last seen: %s", e.what, e.cause, seen(e.last))
}

func (e *stoppedError) Unwrap() []error { return []error{e.cause, e.ctxErr} }

type hopelessError struct{ err error }

func (e *hopelessError) Error() string { return e.err.Error() }
func (e *hopelessError) Unwrap() error { return e.err }

// Hopeless marks an error that no further polling can cure: a check that returns it, however wrapped, ends its wait at once, and so does
// every wait around that one. Hopeless(nil) is nil.
func Hopeless(err error) error {
	if err == nil {
		return nil
	}
	return &hopelessError{err}
}

// For calls check at once, and again each interval after a check has returned, until it returns nil, returns an error wrapped by Hopeless,
// ctx ends, or budget passes. The context given to check ends with the budget.
func For(ctx context.Context, what string, budget, interval time.Duration, check func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, budget)
	defer cancel()

	var last error
	for ctx.Err() == nil {
		err := check(limited)
		if err == nil {
			return nil
		}
		if _, ok := errors.AsType[*hopelessError](err); ok {
			return fmt.Errorf("%s: %w", what, err)
		}
		// A check that was running when time ran out reports its own interruption, in as many shapes as there are clients ("signal:
		// killed", gRPC codes, i/o timeouts), so the clock decides and not the error's type.
		if last == nil || limited.Err() == nil {
			last = err
		}
		if !pause(limited, max(interval, minInterval)) {
			break
		}
	}
	if ctx.Err() != nil {
		return &stoppedError{what: what, cause: context.Cause(ctx), ctxErr: ctx.Err(), last: last}
	}
	return &TimeoutError{What: what, Budget: budget, Last: last}
}

// pause sleeps for d and reports whether ctx is still alive afterwards.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err() == nil
}

func seen(err error) string {
	if err == nil {
		return "nothing yet"
	}
	return err.Error()
}
