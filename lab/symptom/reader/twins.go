package reader

import (
	"bytes"
	"regexp"

	"k8slab/lab/symptom"
)

// twins finds machines that bear the same identity, by the values themselves: no program says so.
type twins struct {
	host      string            // whose output is being read, "" when nothing said
	kind      string            // of the identity that was last spoken of
	spoken    int               // the line where
	bearers   map[string]bearer // by kind and value
	forgotten bool              // too many to remember
}

// bearer is where an identity was seen first.
type bearer struct {
	host string
	line int
}

const (
	// twinLines is how far into a text identities are compared, and twinLimit how many are remembered.
	twinLines, twinLimit = 4000, 500
	// spokenReach is how many lines after a command or heading its output stands, and listReach how close the lines of a list are.
	spokenReach, listReach = 4, 2
)

var (
	identity = regexp.MustCompile(`\b(?:[0-9a-f]{32}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\b`)
	// whose finds the machine in a prompt, a heading of kubectl describe, a name in YAML or JSON, and what Ansible writes above output.
	whose = regexp.MustCompile(`^(?:\[?[\w-]+@([\w.-]+)|Name: +(\S+)|\s+"?name"?: "?([\w.-]+)"?,?$|([\w.-]+) \| (?:CHANGED|SUCCESS))`)
	kinds = []struct{ word, kind string }{
		{"machine-id", "machine"}, {"machineid", "machine"}, {"machine id", "machine"}, {"machine_id", "machine"},
		{"product_uuid", "system"}, {"systemuuid", "system"}, {"system uuid", "system"},
	}
)

// reads takes a line and reports whether it shows an identity that another machine was seen to bear.
func (t *twins) reads(number int, line []byte) bool {
	if number > twinLines || len(line) > 200 || t.forgotten {
		return false
	}
	if m := whose.FindSubmatch(line); m != nil {
		t.host = string(bytes.Join(m[1:], nil))
	}
	lower := bytes.ToLower(line)
	for _, k := range kinds {
		if bytes.Contains(lower, []byte(k.word)) {
			t.kind, t.spoken = k.kind, number
		}
	}
	if t.kind == "" || number-t.spoken > spokenReach {
		return false
	}
	value := identity.Find(line)
	if value == nil {
		return false
	}
	host := t.host
	if h := readHead(string(line)); h.node != "" { // a journal says of each line whose it is
		host = h.node
	}
	key := t.kind + " " + string(value)
	before, seen := t.bearers[key]
	if !seen {
		if t.forgotten = len(t.bearers) >= twinLimit; t.bearers == nil {
			t.bearers = map[string]bearer{}
		}
		t.bearers[key] = bearer{host, number}
		return false
	}
	if before.host != "" && host != "" {
		return before.host != host
	}
	return before.host == host && number-before.line <= listReach
}

// twin is the sight of an identity that two machines bear.
var twin = &known{phrase: phrase{parts: []string{""}}, id: symptom.DuplicateMachineIdentity, pattern: pattern{strength: sure}}
