package fact

import "k8slab/lab/symptom"

// Organ is one thing that a node or the cluster lives by, measured from end to end: whatever breaks it, the measurement fails.
type Organ struct {
	Name    string   `json:"name"`
	Node    string   `json:"node,omitempty"`  // where it was measured, or what it shows to be ill; "" for the whole cluster
	Detail  string   `json:"detail"`          // what exactly was measured
	Error   string   `json:"error,omitempty"` // "" works
	Named   []Fault  `json:"named,omitempty"` // the causes that the measurement shows by itself; none where Error has none
	Lines   []string `json:"lines,omitempty"` // the last lines of logs that mention it, without secrets
	Elapsed float64  `json:"elapsed"`         // seconds
	Late    bool     `json:"-"`               // it had too little time, and might work with more
}

// Fault is a known cause that a measurement shows.
type Fault struct {
	Symptom symptom.ID `json:"symptom"`
	Source  string     `json:"source"` // the file, port or program that shows it
	Text    string     `json:"text"`
	Warn    bool       `json:"warn,omitempty"` // nothing fails of it yet
}
