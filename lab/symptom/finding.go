package symptom

import "strings"

// Level says how bad a finding is.
type Level string

// The levels.
const (
	Fail Level = "fail" // something does not work because of it
	Warn Level = "warn" // nothing is known to fail because of it
)

// Finding is one cause that a judge named.
type Finding struct {
	Symptom    ID         `json:"symptom"`
	Detail     string     `json:"detail,omitempty"` // the kind of the cause, if its kinds have different remedies
	Level      Level      `json:"level"`
	Node       string     `json:"node"` // "" if the evidence does not name one
	Meaning    string     `json:"meaning"`
	Evidence   []Evidence `json:"evidence"`
	Hint       string     `json:"hint"`
	Repairable bool       `json:"repairable"`
	BecauseOf  ID         `json:"because_of"`      // the cause among the findings that brought this one about, or may hide it; "" for a root
	Rule       string     `json:"rule,omitempty"`  // the site's own rule that alone found it, such as home.yaml:12
	Notes      []Note     `json:"notes,omitempty"` // what the site's own rules add to the hint
}

// Note is a site's own text, and the rule that has it.
type Note struct {
	Text string `json:"text"`
	Rule string `json:"rule"`
}

// Evidence is one place where a finding shows.
type Evidence struct {
	Source string `json:"source"`         // what was read, and the journal's program when it names one
	Line   int    `json:"line"`           // from 1
	Time   string `json:"time"`           // as written there, "" when there is none
	Text   string `json:"text"`           // redacted, one line
	Rule   string `json:"rule,omitempty"` // the site's own rule that cites it
}

// The details of etcd-learner-not-in-sync: why the new member does not catch up.
const (
	NeverStarted    = "never-started"
	PeerPortBlocked = "peer-port-blocked"
	WrongAddress    = "wrong-address"
	SlowDisk        = "slow-disk"
	CatchingUp      = "catching-up"
	AlreadyPromoted = "already-promoted"
)

// UserPod begins the detail of an image-pull-failure that concerns users' pods only: it breaks nothing else. Why the image does not come
// follows.
const UserPod = "user-pod "

// perhaps begins the meaning of what is only suspected.
const perhaps = "Perhaps instead: "

// Suspicion is a finding of what another one may be mistaken for. It is a warning, nothing is repaired because of it, and it is because
// of the finding that may hide it.
func Suspicion(id ID, of Finding) Finding {
	s := byID[id]
	return Finding{Symptom: id, Level: Warn, Node: of.Node, Meaning: perhaps + s.Meaning, Evidence: of.Evidence[:min(len(of.Evidence), 1)],
		Hint: s.Hint, BecauseOf: of.Symptom}
}

// Suspected says that the finding is only what another one may be mistaken for. A judge of several texts of one node may drop it, because
// the other texts tell more.
func (f Finding) Suspected() bool { return strings.HasPrefix(f.Meaning, perhaps) }
