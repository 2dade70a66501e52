//go:build e2e

package e2e

import (
	"encoding/json"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/scenarios"
)

// Each night damages other things, drawn by E2E_SEED: ROUNDS of them, or as many as fit into the time.
var _ = Describe("random damage", Label("soak", "nightly", "Slow", "Disruptive"), Serial, func() {
	It("is named, and leaves no dead end", func(ctx SpecContext) {
		l := useLab("e2e-damage", 56, 3, 2)
		l.must(ctx, "up")
		r := l.run(ctx, "soak", "--damage", "--seed", strconv.FormatUint(suite.seed, 10), "--rounds", valueOr("ROUNDS", "4"),
			"--within", valueOr("WITHIN", "6m"), "--replays", "0", "--evidence", suite.results, "-o", "json")
		var s scenarios.DamageSoaked
		Expect(json.Unmarshal([]byte(r.stdout), &s)).To(Succeed(), "%s", r)
		AddReportEntry("damage", s, ReportEntryVisibilityFailureOrVerbose)
		Expect(s.Rounds).NotTo(BeEmpty())
		for _, d := range s.Rounds {
			Expect(d.Restored).To(BeTrue(), "%s on %s: %s", d.Damage, d.Node, d.Reason)
			Expect(d.Named).NotTo(Equal(scenarios.Silent), "%s on %s: %v", d.Damage, d.Node, d.Said)
			Expect(d.Healed).NotTo(BeElementOf(scenarios.DeadEnd, scenarios.Lost), "%s on %s: %s", d.Damage, d.Node, d.Reason)
		}
		l.becomesHealthy(ctx)
	}, SpecTimeout(3*time.Hour))
})
