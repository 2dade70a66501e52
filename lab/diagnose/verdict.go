package diagnose

import (
	"fmt"
	"regexp"
	"strings"

	"k8slab/lab/node"
)

// live is the Source of a report about the lab as it is now.
const live = "live"

// plainPath is what may stand in a command as it is shown: a view may have changed or cut any other.
var plainPath = regexp.MustCompile(`^[\w@+:,./][\w@+:,./ -]{0,99}$`)

// verdict is the answer in a sentence. tone is good, warn or bad.
func verdict(r Report, causes []*cause) (sentence, tone string) {
	fails, warns, follow := 0, 0, 0
	for _, c := range causes {
		follow += len(c.Consequences)
		if c.Failed() {
			fails++
		} else {
			warns++
		}
	}
	parts := []string{count(fails, "problem")}
	if follow > 0 {
		parts = append(parts, count(follow, "consequence"))
	}
	if warns > 0 {
		parts = append(parts, count(warns, "warning"))
	}
	switch {
	case fails > 0:
		return listed(parts) + " found.", "bad"
	case len(r.Undetermined) > 0:
		return "Undetermined: something failed, and no line says what" + andOf(parts[1:]) + ".", "warn"
	case warns > 0:
		return "No failures, " + listed(parts[1:]) + ".", "warn"
	case !r.Healthy:
		return "Not healthy, but no cause was found.", "bad"
	case len(r.Unread) > 0:
		return fmt.Sprintf("No problem found, but %s could not be read.", count(len(r.Unread), "item")), "warn"
	}
	return "Nothing is wrong.", "good"
}

// andOf continues a sentence with what else was found.
func andOf(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return "; " + listed(parts)
}

// listed is "a, b and c".
func listed(parts []string) string {
	last := len(parts) - 1
	if last == 0 {
		return parts[0]
	}
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

// scope says what was looked at.
func scope(r Report) string {
	answered := 0
	for _, m := range r.Members {
		if m.Error == "" {
			answered++
		}
	}
	var parts []string
	if len(r.Nodes) > 0 {
		parts = append(parts, ofAll(r.Reached(), len(r.Nodes), "node"))
	}
	if len(r.Members) > 0 {
		parts = append(parts, ofAll(answered, len(r.Members), "etcd member"))
	}
	of := strings.Join(parts, " and ")
	switch {
	case r.Source == "-":
		return spaced("Standard input", inBrackets(of)) + " analysed in " + took(r.Took) + "."
	case r.Source != live && r.Source != "":
		return spaced(r.Source, inBrackets(of)) + " analysed in " + took(r.Took) + "."
	case of == "":
		of = "no node"
	}
	if r.Lab != "" {
		of += fmt.Sprintf(" of lab %q", r.Lab)
	}
	return "Checked " + of + " in " + took(r.Took) + "."
}

func ofAll(n, of int, what string) string {
	if n == of {
		return count(of, what)
	}
	return fmt.Sprintf("%d of %s", n, count(of, what))
}

func inBrackets(of string) string {
	if of == "" {
		return ""
	}
	return "(" + of + ")"
}

func spaced(a, b string) string { return strings.TrimSpace(a + " " + b) }

// next is the command to go on with, in the form of a hint.
func next(r Report, causes []*cause) string {
	if r.Source != live && r.Source != "" {
		path := "FILE"
		if plainPath.MatchString(r.Source) {
			path = node.Quote([]string{r.Source})
		}
		return "`labctl diagnose --from " + path + " -o html > diagnose.html` shows it as a page."
	}
	if names := repairs(causes); names != "" {
		return "`labctl repair` repairs " + names + "; then run `labctl diagnose` again."
	}
	if len(causes) == 0 && r.Healthy && len(r.Unread) == 0 {
		return "`labctl diagnose -o html > diagnose.html` shows everything that was checked."
	}
	return "`labctl diagnose --bundle diagnose.tar.gz` saves everything that was read, without secrets, to share it."
}

// repairs lists what labctl repair can repair: roots, or where it can repair none their consequences.
func repairs(causes []*cause) string {
	var names []string
	for _, c := range causes {
		if c.Repairable {
			names = append(names, place(c))
		}
	}
	if len(names) == 0 {
		for _, c := range causes {
			for _, d := range c.Consequences {
				if d.Repairable {
					names = append(names, place(d))
				}
			}
		}
	}
	return fewOf(names, 3)
}

// place names a cause and its nodes.
func place(c *cause) string {
	if where := c.Where(); where != "" {
		return string(c.Symptom) + " on " + where
	}
	return string(c.Symptom)
}

func count(n int, what string) string { return fmt.Sprintf("%d %s", n, plural(n, what, what+"s")) }

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// took is how long the diagnosis worked.
func took(s float64) string {
	if s < 0.1 {
		return fmt.Sprintf("%.0f ms", s*1000)
	}
	return fmt.Sprintf("%.1f s", s)
}

// seconds is a duration: the smaller, the finer.
func seconds(s float64) string {
	switch {
	case s < 0:
		return "-" + seconds(-s)
	case s < 0.9995:
		return fmt.Sprintf("%.0fms", s*1000)
	case s < 9.95:
		return fmt.Sprintf("%.1fs", s)
	case s < 59.5:
		return fmt.Sprintf("%.0fs", s)
	case s < 3600-0.5:
		return fmt.Sprintf("%dm%02ds", int(s+0.5)/60, int(s+0.5)%60)
	}
	return fmt.Sprintf("%dh%02dm", int(s/3600), int(s/60)%60)
}
