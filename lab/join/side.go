package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8slab/lab/kube"
	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

// SideFault is something on the cluster's side that keeps a machine from joining, which no log of that machine tells in time.
type SideFault struct {
	Symptom  symptom.ID
	Evidence string
	Hint     string // "" is the symptom's

	Needs     []kube.JoinNeed // what the cluster lacks
	Pending   string          // the request for a certificate that nobody approves
	TokenGone bool
	Age       time.Duration // for how long it has been seen

	untold time.Duration // it is told of when it has lasted so long: before, it is normal
	ends   time.Duration // it may pass by itself for so long; noEnd: nobody knows
}

const (
	noEnd = time.Duration(1<<63 - 1)
	// watchLimit is longer than any join.
	watchLimit = 24 * time.Hour
)

// How long the cluster may take for its part of a join, on an idle computer.
const (
	SideEvery    = time.Second      // between two looks; a cause is named within three of them
	mendLimit    = 15 * time.Second // for repairs to show an effect
	signLimit    = 30 * time.Second // to sign a certificate: another controller manager may have to take over
	SilentLimit  = 15 * time.Second // for a webhook that does not answer: it may be about to start
	denialRepeat = 2 * SideEvery    // for a rejection to be no accident: it is asked for twice
)

// SideWatch watches a join from the cluster's side while kubeadm waits, with the administrator's rights.
type SideWatch struct {
	Node    string // the Node's name
	TokenID string // of the bootstrap token that the machine joins with; "" is none

	Look    func(context.Context) (kube.JoinSide, error)
	Rejects func(context.Context, string) (*kube.Rejection, error)
	Leader  func(context.Context, string) (holder string, renewed time.Time, err error)
	// Tell is told of each cause once.
	Tell func(SideFault)
	// Mend repairs what it may, and is asked again at each look as long as the fault lasts. Without it, what lasts ends no join unless it is
	// final: somebody else may be about to repair it.
	Mend func(context.Context, SideFault)
	// Patience multiplies all limits; 0 is 1.
	Patience time.Duration

	since     map[string]time.Time
	told      map[string]bool
	looks     int
	rejection *kube.Rejection // of the last question
}

// Run watches until ctx ends, or until waiting is of no more use: then it returns the fault.
func (w *SideWatch) Run(ctx context.Context) *SideFault {
	w.since, w.told = map[string]time.Time{}, map[string]bool{}
	var final *SideFault
	_ = wait.For(ctx, "the cluster's side of the join of "+w.Node, watchLimit, SideEvery, func(ctx context.Context) error {
		if final = w.once(ctx); final == nil {
			return errors.New("nothing ends it")
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil
	}
	return final
}

// once looks, tells and mends. What cannot be seen is looked for again later.
func (w *SideWatch) once(ctx context.Context) *SideFault {
	faults, err := w.faults(ctx)
	if err != nil {
		return nil
	}
	present := map[string]bool{}
	for _, f := range faults {
		key := string(f.Symptom) + f.Pending
		present[key] = true
		if w.since[key].IsZero() {
			w.since[key] = time.Now()
		}
		f.Age = time.Since(w.since[key])
		if f.Age < w.limit(f.untold) {
			continue
		}
		if !w.told[key] {
			w.told[key] = true
			w.Tell(f)
		}
		if w.Mend != nil {
			w.Mend(ctx, f)
		}
		if f.Age >= w.limit(f.ends) {
			return &f
		}
	}
	for key := range w.since {
		if !present[key] {
			delete(w.since, key)
		}
	}
	return nil
}

func (w *SideWatch) limit(d time.Duration) time.Duration {
	if d == noEnd || w.Patience == 0 {
		return d
	}
	return d * w.Patience
}

// mendable is the limit of what Mend can repair.
func (w *SideWatch) mendable() time.Duration {
	if w.Mend == nil {
		return noEnd
	}
	return mendLimit
}

// faults are those of the present, the nearest cause first.
func (w *SideWatch) faults(ctx context.Context) ([]SideFault, error) {
	side, err := w.Look(ctx)
	if err != nil {
		return nil, err
	}
	faults := NeedFaults(side.Needs)
	for i := range faults {
		if !faults[i].later() {
			faults[i].ends = w.mendable()
		}
	}
	faults = append(faults, w.certificateFaults(ctx, side)...)
	if w.looks++; w.looks%2 == 0 { // not each time: the question goes through every webhook
		w.rejection, _ = w.Rejects(ctx, w.Node) // what cannot be asked is left to kubelet's log
	}
	if w.rejection != nil {
		faults = append(faults, RejectionFault(w.rejection, w.Node))
	}
	return faults, nil
}

// NeedFaults are the faults of a cluster that lacks what joins need. Alone they end no join.
func NeedFaults(needs []kube.JoinNeed) (faults []SideFault) {
	for _, kind := range []struct {
		right bool
		id    symptom.ID
	}{{false, symptom.JoinConfigMissing}, {true, symptom.BootstrapRBACForbidden}} {
		f := SideFault{Symptom: kind.id, ends: noEnd}
		if kind.right { // an API server that has just started denies everything until it has read its roles
			f.untold = SideEvery
		}
		f.Needs = slices.DeleteFunc(slices.Clone(needs), func(n kube.JoinNeed) bool { return n.Right != kind.right })
		if f.Evidence = kube.Words(f.Needs); f.Evidence != "" {
			faults = append(faults, f)
		}
	}
	return faults
}

// later tells whether the join itself does without what is missing.
func (f SideFault) later() bool {
	return !slices.ContainsFunc(f.Needs, func(n kube.JoinNeed) bool { return !n.Later })
}

// RejectionFault is the fault of a cluster whose admission keeps the Node out.
func RejectionFault(r *kube.Rejection, node string) SideFault {
	f := SideFault{Symptom: symptom.AdmissionRejects, ends: denialRepeat,
		Evidence: fmt.Sprintf("%s keeps Node %s out of the cluster: %s", r.By, node, r.Message),
		Hint: fmt.Sprintf("%s belongs to somebody else, and is left as it is: have its owner admit Node %s, or exempt nodes from it; "+
			"then join again", r.By, node)}
	if kind, name, known := strings.Cut(r.Owner, " "); known {
		f.Hint = "if nobody needs it, " + symptom.DeleteObject.With(kind, name) + "; else: " + f.Hint
	}
	if r.Silent {
		f.ends = SilentLimit
	}
	return f
}

// certificateFaults are about the certificate that kubelet asks for with the token.
func (w *SideWatch) certificateFaults(ctx context.Context, side kube.JoinSide) (faults []SideFault) {
	if w.TokenID == "" { // it joins without a token
		return nil
	}
	own := slices.DeleteFunc(slices.Clone(side.CSRs), func(r kube.CSR) bool { return r.TokenID() != w.TokenID || r.Node != w.Node })
	if slices.ContainsFunc(own, func(r kube.CSR) bool { return r.State == "issued" }) {
		return nil // kubelet has what it needs, and the token has done its work
	}
	if !slices.Contains(side.Tokens, w.TokenID) {
		faults = append(faults, SideFault{Symptom: symptom.TokenExpiredOrInvalid, TokenGone: true, ends: mendLimit,
			Evidence: fmt.Sprintf("bootstrap token %s, with which %s joins, is not in the cluster any more", w.TokenID, w.Node)})
	}
	for _, r := range own {
		switch r.State {
		case "denied", "failed":
			faults = append(faults, SideFault{Symptom: symptom.CSRNotApproved,
				Evidence: fmt.Sprintf("the request of %s for a certificate, CSR %s, is %s", w.Node, r.Name, r.State),
				Hint:     fmt.Sprintf("kubectl describe csr %s says by whom and why; kubectl delete csr %[1]s, then join again", r.Name)})
		case "pending":
			faults = append(faults, SideFault{Symptom: symptom.CSRNotApproved, Pending: r.Name, untold: SideEvery, ends: w.mendable(),
				Evidence: fmt.Sprintf("the request of %s for a certificate, CSR %s, waits for approval, and nobody approves it", w.Node, r.Name),
				Hint:     fmt.Sprintf("kubectl certificate approve %s; kubeadm init phase bootstrap-token restores the approver's rights", r.Name)})
		case "approved":
			faults = append(faults, SideFault{Symptom: symptom.ControllerManagerFailing, untold: 2 * SideEvery, ends: signLimit,
				Evidence: fmt.Sprintf("CSR %s of %s is approved, and nobody signs it: %s", r.Name, w.Node, w.leader(ctx))})
		}
	}
	return faults
}

// leader is what is known of the controller manager that should sign.
func (w *SideWatch) leader(ctx context.Context) string {
	holder, renewed, err := w.Leader(ctx, kube.ControllerManager)
	switch {
	case err != nil:
		return "the controller manager's Lease cannot be read: " + err.Error()
	case renewed.IsZero():
		return "there is no Lease of kube-controller-manager"
	}
	return fmt.Sprintf("kube-controller-manager %s leads and renewed its Lease %s ago", holder, time.Since(renewed).Round(time.Second))
}

// EndedBy makes the fault for which a join was ended its cause; f is nil for none.
func EndedBy(o Outcome, f *SideFault) Outcome {
	if f != nil && !o.Joined {
		o.Symptom, o.Evidence, o.Hint = f.Symptom, f.Evidence, f.Hint
	}
	return o
}
