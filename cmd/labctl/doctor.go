package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"k8slab/lab"
	"k8slab/lab/event"
	"k8slab/lab/host"
	"k8slab/lab/provision"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check whether this computer can run the lab; changes nothing",
		Long: `Check what the lab of cluster.yaml needs of this computer: libvirt, packages, the kernel, its modules and limits, swap, AppArmor, addresses,
firewalls. Each check says what it saw, why that matters and what fixes it. "mends" means that labctl up fixes it. labctl up makes the same
checks before it makes a lab, and refuses if one fails.

The exit status is 1 if a check fails.`,
		Example: `  labctl doctor
  labctl doctor -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			checks, err := show(a, func(l *lab.Lab) ([]host.Check, error) { return provision.Doctor(cmd.Context(), l.Closed()), nil }, printChecks)
			if n := count(checks, host.Fails); err == nil && n > 0 {
				err = fmt.Errorf("this computer cannot carry the lab yet: %d of %d checks failed", n, len(checks))
			}
			return err
		},
	}
}

func count(checks []host.Check, r host.Result) (n int) {
	for _, c := range checks {
		if c.Result == r {
			n++
		}
	}
	return n
}

// printChecks shows each check: what is fine in a line, the rest with its reason and remedy.
func printChecks(w io.Writer, checks []host.Check) {
	width, _ := terminalOf(w)
	if width <= 0 {
		width = 100
	}
	const margin = 22
	for _, c := range checks {
		label := fmt.Sprintf("%-6s%s", c.Result, c.ID)
		for _, part := range []struct{ text, before string }{{c.Seen, ""}, {c.Why, "because "}, {c.Do, "do: "}} {
			if part.text == "" {
				continue
			}
			for _, line := range event.Fold(event.OneLine(part.before+part.text), max(width-margin, 30), false) {
				_, _ = fmt.Fprintf(w, "%-*s%s\n", margin, label, line)
				label = ""
			}
		}
	}
	if count(checks, host.Fails) == 0 {
		_, _ = fmt.Fprintf(w, "\nNothing prevents the lab: `labctl up`. %d warnings; up fixes %d.\n", count(checks, host.Warn), count(checks, host.Mends))
	}
}
