package wait

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

var errLearner = errors.New("cp2 is still a learner")

func TestForPolls(t *testing.T) {
	errBroken := errors.New("certificate does not match")
	tests := []struct {
		name  string
		check func(ctx context.Context, call int) error
		calls int
		took  time.Duration
		is    error
		text  string
	}{
		{
			name:  "holds at once",
			check: func(context.Context, int) error { return nil },
			calls: 1,
		},
		{
			name: "holds at the third look",
			check: func(_ context.Context, call int) error {
				if call < 3 {
					return errLearner
				}
				return nil
			},
			calls: 3, took: 20 * time.Second,
		},
		{
			name: "hopeless",
			check: func(_ context.Context, call int) error {
				if call < 2 {
					return errLearner
				}
				return fmt.Errorf("look: %w", Hopeless(errBroken))
			},
			calls: 2, took: 10 * time.Second,
			is: errBroken, text: "etcd voters: look: certificate does not match",
		},
		{
			name:  "budget runs out",
			check: func(context.Context, int) error { return errLearner },
			calls: 4, took: 35 * time.Second,
			is: errLearner, text: "etcd voters: 35s budget ran out; last seen: cp2 is still a learner",
		},
		{
			name: "hanging check is cut and does not hide what was seen before",
			check: func(ctx context.Context, call int) error {
				if call == 1 {
					return errLearner
				}
				<-ctx.Done()
				return errors.New("signal: killed")
			},
			calls: 2, took: 35 * time.Second,
			is: errLearner, text: "etcd voters: 35s budget ran out; last seen: cp2 is still a learner",
		},
		{
			name: "nothing but a hanging check",
			check: func(ctx context.Context, _ int) error {
				<-ctx.Done()
				return ctx.Err()
			},
			calls: 1, took: 35 * time.Second,
			is: context.DeadlineExceeded, text: "etcd voters: 35s budget ran out; last seen: context deadline exceeded",
		},
		{
			name: "a check's own timeout is worth reporting",
			check: func(ctx context.Context, call int) error {
				if call == 1 {
					return errLearner
				}
				return context.DeadlineExceeded
			},
			calls: 4, took: 35 * time.Second,
			is: context.DeadlineExceeded, text: "etcd voters: 35s budget ran out; last seen: context deadline exceeded",
		},
		{
			name: "holds in the check the deadline overtook",
			check: func(ctx context.Context, _ int) error {
				<-ctx.Done()
				return nil
			},
			calls: 1, took: 35 * time.Second,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, calls := time.Now(), 0
				err := For(t.Context(), "etcd voters", 35*time.Second, 10*time.Second, func(ctx context.Context) error {
					calls++
					return tt.check(ctx, calls)
				})
				if calls != tt.calls || time.Since(start) != tt.took {
					t.Errorf("%d checks in %v, want %d in %v", calls, time.Since(start), tt.calls, tt.took)
				}
				if !errors.Is(err, tt.is) {
					t.Errorf("error %v does not wrap %v", err, tt.is)
				}
				if err != nil && err.Error() != tt.text {
					t.Errorf("error %q, want %q", err, tt.text)
				}
			})
		})
	}
}

func TestTimeoutErrorFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := For(t.Context(), "etcd voters", time.Minute, time.Second, func(context.Context) error { return errLearner })
		var timeout *TimeoutError
		if !errors.As(err, &timeout) {
			t.Fatalf("%T is not a *TimeoutError", err)
		}
		if timeout.What != "etcd voters" || timeout.Budget != time.Minute || timeout.Last != errLearner {
			t.Errorf("got %+v", timeout)
		}
	})
}

func TestCancelledParent(t *testing.T) {
	cause := errors.New("interrupted by the user")
	tests := []struct {
		name  string
		check func(ctx context.Context, call int) error
		text  string
	}{
		{
			name:  "between checks",
			check: func(context.Context, int) error { return errLearner },
			text:  "etcd voters: stopped: interrupted by the user; last seen: cp2 is still a learner",
		},
		{
			name: "during a check",
			check: func(ctx context.Context, call int) error {
				if call == 1 {
					return errLearner
				}
				<-ctx.Done()
				return ctx.Err()
			},
			text: "etcd voters: stopped: interrupted by the user; last seen: cp2 is still a learner",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(15*time.Second, func() { cancel(cause) })
				start, calls := time.Now(), 0
				err := For(ctx, "etcd voters", time.Minute, 10*time.Second, func(ctx context.Context) error {
					calls++
					return tt.check(ctx, calls)
				})
				if took := time.Since(start); took != 15*time.Second {
					t.Errorf("returned after %v, want 15s", took)
				}
				if !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
					t.Errorf("error %v wraps neither the cause nor its kind", err)
				}
				var timeout *TimeoutError
				if errors.As(err, &timeout) {
					t.Error("a cancelled wait reports a timeout")
				}
				if err.Error() != tt.text {
					t.Errorf("error %q, want %q", err, tt.text)
				}
			})
		})
	}
}

func TestParentAlreadyEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := For(ctx, "etcd voters", time.Minute, time.Second, func(context.Context) error {
		t.Error("checked under a dead context")
		return nil
	})
	if want := "etcd voters: stopped: context canceled; last seen: nothing yet"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestParentDeadlineIsNotTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := For(ctx, "etcd voters", time.Minute, 2*time.Second, func(context.Context) error { return errLearner })
		var timeout *TimeoutError
		if errors.As(err, &timeout) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestHopeless(t *testing.T) {
	if err := Hopeless(nil); err != nil {
		t.Errorf("Hopeless(nil) = %v", err)
	}
	if err := Hopeless(errLearner); !errors.Is(err, errLearner) || err.Error() != errLearner.Error() {
		t.Errorf("Hopeless hides its error: %v", err)
	}
}

func TestHopelessEndsOuterWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := For(t.Context(), "outer", time.Hour, time.Second, func(ctx context.Context) error {
			return For(ctx, "inner", time.Minute, time.Second, func(context.Context) error { return Hopeless(errLearner) })
		})
		if err == nil || err.Error() != "outer: inner: cp2 is still a learner" || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestZeroIntervalDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		_ = For(t.Context(), "etcd voters", 10*time.Millisecond, 0, func(context.Context) error {
			calls++
			return errLearner
		})
		if calls > 11 {
			t.Errorf("%d checks in 10ms", calls)
		}
	})
}
