//go:build e2e

package e2e

import (
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/scenarios"
)

// Every fault that may be made in a cluster that labctl did not make, in one.
var _ = Describe("faults in a cluster that exists", Label("foreign", "Slow", "Disruptive"), Serial, Ordered, ContinueOnFailure, func() {
	var h *home
	shared(&h, "e2e-worn", 75, homeOptions{controlPlanes: 3, workers: 1})

	It("is not broken by who does not name it", func(ctx SpecContext) {
		for _, args := range [][]string{{}, {"--i-break", "other"}} {
			r := h.cluster.run(ctx, append([]string{"fault", "run", "missing-cni"}, args...)...)
			Expect(r.code).To(Equal(2), "%s", r)
			Expect(r.stderr).To(ContainSubstring("--i-break " + h.cluster.name))
		}
		for _, f := range scenarios.All() {
			if f.LabsOnly() == "" {
				continue
			}
			r := h.cluster.run(ctx, "fault", "inject", f.Name, "--i-break", h.cluster.name, "--yes")
			Expect(r.code).To(Equal(2), "%s: %s", f.Name, r)
			Expect(r.stderr).To(ContainSubstring(f.LabsOnly()))
		}
		r := h.cluster.run(ctx, "fault", "run", "kubelet-stopped", "--i-break", h.cluster.name) // nobody is asked without a terminal
		Expect(r.code).To(Equal(2), "%s", r)
		Expect(r.stderr).To(And(ContainSubstring("--yes"), ContainSubstring("labctl repair")))
		h.cluster.must(ctx, "fault", "restore") // there is nothing to agree to
		h.expectWhole(ctx)
	}, SpecTimeout(5*time.Minute)) // with the building of the cluster

	for _, f := range ofNoUpgrade() {
		It(f.Name+": "+f.Story, Label(f.Name), func(ctx SpecContext) { h.getsOver(ctx, f) }, SpecTimeout(15*time.Minute))
	}

	// Each experiment has compared the Nodes and etcd's members with those before it; this asks the cluster without labctl.
	It("is whole after all of them", func(ctx SpecContext) { h.expectWhole(ctx) }, SpecTimeout(time.Minute))
})

// getsOver runs the experiment of a fault there, if the list says that it may be made in a cluster that exists.
func (h *home) getsOver(ctx SpecContext, f scenarios.Fault) {
	GinkgoHelper()
	if !h.applies(ctx)[f.Name] {
		Skip("not in a cluster that exists")
	}
	h.keepLabnode()
	h.retrySoon()
	r := h.cluster.experiment(ctx, f, "--i-break", h.cluster.name, "--yes")
	if r.Class == scenarios.NotApplicable {
		Skip(r.Reason)
	}
	Expect(r.Class).To(Equal(scenarios.Passed), "%s", r.Reason)
	Expect(r.Detected.Cause).To(Equal(f.Symptom))
}

// applies are the faults that may be made in a cluster that exists, as the list says.
func (h *home) applies(ctx SpecContext) map[string]bool {
	GinkgoHelper()
	if h.faults != nil {
		return h.faults
	}
	var list struct {
		Faults []struct {
			Name     string
			Existing bool
		}
	}
	Expect(json.Unmarshal([]byte(h.cluster.must(ctx, "fault", "list", "-o", "json")), &list)).To(Succeed())
	h.faults = map[string]bool{}
	for _, r := range list.Faults {
		h.faults[r.Name] = r.Existing
	}
	Expect(h.faults).To(ContainElement(true), "the list says of no fault that it may be made there")
	return h.faults
}
