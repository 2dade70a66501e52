package diagnose

import (
	"fmt"
	"io"
)

// WriteText writes the report for a person.
func WriteText(w io.Writer, r Report, _ int, _ bool) error {
	if r.Healthy {
		_, err := fmt.Fprintln(w, "nothing is wrong")
		return err
	}
	for _, f := range r.Findings {
		because := ""
		if f.BecauseOf != "" {
			because = " (because of " + string(f.BecauseOf) + ")"
		}
		if _, err := fmt.Fprintf(w, "%s %s %s%s: %s\n", f.Level, f.Symptom, f.Node, because, f.Meaning); err != nil {
			return err
		}
		for _, e := range f.Evidence {
			if _, err := fmt.Fprintf(w, "  %s: %s\n", e.Source, e.Text); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(w, "  next: %s\n", f.Hint); err != nil {
			return err
		}
	}
	return nil
}
