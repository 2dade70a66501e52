//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"k8slab/scenarios"
)

// benchPage has an adapter, and what it is measured to do.
const benchPage = "../docs/bench.md"

var adapterOnPage = regexp.MustCompile(`(?m)^<!-- doctor\.sh -->\n\n((?: {4}.*\n|\n)+)`)

var _ = Describe("another tool", Label("versions", "Slow", "Disruptive"), Serial, Ordered, func() {
	var l *lab
	BeforeAll(func(ctx SpecContext) {
		l = newLab("e2e-bench", 94, 1, 1)
		desk := GinkgoT().TempDir() // before, so that it is removed after the lab
		DeferCleanup(l.down, NodeTimeout(2*time.Minute))
		l.enter = []string{"env", "--chdir=" + desk}
		text, err := os.ReadFile(benchPage)
		Expect(err).NotTo(HaveOccurred())
		adapter := adapterOnPage.FindStringSubmatch(string(text))
		Expect(adapter).NotTo(BeNil(), "%s has no doctor.sh", benchPage)
		script := strings.TrimSpace(strings.ReplaceAll("\n"+adapter[1], "\n    ", "\n")) + "\n"
		Expect(os.WriteFile(filepath.Join(desk, "doctor.sh"), []byte(script), 0o700)).To(Succeed())
		l.must(ctx, "up")
	}, NodeTimeout(3*time.Minute))
	AfterEach(func(ctx SpecContext) { l.saveEvidence(ctx) }, NodeTimeout(2*time.Minute))

	It("is measured as docs/bench.md tells, in a result file as its schema says", func(ctx SpecContext) {
		text, err := os.ReadFile(benchPage)
		Expect(err).NotTo(HaveOccurred())
		stories := parsePage(string(text)).stories
		Expect(stories).To(HaveLen(1))
		Expect(stories[0].steps).To(HaveLen(1))
		step := stories[0].steps[0]
		file := filepath.Join(GinkgoT().TempDir(), "results.json")
		r := l.run(ctx, append(strings.Fields(step.command)[1:], "--results", file)...)
		Expect(r.code).To(BeZero(), "%s", r)
		Expect(alike(r.stdout)).To(Equal(alike(step.output)), "%s", r)
		report := reported(file)
		Expect(report.Results).To(HaveLen(2))
		Expect(report.Tool).To(Equal("./doctor.sh"))
		Expect(report.Lab.ControlPlanes + report.Lab.Workers).To(Equal(2))
		Expect(report.Versions.Kubernetes).To(HaveLen(1))
		stopped, missing := report.Results[0], report.Results[1]
		Expect(stopped.Class).To(Equal(scenarios.Passed), "%s", stopped.Reason)
		Expect(missing.Class).To(Equal(scenarios.Failed))
		Expect(missing.Restored).To(BeTrue())
		for _, one := range report.Results {
			Expect(one.Data.Writes).NotTo(BeZero())
			Expect(one.Data.LostWrites).To(HaveValue(BeZero()))
		}
		l.expectHealthy(ctx)
		Expect(l.dir("bench")).NotTo(BeADirectory(), "the keys that were lent")
	}, SpecTimeout(3*time.Minute))

	It("that is interrupted leaves a lab that the same command repairs first", func(ctx SpecContext) {
		r := l.start(ctx, func(r *running, line string) {
			if strings.Contains(line, "diagnose: sleep 300") {
				r.signal(syscall.SIGINT)
			}
		}, "bench", "--with", "sleep 300", "kubelet-stopped")
		Expect(r.wait().code).To(Equal(130))
		Expect(l.must(ctx, "fault", "list", "-o", "json")).To(ContainSubstring(`"on": "w1"`))
		again := l.run(ctx, "bench", "--with", "sleep 300", "--budget", "1s", "kubelet-stopped", "-o", "json")
		Expect(again.code).To(BeZero(), "a tool that says nothing is measured: %s", again)
		var report scenarios.Report
		Expect(json.Unmarshal([]byte(again.stdout), &report)).To(Succeed())
		Expect(report.Results[0].Reason).To(And(ContainSubstring("its time is over after 1s"), ContainSubstring("it did not repair")))
		Expect(report.Results[0].Restored).To(BeTrue())
		l.expectHealthy(ctx)
	}, SpecTimeout(3*time.Minute))

	It("cannot be measured in a lab that is not healthy, which is exit status 1", func(ctx SpecContext) {
		l.must(ctx, "power", "off", "w1")
		r := l.run(ctx, "bench", "--with", "true", "kubelet-stopped")
		Expect(r.code).To(Equal(1), "%s", r)
		Expect(r.stdout).To(ContainSubstring("setup-failed"))
		l.must(ctx, "up")
	}, SpecTimeout(3*time.Minute))
})

// reported reads a result file, and compares it with the schema.
func reported(file string) (report scenarios.Report) {
	GinkgoHelper()
	data, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	schema, err := compiler.Compile("../docs/schema/fault-result.v1.json")
	Expect(err).NotTo(HaveOccurred())
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	Expect(err).NotTo(HaveOccurred())
	Expect(schema.Validate(value)).To(Succeed())
	Expect(json.Unmarshal(data, &report)).To(Succeed())
	return report
}
