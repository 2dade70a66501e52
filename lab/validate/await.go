package validate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8slab/lab/wait"
)

// awaitPace is the time between two runs of checks that are awaited, awaitBudget bounds a wait whose context has no end.
const (
	awaitPace   = time.Second
	awaitBudget = time.Hour
)

// Await makes all checks again and again, a second apart, until none fails or the context ends. The findings are those of the last run that
// the context let finish. say, if not nil, is told of what fails, when that changes. The error says what failed last.
func Await(ctx context.Context, what string, checks []Check, say func(string)) ([]Finding, error) {
	var findings []Finding
	told := ""
	err := wait.For(ctx, what, awaitBudget, awaitPace, func(ctx context.Context) error {
		now := Run(ctx, checks)
		err := failures(now)
		// A run that the end of the context has cut short failed of that alone.
		if err != nil && ctx.Err() != nil && findings != nil {
			return err
		}
		findings = now
		if err != nil && say != nil && told != err.Error() {
			told = err.Error()
			say(told)
		}
		return err
	})
	return findings, err
}

// failures joins the findings that are failures, nil when there is none.
func failures(findings []Finding) error {
	var errs []error
	for _, f := range findings {
		if f.Status == Failed {
			errs = append(errs, fmt.Errorf("%s: %s", f.Check, f.Detail))
		}
	}
	return errors.Join(errs...)
}
