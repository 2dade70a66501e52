package diagnose

import (
	"slices"
	"strconv"
	"strings"

	"k8slab/lab/symptom"
)

// cause is a finding as a reader meets it: the same finding on several nodes is one cause, and what it brought about stands below it.
type cause struct {
	symptom.Finding // of the first node
	Nodes           []string
	Evidence        []sighting
	Consequences    []*cause
	Instead         []*cause // what it is often mistaken for
}

// sighting is a piece of evidence.
type sighting struct {
	Node string // when the cause shows on several
	symptom.Evidence
}

// Where says what was read there, such as "kubelet:1041".
func (s sighting) Where() string {
	where := s.Source
	if s.Line > 0 {
		where += ":" + strconv.Itoa(s.Line)
	}
	if s.Rule != "" {
		where += " (rule " + s.Rule + ")"
	}
	if s.Node != "" && !strings.HasPrefix(where, s.Node+" ") && where != s.Node {
		where = strings.TrimSpace(s.Node + " " + where)
	}
	return where
}

// When is the time, unless the text has it.
func (s sighting) When() string {
	if strings.Contains(s.Text, s.Time) {
		return ""
	}
	return s.Time
}

// Name is the symptom with its kind, such as "etcd-learner-not-in-sync (slow-disk)".
func (c *cause) Name() string {
	if c.Detail == "" {
		return string(c.Symptom)
	}
	return string(c.Symptom) + " (" + c.Detail + ")"
}

// Failed tells whether something does not work because of it.
func (c *cause) Failed() bool { return c.Level != symptom.Warn }

// Where says on which nodes, and nothing when the evidence names none.
func (c *cause) Where() string { return fewOf(c.Nodes, 6) }

// title is the name and the nodes.
func (c *cause) title() string {
	if where := c.Where(); where != "" {
		return c.Name() + " on " + where
	}
	return c.Name()
}

// causesOf groups findings: the roots in their order, each with its consequences and with what it may be mistaken for.
func causesOf(findings []symptom.Finding) []*cause {
	all := merged(findings)
	var roots []*cause
	for _, c := range all {
		switch root := rootOf(c, all); {
		case root == c:
			roots = append(roots, c)
		case c.Suspected():
			root.Instead = append(root.Instead, c)
		default:
			root.Consequences = append(root.Consequences, c)
		}
	}
	return roots
}

// merged makes one cause of findings that say the same of different nodes.
func merged(findings []symptom.Finding) []*cause {
	var all []*cause
	evidence := map[*cause][][]sighting{}
	for _, f := range findings {
		i := slices.IndexFunc(all, func(c *cause) bool { return alike(c.Finding, f) && f.Node != "" && c.Node != "" })
		if i < 0 {
			i = len(all)
			all = append(all, &cause{Finding: f})
		}
		c := all[i]
		if f.Node != "" && !slices.Contains(c.Nodes, f.Node) {
			c.Nodes = append(c.Nodes, f.Node)
		}
		var seen []sighting
		for _, e := range f.Evidence {
			seen = append(seen, sighting{Node: f.Node, Evidence: e})
		}
		evidence[c] = append(evidence[c], seen)
	}
	for _, c := range all {
		c.Evidence = interleaved(evidence[c])
		for i := range c.Evidence {
			if len(c.Nodes) < 2 {
				c.Evidence[i].Node = ""
			}
		}
	}
	return all
}

func alike(a, b symptom.Finding) bool {
	return a.Symptom == b.Symptom && a.Detail == b.Detail && a.Level == b.Level && a.Meaning == b.Meaning && a.Hint == b.Hint &&
		a.BecauseOf == b.BecauseOf && a.Repairable == b.Repairable && a.Rule == b.Rule
}

// interleaved takes the first of each list, then the second of each, so that the beginning shows every node.
func interleaved(lists [][]sighting) []sighting {
	var out []sighting
	for i, more := 0, true; more; i++ {
		more = false
		for _, l := range lists {
			if i < len(l) {
				out, more = append(out, l[i]), true
			}
		}
	}
	return out
}

// rootOf follows what c is because of to the end; c itself when that is nothing that was found.
func rootOf(c *cause, all []*cause) *cause {
	at := c
	for range all {
		if at.BecauseOf == "" {
			return at
		}
		next := bringer(at, all)
		if next == nil {
			return at
		}
		at = next
	}
	return c // a circle
}

// bringer is the cause that c names, of several the one on a node of c's.
func bringer(c *cause, all []*cause) *cause {
	var found *cause
	for _, o := range all {
		if o.Symptom != c.BecauseOf || o == c {
			continue
		}
		if slices.ContainsFunc(o.Nodes, func(n string) bool { return slices.Contains(c.Nodes, n) }) {
			return o
		}
		if found == nil {
			found = o
		}
	}
	return found
}

// fewOf lists names, of many only the first.
func fewOf(names []string, most int) string {
	if len(names) <= most+1 { // "and 1 more" is no shorter than the name
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(len(names)-most) + " more"
}
