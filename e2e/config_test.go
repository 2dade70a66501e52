//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a cluster.yaml with mistakes", Label("ci"), func() {
	It("is refused with all of them, before anything is made", func(ctx SpecContext) {
		l := &lab{name: "broken", home: suite.home, config: absolute("../config/testdata/broken.yaml")}
		golden, err := os.ReadFile("../config/testdata/broken.golden")
		Expect(err).NotTo(HaveOccurred())
		then := stateEntries()
		for _, verb := range []string{"up", "plan", "status", "down"} {
			r := l.run(ctx, verb)
			Expect(r.code).To(Equal(2), verb)
			Expect(r.stdout).To(BeEmpty(), verb)
			Expect(problems(r.stderr)).To(Equal(problems(string(golden))), verb)
			Expect(problems(r.stderr)).To(HaveLen(10), verb)
		}
		Expect(stateEntries()).To(Equal(then), "state directories")
	}, SpecTimeout(time.Minute))
})

// problems are the lines from the file's name on, without the way to it.
func problems(text string) []string {
	var all []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		if _, problem, found := strings.Cut(line, "broken.yaml:"); found {
			line = problem
		}
		all = append(all, strings.TrimSpace(line))
	}
	return all
}

func stateEntries() []string {
	GinkgoHelper()
	entries, err := filepath.Glob(filepath.Join(suite.home, "k8slab", "*"))
	Expect(err).NotTo(HaveOccurred())
	return entries
}
