package onboard

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8slab/lab/event"
)

// Condition sums up an onboarding in a word.
type Condition string

// The conditions of an onboarding.
const (
	Never       Condition = "not_started"
	Working     Condition = "working"     // a process has it in its hands
	Broken      Condition = "failed"      // it ended at a phase that failed
	Interrupted Condition = "interrupted" // its process ended in the middle
	HalfBack    Condition = "half_rolled_back"
	Onboarded   Condition = "completed"
	TakenBack   Condition = "rolled_back"
)

// View is a look at the newest onboarding of a node, which may be at work or finished. Its JSON has the fields of the state file.
type View struct {
	Condition Condition `json:"condition"`
	Holder    string    `json:"holder,omitempty"` // the process at work
	*State
}

// Status looks at the onboarding under way, or the last one. It changes nothing, and works while another process is at work.
func (s *Store) Status() (View, error) {
	for {
		// The state is read between two looks at the lock: a process that starts or ends meanwhile would be mistaken for one that was killed.
		before, err := s.locked()
		if err != nil {
			return View{}, fmt.Errorf("look at the onboarding of %s: %w", s.target.Node, err)
		}
		under, last, err := s.look()
		if err != nil {
			return View{}, err
		}
		after, err := s.locked()
		if err != nil || before != after {
			continue
		}
		v := View{State: under}
		if under == nil {
			v.State = last
		}
		if after {
			v.Holder = s.holder()
		}
		v.Condition = condition(v.State, after)
		return v, nil
	}
}

// Condition is that of a state which no process has in its hands.
func (s *State) Condition() Condition { return condition(s, false) }

// Advice is what a user can do about the condition, with the flags of labctl onboard.
func (c Condition) Advice() string { return advice[c] }

func condition(st *State, working bool) Condition {
	switch {
	case working:
		return Working
	case st == nil:
		return Never
	case st.Status == Completed:
		return Onboarded
	case st.Status == RolledBack:
		return TakenBack
	case st.Status == RollingBack:
		return HalfBack
	case st.PhaseStatus[st.CurrentPhase] == Failed:
		return Broken
	}
	return Interrupted
}

// advice is what a user can do about a condition.
var advice = map[Condition]string{
	Never:       "start it: labctl onboard NODE",
	Working:     "wait, or look again",
	Broken:      "fix it and continue with --resume, or undo it with --rollback",
	Interrupted: "continue with --resume, or undo it with --rollback",
	HalfBack:    "finish it: --rollback",
	Onboarded:   "re-check and fix with --resume, or remove the node with --rollback",
	TakenBack:   "start again: labctl onboard NODE",
}

// WriteText writes the view for a terminal of 60 columns; only errors and what a user must do may be longer.
func (v View) WriteText(w io.Writer) error {
	var b strings.Builder
	if v.State == nil {
		_, _ = fmt.Fprintf(&b, "onboarding: %s\n", v.Condition)
	} else {
		v.head(&b)
		v.table(&b)
		v.tail(&b)
	}
	if v.Holder != "" {
		_, _ = fmt.Fprintf(&b, "at work: %s\n", event.OneLine(v.Holder))
	}
	next := advice[v.Condition]
	if v.State != nil {
		next = strings.ReplaceAll(next, "NODE", v.Node)
	}
	_, _ = fmt.Fprintf(&b, "next: %s\n", next)
	_, err := io.WriteString(w, b.String())
	return err
}

func (v View) head(b *strings.Builder) {
	_, _ = fmt.Fprintf(b, "onboarding of %s: %s\n", v.Node, strings.ReplaceAll(string(v.Condition), "_", " "))
	_, _ = fmt.Fprintf(b, "%s, cluster %s\n", v.Role, event.OneLine(v.Cluster))
	_, _ = fmt.Fprintf(b, "began %s, last written %s\n\n", clock(v.Started), clock(v.Timestamp))
}

func (v View) table(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "PHASE\tSTATUS\tTIME\tTRIES")
	total := 0.0
	for _, p := range phases {
		status, took, tries := v.word(p.ID), "", ""
		if times, ran := v.PhaseTimes[p.ID]; ran {
			took, tries = seconds(times.Seconds), fmt.Sprint(times.Attempts)
			total += times.Seconds
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", p.ID, status, took, tries)
	}
	_, _ = fmt.Fprintf(t, "%s\t\t%s\t\n", v.Progress(), seconds(total))
	_ = t.Flush()
}

// word is the status of a phase for people. After a rollback nothing of a phase that changed something is completed any more.
func (v View) word(id PhaseID) string {
	status := v.PhaseStatus[id]
	if status == Completed && v.back() && slices.ContainsFunc(v.Changes, func(c Change) bool { return c.Phase == id && c.Status == Undone }) {
		status = Undone
	}
	return strings.ReplaceAll(string(status), "_", " ")
}

// back tells whether the onboarding is undone or being undone.
func (s *State) back() bool { return s.Status == RollingBack || s.Status == RolledBack }

// Progress is how far the onboarding has come, in a few words.
func (s *State) Progress() string {
	undone := len(s.Changes) - len(s.left())
	switch s.Status {
	case RolledBack:
		return "rolled back"
	case RollingBack:
		return fmt.Sprintf("%d of %d undone", undone, len(s.Changes))
	}
	text := fmt.Sprintf("%d of %d completed", s.CompletedPhases, s.TotalPhases)
	if n := s.count(NotApplicable); n > 0 {
		text += fmt.Sprintf(", %d not applicable", n)
	}
	return text
}

// changed counts the changes, and how many of them are undone.
func changed(all, undone int) string {
	text := fmt.Sprintf("%d changes", all)
	if all == 1 {
		text = "1 change"
	}
	switch undone {
	case 0:
		return text + ", none undone"
	case all:
		return text + ", all undone"
	}
	return fmt.Sprintf("%s, %d undone", text, undone)
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Second / 10).String()
}

// tail has the number of changes, what a rollback has yet to do, and the errors.
func (v View) tail(b *strings.Builder) {
	left := v.left()
	if len(v.Changes) > 0 {
		_, _ = fmt.Fprintf(b, "\n%s\n", changed(len(v.Changes), len(v.Changes)-len(left)))
	}
	for _, c := range left {
		if v.Status == RollingBack {
			_, _ = fmt.Fprintf(b, "  still to undo: %s\n", event.OneLine(c.Undo))
		}
	}
	if len(v.Errors) > 0 {
		_, _ = fmt.Fprintln(b, "\nerrors, the newest last:")
	}
	for _, e := range v.Errors {
		_, _ = fmt.Fprintf(b, "  %s %s\n    %s\n", e.Time.Local().Format(time.TimeOnly), e.Phase, event.OneLine(e.Error))
	}
}
