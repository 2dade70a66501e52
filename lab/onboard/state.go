package onboard

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8slab/lab/event"
)

// schema is the version of the state file that this code reads and writes.
const schema = 1

// What keeps a state file, whatever happens, well below maxSize.
const (
	maxErrors = 50      // the newest ones are kept
	maxText   = 2 << 10 // bytes of one error
	maxSize   = 1 << 20 // bytes of a state file
)

// Status is where an onboarding, a phase or a change stands.
type Status string

const (
	// NotStarted is a phase before its first attempt.
	NotStarted Status = "not_started"
	// InProgress is an onboarding or a phase that has begun, and stays when its process is interrupted.
	InProgress Status = "in_progress"
	// Completed is an onboarding or a phase that has ended well.
	Completed Status = "completed"
	// Failed is a phase whose last attempt has failed.
	Failed Status = "failed"
	// Skipped is the pre-validation that the user did not want.
	Skipped Status = "skipped"
	// NotApplicable is a phase that had nothing to check or to do, because the cluster does not have what it is about.
	NotApplicable Status = "not_applicable"
	// RollingBack is an onboarding that is being undone, and stays when its process is interrupted.
	RollingBack Status = "rolling_back"
	// RolledBack is an onboarding of which every change is undone and verified.
	RolledBack Status = "rolled_back"

	// Intended is a change that was announced: it may have been made or not.
	Intended Status = "intended"
	// Made is a change that was made.
	Made Status = "made"
	// Undone is a change that was undone, which was verified.
	Undone Status = "undone"
)

// Target is whom an onboarding takes where.
type Target struct {
	Node      string `json:"node"`
	Role      string `json:"role"`       // control-plane or worker
	Cluster   string `json:"cluster"`    // its name, for people
	ClusterID string `json:"cluster_id"` // tells clusters of one name apart: the lab's UUID, or one of that of the namespace kube-system and the cluster's CA
}

// State is what is known of one onboarding: the content of its file. Times are UTC, to the millisecond.
type State struct {
	Schema int `json:"schema"`
	Target
	Status          Status             `json:"status"`
	Started         time.Time          `json:"started"`
	Timestamp       time.Time          `json:"timestamp"` // of the last write
	CurrentPhase    PhaseID            `json:"current_phase"`
	CompletedPhases int                `json:"completed_phases"`
	FailedPhases    int                `json:"failed_phases"`
	TotalPhases     int                `json:"total_phases"`
	PhaseStatus     map[PhaseID]Status `json:"phase_status"`
	PhaseErrors     map[PhaseID]string `json:"phase_errors"` // of failed phases; "" for the others
	PhaseTimes      map[PhaseID]Times  `json:"phase_times"`
	Errors          []Failure          `json:"errors"` // the history, the oldest first; it outlives a mended phase
	Changes         []Change           `json:"changes"`
}

// Times says when a phase ran.
type Times struct {
	Started  time.Time `json:"started"`        // of the first attempt
	Ended    time.Time `json:"ended,omitzero"` // of the last attempt, absent while that runs and when it was killed
	Attempts int       `json:"attempts"`
	// Seconds is the time of all attempts together, without what was between them. A killed attempt counts up to its last write.
	Seconds float64 `json:"seconds"`
}

// Failure is one error of the history.
type Failure struct {
	Time  time.Time `json:"time"`
	Phase PhaseID   `json:"phase"`
	Error string    `json:"error"` // redacted
}

// Change is one thing that a phase changes, as data, so that another process can undo it. Phase, Kind and Params tell changes apart. It has
// no secrets: it is shown.
type Change struct {
	Phase  PhaseID           `json:"phase"`
	Kind   string            `json:"kind"` // names its Undoer
	Params map[string]string `json:"params,omitempty"`
	What   string            `json:"what"` // what is done, for people
	Undo   string            `json:"undo"` // how it is undone, for people
	Status Status            `json:"status"`
	Time   time.Time         `json:"time"` // of the status
}

func (c Change) same(o Change) bool {
	return c.Phase == o.Phase && c.Kind == o.Kind && maps.Equal(c.Params, o.Params)
}

func newState(t Target) *State {
	s := &State{
		Schema: schema, Target: t, Status: InProgress, Started: now(), TotalPhases: len(phases),
		PhaseStatus: map[PhaseID]Status{}, PhaseErrors: map[PhaseID]string{}, PhaseTimes: map[PhaseID]Times{},
		Errors: []Failure{}, Changes: []Change{},
	}
	for _, p := range phases {
		s.PhaseStatus[p.ID], s.PhaseErrors[p.ID] = NotStarted, ""
	}
	return s
}

// clone is a copy whose change leaves the state as it is. The parameters of changes are shared: they never change.
func (s *State) clone() *State {
	c := *s
	c.PhaseStatus, c.PhaseErrors, c.PhaseTimes = maps.Clone(s.PhaseStatus), maps.Clone(s.PhaseErrors), maps.Clone(s.PhaseTimes)
	c.Errors, c.Changes = slices.Clone(s.Errors), slices.Clone(s.Changes)
	return &c
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

func (s *State) finished() bool { return s.Status == Completed || s.Status == RolledBack }

// count tells how many phases have a status.
func (s *State) count(status Status) int {
	n := 0
	for _, st := range s.PhaseStatus {
		if st == status {
			n++
		}
	}
	return n
}

// set moves a phase to a status; err is why it failed.
func (s *State) set(id PhaseID, status Status, err error) {
	s.PhaseStatus[id], s.PhaseErrors[id] = status, ""
	if err != nil {
		s.PhaseErrors[id] = stored(err)
	}
	s.CompletedPhases, s.FailedPhases = s.count(Completed), s.count(Failed)
}

// record adds an error to the history.
func (s *State) record(id PhaseID, err error) {
	s.Errors = append(s.Errors, Failure{Time: now(), Phase: id, Error: stored(err)})
	if extra := len(s.Errors) - maxErrors; extra > 0 {
		s.Errors = s.Errors[extra:]
	}
}

// stored is an error's text as the state keeps it: without secrets, never empty, and of a bounded length.
func stored(err error) string {
	if text := cut(strings.ToValidUTF8(event.Redact(err.Error()), "?")); text != "" {
		return text
	}
	return "an error without a text"
}

func cut(text string) string {
	const mark = "…"
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText-len(mark)], "") + mark
}

// left lists the changes that are not undone yet, the newest first.
func (s *State) left() []Change {
	left := []Change{}
	for i := len(s.Changes) - 1; i >= 0; i-- {
		if s.Changes[i].Status != Undone {
			left = append(left, s.Changes[i])
		}
	}
	return left
}
