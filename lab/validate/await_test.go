package validate

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestAwait(t *testing.T) {
	// after makes a check that fails until it was looked at so many times, and then only waits for its context.
	after := func(times int, then func(context.Context) Finding) Check {
		looks := 0
		return check(AreaMonitoring, "it is found", func(ctx context.Context) (Finding, error) {
			if looks++; looks <= times {
				return fail("wait", "seen %d times", looks), nil
			}
			return then(ctx), nil
		})
	}
	found := func(context.Context) Finding { return pass("found") }
	cut := func(ctx context.Context) Finding {
		<-ctx.Done()
		return fail("", "cut short")
	}
	tests := []struct {
		name   string
		check  Check
		detail string
		said   []string
		took   time.Duration
		err    string
	}{
		{"at once", after(0, found), "found", nil, 0, ""},
		{"a warning is no reason to wait", after(0, func(context.Context) Finding { return warn("", "hm") }), "hm", nil, 0, ""},
		{"after three", after(3, found), "found", []string{"it is found: seen 1 times", "it is found: seen 2 times", "it is found: seen 3 times"}, 3 * time.Second, ""},
		{"never", after(1000, found), "seen 60 times", nil, time.Minute, "metrics: stopped: the time is over; last seen: it is found: seen 60 times"},
		{"the end cuts a look short", after(2, cut), "seen 2 times", nil, time.Minute, "last seen: it is found: seen 2 times"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute-time.Millisecond, errors.New("the time is over"))
				defer cancel()
				begun := time.Now()
				var said []string
				findings, err := Await(ctx, "metrics", []Check{tt.check}, func(s string) { said = append(said, s) })
				checkText(t, err, tt.err)
				if len(findings) != 1 || findings[0].Detail != tt.detail {
					t.Errorf("findings %+v, wanted %q", findings, tt.detail)
				}
				if tt.said != nil && !slices.Equal(said, tt.said) {
					t.Errorf("said %q", said)
				}
				if took := time.Since(begun).Round(time.Second); took != tt.took {
					t.Errorf("took %s, wanted %s", took, tt.took)
				}
			})
		})
	}
}
