//go:build e2e

// Package e2e drives the built labctl as a user does, on real machines. Each spec has labs of its own names and networks, so that it
// runs beside a user's labs.
package e2e

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gofrs/flock"
)

// suite is what all specs share: where the binary is, and a home for state that no user's lab is in.
var suite struct {
	labctl  string
	home    string       // XDG_STATE_HOME of every labctl
	lock    *flock.Flock // on home: tells down.sh that the suite runs
	reports *flock.Flock // on results: the report of one suite must not pass for another's
	made    bool         // home is the suite's own and goes at the end
	results string
	seed    uint64
}

func TestEndToEnd(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "labctl")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	suite.labctl = absolute(valueOr("LABCTL", "../bin/labctl"))
	Expect(suite.labctl).To(BeAnExistingFile(), "build it first: make build")
	suite.results = absolute("results")
	Expect(os.MkdirAll(suite.results, 0o755)).To(Succeed())
	suite.reports = flock.New(filepath.Join(suite.results, ".lock"))
	Expect(suite.reports.TryLock()).To(BeTrue(), "another suite writes its report to %s", suite.results)
	suite.seed = uint64(time.Now().UnixNano())
	if s := os.Getenv("E2E_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		Expect(err).NotTo(HaveOccurred(), "E2E_SEED")
		suite.seed = n
	}
	GinkgoLogr.Info("random moments", "E2E_SEED", suite.seed)
	if suite.home = os.Getenv("XDG_STATE_HOME"); !filepath.IsAbs(suite.home) {
		// A short path: libvirt's sockets are below it, and their names may have 107 characters.
		home, err := os.MkdirTemp("", "e2e-")
		Expect(err).NotTo(HaveOccurred())
		suite.home, suite.made = home, true
	}
	Expect(os.MkdirAll(suite.home, 0o700)).To(Succeed())
	suite.lock = flock.New(filepath.Join(suite.home, "lock"))
	Expect(suite.lock.TryLock()).To(BeTrue(), "another suite uses %s", suite.home)
	// The first build of the image takes minutes. It must not count as a bring-up.
	l := newLab("e2e-image", 49, 1, 0)
	l.configure("kubernetes: {source: modules}\n") // no spec asks a server outside; the source auto finds this image
	l.must(ctx, "image", "build")
}, NodeTimeout(22*time.Minute))

// A labctl that finds data races (E2E_RACE=1) writes of them to files.
var _ = AfterEach(func() {
	files, err := filepath.Glob(filepath.Join(suite.results, "race.*"))
	Expect(err).NotTo(HaveOccurred())
	var races strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		Expect(errors.Join(err, os.Remove(f))).To(Succeed())
		races.Write(text)
	}
	Expect(races.String()).To(BeEmpty())
})

var _ = AfterSuite(func() {
	if suite.made && len(labsLeft()) == 0 {
		Expect(os.RemoveAll(suite.home)).To(Succeed())
	}
})

// labsLeft are the state directories of labs that were not taken down.
func labsLeft() []string {
	dirs, err := filepath.Glob(filepath.Join(suite.home, "k8slab", "e2e-*", "id"))
	Expect(err).NotTo(HaveOccurred())
	return dirs
}

// random is the source of random moments for a spec: the same for the same E2E_SEED, whichever specs run.
func random() *rand.Rand {
	AddReportEntry("seed", strconv.FormatUint(suite.seed, 10), ReportEntryVisibilityFailureOrVerbose)
	return rand.New(rand.NewPCG(suite.seed, 0))
}

func valueOr(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

func absolute(path string) string {
	abs, err := filepath.Abs(path)
	Expect(err).NotTo(HaveOccurred())
	return abs
}
