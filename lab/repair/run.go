package repair

import (
	"slices"
	"sync"
	"time"

	"k8slab/lab/cluster"
	"k8slab/lab/event"
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// Repaired is one thing that Run found. Exactly one of Did, Would and Left is set.
type Repaired struct {
	Node     string `json:"node,omitempty"` // "" for the whole cluster
	Symptom  string `json:"symptom"`
	Evidence string `json:"evidence"`
	Did      string `json:"did,omitempty"`   // what was done
	Would    string `json:"would,omitempty"` // what would be done, in a dry run
	Left     string `json:"left,omitempty"`  // what a person has to do

	rungs, worked []Rung // of the ladder: those that were taken on the node, and those of them that did not fail
}

// kubeadmRunning and labnodeSilent are what is found of a node, and are no causes of the catalogue.
const (
	kubeadmRunning symptom.ID = "kubeadm-running"
	labnodeSilent  symptom.ID = "labnode-not-answering"
)

// repairRun is one run of repairs.
type repairRun struct {
	*cluster.Run
	upTo    Rung
	step    *event.Step
	before  []symptom.Finding    // of the diagnosis before the first repair of this pass
	wrong   []kube.WrongDocument // that were found in this pass
	looked  bool                 // at the documents in this pass
	idle    map[string]bool      // stages that the first pass leaves out; in a dry run, those that had nothing to do
	emerged bool                 // the last wait ended because a repair has uncovered another failure
	more    int                  // passes that may still follow because a repair uncovers another failure
	waited  bool                 // it did something that the cluster shows only after a while
	settle  time.Duration        // how long that may take, if not effectTime
	mu      sync.Mutex
	found   []Repaired
	added   int // how often something was added to found
	pass    int // how many of found are of earlier passes
}

// add keeps a finding and shows it.
func (r *repairRun) add(f Repaired) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, f)
	r.added++
	r.step.Progress("%s", f)
}

// String is the finding in one line.
func (f Repaired) String() string {
	text := f.Symptom
	if f.Node != "" {
		text = f.Node + ": " + text
	}
	text += ": " + f.Evidence
	switch {
	case f.Left != "":
		return text + "; not repaired: " + f.Left
	case f.Would != "":
		return text + "; would: " + f.Would
	}
	return text + "; repaired: " + f.Did
}

// repaired adds what was done, or in a dry run would be.
func (r *repairRun) repaired(f Repaired, would, did string) {
	if f.Did = did; r.DryRun {
		f.Did, f.Would = "", would
	}
	r.add(f)
}

// takesOver takes what the node's own repair left to somebody else off the list, and tells whether there was that, and nothing else, in this
// pass.
func (r *repairRun) takesOver(name string, id symptom.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := func(f Repaired) bool { return f.Node == name }
	left := func(f Repaired) bool { return own(f) && f.Symptom == string(id) && f.Left != "" }
	pass := slices.DeleteFunc(slices.Clone(r.found[r.pass:]), left)
	if slices.ContainsFunc(pass, own) {
		return false
	}
	r.found = append(r.found[:r.pass:r.pass], pass...)
	return true
}

// has tells whether something was found on the node in this pass.
func (r *repairRun) has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.found[r.pass:], func(f Repaired) bool { return f.Node == name })
}
