// Package diagnose says what is wrong with a cluster: it collects facts, judges them without any further look, and writes the result as
// text, JSON or HTML, or keeps the facts in a bundle to be judged again elsewhere. It changes nothing on any machine.
package diagnose

import (
	"slices"
	"time"

	"k8slab/lab/diagnose/siterule"
	joining "k8slab/lab/join"
	"k8slab/lab/symptom"
)

// Schema is the version of a report as JSON: docs/schema/diagnose.v1.json describes it.
const Schema = "k8slab.diagnose/v1"

// Report is what a diagnosis found.
type Report struct {
	Schema   string            `json:"schema"`
	Lab      string            `json:"lab"`      // "" when a file was judged
	Source   string            `json:"source"`   // "live", or the path that was judged, or "-"
	Time     time.Time         `json:"time"`     // of the facts
	Took     float64           `json:"took"`     // seconds for collecting and judging
	Healthy  bool              `json:"healthy"`  // no finding fails, and nothing is undetermined: warnings alone are no illness
	Findings []symptom.Finding `json:"findings"` // root causes first, consequences after their cause; never null
	Nodes    []NodeRow         `json:"nodes,omitempty"`
	Ports    []PortRow         `json:"ports,omitempty"`
	Members  []MemberRow       `json:"members,omitempty"`
	Attempts []AttemptRow      `json:"attempts,omitempty"`
	Unread   []string          `json:"unread,omitempty"` // what could not be collected, with why; where it is ambiguous, the log to read next
	// Undetermined are lines of texts that say that something failed, where no finding says what.
	Undetermined []string `json:"undetermined,omitempty"`

	rules *siterule.Set // to judge with
}

// NodeRow is one node.
type NodeRow struct {
	Name          string  `json:"name"`
	Role          string  `json:"role"`
	IP            string  `json:"ip"`
	Machine       string  `json:"machine"`        // running, paused, off, …
	SSH           string  `json:"ssh"`            // "" when it answers, else the error
	Ready         string  `json:"ready"`          // True, False or Unknown, "" without a Node
	Kubelet       string  `json:"kubelet"`        // active, failed, …
	Runtime       string  `json:"runtime"`        // what answers on the CRI, or why none does
	RuntimeResult string  `json:"runtime_result"` // the result of that check: ok, warn, fixable or blocked; "" when it was not made
	Version       string  `json:"version"`        // kubelet's
	ClockOffset   float64 `json:"clock_offset"`   // seconds against the host
	DiskFree      float64 `json:"disk_free"`      // share, 0 to 1, of /var/lib
	MemoryFree    float64 `json:"memory_free"`    // share, 0 to 1
	FsyncP99      float64 `json:"fsync_p99"`      // seconds, 0 when not measured
}

// PortRow is one dial from a node to another's port that should be open.
type PortRow struct {
	From   string  `json:"from"`
	To     string  `json:"to"`
	Port   int     `json:"port"`
	Proto  string  `json:"proto"`
	Result string  `json:"result"` // open, refused, timeout, unreachable, or unknown: UDP has no answer
	Millis float64 `json:"millis"`
}

// MemberRow is one etcd member.
type MemberRow struct {
	Name      string   `json:"name"`
	ID        string   `json:"id"`
	PeerURL   string   `json:"peer_url"`
	Node      string   `json:"node"`
	Learner   bool     `json:"learner"`
	Started   bool     `json:"started"`
	Leader    bool     `json:"leader"`
	RaftIndex uint64   `json:"raft_index"`
	Behind    uint64   `json:"behind"` // entries behind the leader
	Rate      float64  `json:"rate"`   // raft entries per second of a learner
	DBSize    int64    `json:"db_size"`
	Alarms    []string `json:"alarms"`
	Error     string   `json:"error"`
}

// AttemptRow is one attempt to join.
type AttemptRow struct {
	Node     string     `json:"node"`
	Number   int        `json:"number"`
	Started  time.Time  `json:"started"`
	Elapsed  float64    `json:"elapsed"`
	Joined   bool       `json:"joined"`
	Symptom  symptom.ID `json:"symptom"`
	Evidence string     `json:"evidence"`
	Phases   []PhaseRow `json:"phases"`
}

// PhaseRow is a phase of an attempt.
type PhaseRow struct {
	Name    string  `json:"name"`
	At      float64 `json:"at"` // seconds from the attempt's start
	Elapsed float64 `json:"elapsed"`
}

// Failed reports whether anything does not work because of what was found. A warning alone is no failure.
func (r Report) Failed() bool {
	return slices.ContainsFunc(r.Findings, func(f symptom.Finding) bool { return f.Level == symptom.Fail })
}

// Worst names the first root cause, and says whether something failed that no cause explains; "" for neither.
func (r Report) Worst() string {
	switch causes := causesOf(r.Findings); {
	case len(causes) > 0 && (causes[0].Failed() || len(r.Undetermined) == 0):
		return causes[0].title()
	case len(r.Undetermined) > 0:
		return "undetermined"
	}
	return ""
}

// Reached is how many nodes answered.
func (r Report) Reached() (n int) {
	for _, row := range r.Nodes {
		if row.SSH == "" {
			n++
		}
	}
	return n
}

// Problems are the root causes of what fails, a line each, with the first piece of evidence.
func (r Report) Problems() []string { return r.lines((*cause).Failed) }

// Warnings are those of the other findings.
func (r Report) Warnings() []string { return r.lines(func(c *cause) bool { return !c.Failed() }) }

// Lasting are the problems that labctl repair repairs and that never pass by themselves.
func (r Report) Lasting() []string {
	return r.lines(func(c *cause) bool { return c.Failed() && c.Repairable && joining.Remedy(c.Symptom) != joining.Retry })
}

func (r Report) lines(such func(*cause) bool) (all []string) {
	for _, c := range causesOf(r.Findings) {
		if !such(c) {
			continue
		}
		line := c.title()
		if len(c.Evidence) > 0 {
			line += ": " + c.Evidence[0].Text
		}
		all = append(all, line)
	}
	return all
}

// Hints are what to do about the problems, or if there are none about the warnings.
func (r Report) Hints() (all []string) {
	for _, c := range causesOf(r.Findings) {
		if c.Failed() == r.Failed() && !slices.Contains(all, c.Hint) {
			all = append(all, c.Hint)
		}
	}
	return all
}

// settle completes a report from its findings.
func (r *Report) settle(began time.Time) {
	if r.Findings == nil {
		r.Findings = []symptom.Finding{}
	}
	noted(r.Findings, r.rules)
	r.Schema, r.rules = Schema, nil
	r.Healthy = !r.Failed() && len(r.Undetermined) == 0
	r.Took = time.Since(began).Round(time.Millisecond).Seconds()
}
