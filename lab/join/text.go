package join

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8slab/lab/symptom"
)

// Explain writes an Outcome for people: for a failure what became of kubeadm, the likely causes and the commands to run next.
func Explain(w io.Writer, o Outcome, t Target, meaning func(symptom.ID) string) {
	_, _ = io.WriteString(w, explanation(o, t, meaning))
}

func explanation(o Outcome, t Target, meaning func(symptom.ID) string) string {
	var b strings.Builder
	switch {
	case o.Already:
		b.WriteString("This machine is a healthy member already; nothing was changed.\n")
		return b.String()
	case o.Joined:
		fmt.Fprintf(&b, "Joined and proven healthy in %s.\n", o.Elapsed.Round(100*time.Millisecond))
		return b.String()
	}
	fmt.Fprintf(&b, "The join failed in %s after %s.\n", o.Phase, o.Elapsed.Round(100*time.Millisecond))
	b.WriteString("\nkubeadm join:\n")
	fmt.Fprintf(&b, "  finished:  %s\n", finished(o))
	fmt.Fprintf(&b, "  failed:    yes\n")
	fmt.Fprintf(&b, "  exit code: %s\n", code(o))
	fmt.Fprintf(&b, "  phase:     %s\n", o.Phase)
	if o.Evidence != "" {
		fmt.Fprintf(&b, "  error:     %s\n", o.Evidence)
	}
	b.WriteString("\nLikely cause:\n")
	for _, cause := range causesOf(o, meaning) {
		fmt.Fprintf(&b, "  - %s\n", cause)
	}
	b.WriteString("\nNext:\n")
	for _, next := range nextOf(o, t) {
		fmt.Fprintf(&b, "  %s\n", next)
	}
	if o.Output != "" {
		b.WriteString("\nLast output of kubeadm (stdout and stderr):\n")
		for _, l := range strings.Split(o.Output, "\n") {
			fmt.Fprintf(&b, "  %s\n", l)
		}
	}
	return b.String()
}

func finished(o Outcome) string {
	switch {
	case o.Finished:
		return "yes"
	case o.Output == "" && o.ExitCode < 0:
		return "it never ran"
	}
	return "no, it was ended"
}

func code(o Outcome) string {
	if o.ExitCode < 0 {
		return "none"
	}
	return fmt.Sprint(o.ExitCode)
}

// causesOf names the cause, and the other checks that stop a join.
func causesOf(o Outcome, meaning func(symptom.ID) string) []string {
	var causes []string
	seen := map[symptom.ID]bool{}
	name := func(id symptom.ID) {
		if id == "" || seen[id] {
			return
		}
		seen[id] = true
		text := string(id)
		if meaning != nil {
			if m := meaning(id); m != "" {
				text += ": " + m
			}
		}
		causes = append(causes, text)
	}
	name(o.Symptom)
	for _, c := range o.Checks {
		if c.Result == Blocked || c.Result == Fixable {
			name(c.Symptom)
		}
	}
	if len(causes) == 0 {
		causes = []string{
			"not known. The control plane may not be ready to accept nodes, the network between them may be interrupted, " +
				"or kubelet may fail to start; the commands below tell these apart",
		}
	}
	return causes
}

// nextOf are the commands to run, the cause's own first.
func nextOf(o Outcome, t Target) []string {
	var next []string
	if o.Hint != "" {
		next = strings.Split(strings.TrimSpace(o.Hint), "\n")
	}
	next = append(next, "journalctl -u kubelet -n 100", "systemctl status kubelet containerd", "labnode facts", "cat "+kubeadmLog)
	if t.Endpoint != "" {
		next = append(next, fmt.Sprintf("curl -k https://%s/healthz", t.Endpoint))
	}
	return next
}
