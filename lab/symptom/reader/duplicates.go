package reader

import (
	"bytes"
	"regexp"

	"k8slab/lab/symptom"
)

// duplicateIDs finds machines that have the same identity. It compares the values, because no program reports that.
type duplicateIDs struct {
	host      string           // whose output is being read, "" if unknown
	kind      string           // of the identity that was mentioned last
	mentioned int              // in which line that was
	first     map[string]place // by kind and value: where it was seen first
	full      bool             // there are too many to remember
}

// place is a machine and a line of the text.
type place struct {
	host string
	line int
}

const (
	// identityLines is how far into a text identities are compared, and identityLimit how many are remembered.
	identityLines, identityLimit = 4000, 500
	// mentionReach is how many lines after a command or heading its output stands, and listReach how close the lines of a list are.
	mentionReach, listReach = 4, 2
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

// reads takes a line and reports whether it shows an identity that another machine has too.
func (t *duplicateIDs) reads(number int, line []byte) bool {
	if number > identityLines || len(line) > 200 || t.full {
		return false
	}
	if m := whose.FindSubmatch(line); m != nil {
		t.host = string(bytes.Join(m[1:], nil))
	}
	lower := bytes.ToLower(line)
	for _, k := range kinds {
		if bytes.Contains(lower, []byte(k.word)) {
			t.kind, t.mentioned = k.kind, number
		}
	}
	if t.kind == "" || number-t.mentioned > mentionReach {
		return false
	}
	value := identity.Find(line)
	if value == nil {
		return false
	}
	host := t.host
	if h := readHeader(line); h.node != "" { // a journal names the machine in each line
		host = h.node
	}
	key := t.kind + " " + string(value)
	before, seen := t.first[key]
	if !seen {
		if t.full = len(t.first) >= identityLimit; t.first == nil {
			t.first = map[string]place{}
		}
		t.first[key] = place{host, number}
		return false
	}
	if before.host != "" && host != "" {
		return before.host != host
	}
	return before.host == host && number-before.line <= listReach
}

// duplicateID stands for the sight of an identity that two machines have.
var duplicateID = &known{phrase: phrase{parts: []string{""}}, id: symptom.DuplicateMachineIdentity, pattern: pattern{strength: sure}}
