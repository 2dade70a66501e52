package validate

import (
	"fmt"
	"strings"
)

// shown bounds how many things of a kind a detail lists.
const shown = 5

func pass(format string, args ...any) Finding {
	return Finding{Status: Passed, Detail: fmt.Sprintf(format, args...)}
}

func absent(format string, args ...any) Finding {
	return Finding{Status: NotApplicable, Detail: fmt.Sprintf(format, args...)}
}

func warn(next, format string, args ...any) Finding {
	return Finding{Status: Warned, Detail: fmt.Sprintf(format, args...), Next: next}
}

func fail(next, format string, args ...any) Finding {
	return Finding{Status: Failed, Detail: fmt.Sprintf(format, args...), Next: next}
}

// tally is what a check saw of several things.
type tally struct {
	faults   []string
	warnings []string
	good     []string
}

// finding judges the whole: the worst decides, and is the detail.
func (t tally) finding(next string) Finding {
	switch {
	case len(t.faults) > 0:
		return fail(next, "%s", few(t.faults))
	case len(t.warnings) > 0:
		return warn(next, "%s", few(t.warnings))
	}
	return pass("%s", few(t.good))
}

// few lists the first things, and says how many more there are.
func few(all []string) string {
	if len(all) <= shown {
		return strings.Join(all, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(all[:shown], "; "), len(all)-shown)
}
