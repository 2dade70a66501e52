package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Policy says how often and how fast a join is tried again.
type Policy struct {
	Attempts int           `json:"attempts"` // all of them; less than 1 is 1
	Sleep    time.Duration `json:"sleep"`    // before the second attempt; doubled before each later one
	MaxSleep time.Duration `json:"maxSleep"` // 0 is no limit
	MaxTotal time.Duration `json:"maxTotal"` // no attempt begins later than this after the first; 0 is no limit
	// Jitter draws from [0,1). A sleep lasts between half and all of its time, so that machines do not retry together. nil: all of it.
	Jitter func() float64 `json:"-"`
}

// Loop makes attempts until one joins, the policy ends them, or repair says that another is useless. repair acts on the cause of a failed
// attempt with the rights that its caller has; Loop does not call it after the last attempt. The Outcome of a join that failed is the FIRST
// attempt's, because later ones often fail at what the first left behind. An error of attempt means that it could not run or be followed;
// it ends the loop.
func Loop(ctx context.Context, p Policy, attempt func(ctx context.Context, number int) (Outcome, error),
	repair func(ctx context.Context, failed Outcome) (again bool, err error)) (Outcome, error) {
	begin := time.Now()
	var first, last Outcome
	for number := 1; ; number++ {
		o, err := attempt(ctx, number)
		if err != nil {
			return firstOf(number, first, o), failure(number, first, o, err)
		}
		if o.Joined {
			return o, nil
		}
		first, last = firstOf(number, first, o), o
		if number >= p.Attempts {
			return first, failure(number, first, last, nil)
		}
		again, err := repair(ctx, o)
		if err != nil || !again {
			return first, failure(number, first, last, err)
		}
		sleep := time.Duration(0)
		if !Remedy(o.Symptom).cures() {
			sleep = p.sleep(number)
		}
		if p.MaxTotal > 0 && time.Since(begin)+sleep > p.MaxTotal {
			return first, failure(number, first, last, fmt.Errorf("the budget of %s for all attempts ran out", p.MaxTotal))
		}
		if err := pause(ctx, sleep); err != nil {
			return first, failure(number, first, last, err)
		}
	}
}

func firstOf(number int, first, o Outcome) Outcome {
	if number == 1 {
		return o
	}
	return first
}

// sleep is the pause after the failed attempt of this number.
func (p Policy) sleep(number int) time.Duration {
	d := p.Sleep
	for range number - 1 {
		d *= 2
		if p.MaxSleep > 0 && d > p.MaxSleep {
			break
		}
	}
	if p.MaxSleep > 0 {
		d = min(d, p.MaxSleep)
	}
	if p.Jitter != nil {
		d = d/2 + time.Duration(p.Jitter()*float64(d/2))
	}
	return d
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// failure is the error of a loop: the first cause, the last when it is another, and what ended the loop.
func failure(attempts int, first, last Outcome, ended error) error {
	what := "not joined"
	if attempts > 1 {
		what = fmt.Sprintf("not joined in %d attempts", attempts)
	}
	text := what + ": " + first.cause()
	if attempts == 1 && first.Phase == "" && first.Symptom == "" && ended != nil {
		return fmt.Errorf("%s: %w", what, ended)
	}
	if attempts > 1 && (last.Symptom != first.Symptom || last.Phase != first.Phase) && (last.Phase != "" || last.Symptom != "") {
		text += "; the last attempt: " + last.cause()
	}
	if ended != nil {
		return fmt.Errorf("%s; no further attempt: %w", text, ended)
	}
	return errors.New(text)
}

// cause is the Outcome's cause in one line.
func (o Outcome) cause() string {
	text := fmt.Sprintf("%s in %s", cmp.Or(o.Symptom, "no known cause"), o.Phase)
	if o.Evidence != "" {
		text += ": " + o.Evidence
	}
	return text
}
