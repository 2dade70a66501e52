//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gofrs/flock"
)

type stage struct {
	name   string
	phases []string // that its work is shown under
}

// stages are the plan's.
var stages = []stage{
	{"image", []string{"libvirt"}},
	{"network", []string{"network"}},
	{"machines", []string{"machine"}},
	{"init", []string{"kubeadm init", "kubeadm of an earlier run"}},
	{"network-plugin", []string{"network plugin"}},
	{"join", []string{"join"}},
	{"proof", []string{"proof"}},
}

var _ = Describe("labctl that is killed", Label("Disruptive", "Slow"), Serial, func() {
	It("goes on from after every stage of the plan", Label("wide"), func(ctx SpecContext) {
		l := useLab("e2e-stages", 42, 1, 1)
		for i, s := range stages[:len(stages)-1] {
			l.must(ctx, "up", "--until", s.name)
			l.expectDone(ctx, s.name)
			next := stages[i+1]
			Expect(l.upKilledIn(ctx, next.phases)).To(BeTrue(), "up was killed as %s began", next.name)
		}
		l.must(ctx, "up")
		l.expectHealthy(ctx)
	}, SpecTimeout(5*time.Minute))

	DescribeTable("goes on from random moments, and down too", func(ctx SpecContext, name string, second, controlPlanes, workers, kills int, bringUp time.Duration) {
		moments := random()
		before := takeTraces()
		l := useLab(name, second, controlPlanes, workers)
		for range kills {
			for !l.killed(ctx, moment(moments, bringUp), "up", "-o", "json") { // it was up before the moment came
				l.down(ctx)
			}
		}
		l.must(ctx, "up")
		l.expectHealthy(ctx)
		l.killed(ctx, moment(moments, 2*time.Second), "down", "-o", "json")
		l.down(ctx)
		expectNoNewTraces(ctx, before)
	},
		Entry("2 times, one control plane", Label("wide"), SpecTimeout(5*time.Minute), "e2e-random", 43, 1, 1, 2, 20*time.Second),
		Entry("10 times, one control plane", Label("nightly"), SpecTimeout(15*time.Minute), "e2e-random10", 43, 1, 1, 10, 15*time.Second),
		Entry("10 times, three control planes", Label("nightly"), SpecTimeout(30*time.Minute), "e2e-random-ha", 43, 3, 2, 10, 30*time.Second),
	)
})

// expectDone wants the plan to say that everything up to the stage is done, and nothing after it.
func (l *lab) expectDone(ctx context.Context, until string) {
	GinkgoHelper()
	var plan struct {
		Steps []struct {
			Stage string
			Done  bool
		}
	}
	Expect(json.Unmarshal([]byte(l.must(ctx, "plan", "-o", "json")), &plan)).To(Succeed())
	at := func(name string) int { return slices.IndexFunc(stages, func(s stage) bool { return s.name == name }) }
	for _, s := range plan.Steps {
		if s.Stage == "proof" && until == "join" { // it may hold by now
			continue
		}
		done := at(s.Stage) <= at(until)
		if s.Stage == "image" { // it is needed until there are machines
			done = at(until) >= at("machines")
		}
		Expect(s.Done).To(Equal(done), "%s after up --until %s", s.Stage, until)
	}
}

// `make down` runs down.sh, which finds the labs of suites by their state directories.
var _ = Describe("a suite that is killed", Label("ci", "Disruptive"), Serial, func() {
	It("leaves nothing that down.sh does not remove", func(ctx SpecContext) {
		before := takeTraces()
		dir := filepath.Join(suite.home, "d")
		home := filepath.Join(dir, "e2e-1")
		l := newLabIn(home, "e2e-left", 54, 1, 0)
		lock := flock.New(filepath.Join(home, "lock")) // a suite at work
		Expect(lock.TryLock()).To(BeTrue())
		DeferCleanup(func(ctx SpecContext) {
			Expect(lock.Close()).To(Succeed())
			downLeft(ctx, dir)
		}, NodeTimeout(2*time.Minute))
		l.must(ctx, "up", "--until", "machines")
		downLeft(ctx, dir)
		Expect(l.dir("id")).To(BeAnExistingFile())

		Expect(lock.Close()).To(Succeed())
		downLeft(ctx, dir)
		Expect(home).NotTo(BeADirectory())
		expectNoNewTraces(ctx, before)
	}, SpecTimeout(3*time.Minute))
})

// Anybody can make a directory that looks like a suite's. What is in it must lead root nowhere.
var _ = Describe("a directory that looks like a suite's and is another user's", Label("ci"), func() {
	It("is left alone by down.sh, and so is what its lock leads to", func(ctx SpecContext) {
		if os.Geteuid() != 0 {
			Skip("only root can make another user's directory")
		}
		dir := GinkgoT().TempDir()
		file, home := filepath.Join(dir, "precious"), filepath.Join(dir, "e2e-trap")
		Expect(os.WriteFile(file, []byte("precious"), 0o600)).To(Succeed())
		Expect(os.MkdirAll(filepath.Join(home, "e2e"), 0o700)).To(Succeed())
		Expect(os.Symlink(file, filepath.Join(home, "lock"))).To(Succeed())
		Expect(os.Chown(home, 65534, 65534)).To(Succeed())
		downLeft(ctx, dir)
		Expect(os.ReadFile(file)).To(BeEquivalentTo("precious"))
		Expect(home).To(BeADirectory())
	}, SpecTimeout(time.Minute))
})

// downLeft runs down.sh for the suites that have their state in the directory.
func downLeft(ctx context.Context, dir string) {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, "./down.sh")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
}

// upKilledIn runs up and kills it with all that it started at the first event of one of the phases. It tells whether it came to that.
func (l *lab) upKilledIn(ctx context.Context, phases []string) bool {
	GinkgoHelper()
	r := l.start(ctx, func(r *running, line string) {
		if e := parseEvent(line); e.Phase != "" && slices.Contains(phases, e.Phase) {
			r.kill()
		}
	}, "up", "-o", "json").wait()
	if r.code >= 0 {
		Expect(r.code).To(BeZero(), "up: %s", r)
	}
	return r.code < 0
}

func moment(r *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(most)))
}

// killed runs labctl and kills it with all that it started after that time. It tells whether it came to that: if it has ended before, it must
// have succeeded.
func (l *lab) killed(ctx context.Context, after time.Duration, args ...string) bool {
	GinkgoHelper()
	r := l.start(ctx, nil, args...)
	timer := time.AfterFunc(after, r.kill)
	res := r.wait()
	timer.Stop()
	AddReportEntry("killed "+strings.Join(args, " "), after.Round(time.Millisecond).String(), ReportEntryVisibilityFailureOrVerbose)
	if res.code >= 0 {
		Expect(res.code).To(BeZero(), "labctl %v: %s", args, res)
	}
	return res.code < 0
}
