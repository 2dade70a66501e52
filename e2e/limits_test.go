//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// What a computer refuses labctl must be said, and must harm nobody: the same command ends well when it is there again, and down removes all.
var _ = Describe("a computer that gives out", Label("wide", "Disruptive"), Serial, Ordered, ContinueOnFailure, func() {
	var l *lab
	var home string
	var before traces
	size := func(ctx context.Context, size string) { here(ctx, "mount", "-o", "remount,size="+size, home) }
	BeforeAll(func(ctx SpecContext) {
		home = filepath.Join(suite.home, "t") // a short path: libvirt's sockets are below it
		Expect(os.Mkdir(home, 0o700)).To(Succeed())
		here(ctx, "mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "e2e-limits", home)
		DeferCleanup(func(ctx SpecContext) {
			here(ctx, "umount", home)
			Expect(os.Remove(home)).To(Succeed())
		}, NodeTimeout(time.Minute))
		before = takeTraces()
		l = newLabIn(home, "e2e-limits", 40, 1, 0)
		DeferCleanup(l.down, NodeTimeout(2*time.Minute))
	}, NodeTimeout(time.Minute))
	AfterEach(func(ctx SpecContext) {
		l.within()
		l.saveEvidence(ctx)
	}, NodeTimeout(2*time.Minute))

	It("says that there is no space left, and down frees what there is", func(ctx SpecContext) {
		r := l.run(ctx, "up")
		Expect(r.code).To(Equal(1))
		Expect(r.stderr).To(MatchRegexp("(?i)no space left"))
		l.down(ctx)
		expectNoNewTraces(ctx, before)
	}, SpecTimeout(2*time.Minute))

	It("comes up when there is space", func(ctx SpecContext) {
		size(ctx, "8g")
		l.must(ctx, "up")
		l.expectHealthy(ctx)
	}, SpecTimeout(5*time.Minute))

	It("says that too many files are open", func(ctx SpecContext) {
		refused := 0
		for _, command := range []string{"up", "status", "diagnose", "repair"} {
			for most := 9; most <= 24; most += 3 {
				l.within("prlimit", fmt.Sprintf("--nofile=%d:%[1]d", most))
				r := l.run(ctx, command)
				Expect(r.stderr).NotTo(ContainSubstring("goroutine "), "%s", r)
				if strings.Contains(r.stdout+r.stderr, "too many open files") {
					refused++
				} else {
					Expect(r.code).To(BeZero(), "%s", r)
					break
				}
			}
		}
		Expect(refused).NotTo(BeZero())
		l.within()
		l.must(ctx, "up")
		l.expectHealthy(ctx)
	}, SpecTimeout(2*time.Minute))

	It("says that the state can only be read, and goes on when it can be written", func(ctx SpecContext) {
		l.within("unshare", "--mount", "sh", "-euc", `mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"; shift; exec "$@"`, "sh", home)
		for _, command := range [][]string{{"up"}, {"down"}, {"repair"}, {"fault", "run", "stale-learner"}} {
			r := l.run(ctx, command...)
			Expect(r.code).To(Equal(1), "%s", r)
			Expect(r.stderr).To(ContainSubstring("read-only file system"), "%s", r)
		}
		Expect(l.must(ctx, "status")).To(ContainSubstring("cp1"))
		l.within()
		l.must(ctx, "up")
		l.expectHealthy(ctx)
	}, SpecTimeout(2*time.Minute))

	It("ends labctl for want of memory, and the next one goes on", func(ctx SpecContext) {
		group := memoryGroup(4 << 20)
		l.within("sh", "-euc", `echo $$ >"$1"; shift; exec "$@"`, "sh", filepath.Join(group, "cgroup.procs"))
		for _, command := range [][]string{{"repair"}, {"diagnose"}, {"down"}} {
			r := l.run(ctx, command...)
			Expect(r.code).To(Equal(-1), "%s", r)
		}
		l.within()
		l.must(ctx, "up")
		l.expectHealthy(ctx)
	}, SpecTimeout(3*time.Minute))

	DescribeTable("takes a signal for the end of", func(ctx SpecContext, command, words string, signals ...syscall.Signal) {
		r := l.start(ctx, func(r *running, line string) {
			if strings.Contains(line, words) {
				for _, s := range signals {
					r.signal(s)
				}
			}
		}, strings.Fields(command)...).wait()
		Expect(r.code).To(Equal(130), "%s", r)
		l.must(ctx, strings.Fields(command)...) // again, as it says; a fault goes first
		l.expectHealthy(ctx)
	},
		Entry("a proof, SIGTERM", SpecTimeout(time.Minute), "up", "proof: started", syscall.SIGTERM),
		Entry("a proof, a terminal that is closed", SpecTimeout(time.Minute), "up", "proof: started", syscall.SIGHUP),
		Entry("a repair, interrupted twice", SpecTimeout(time.Minute), "repair", "repair: diagnose", syscall.SIGINT, syscall.SIGINT),
		Entry("a fault, SIGTERM", SpecTimeout(2*time.Minute), "fault run stale-learner", "wait for the effect", syscall.SIGTERM),
		Entry("a fault, a terminal that is closed", SpecTimeout(2*time.Minute), "fault run stale-learner", "wait for the effect", syscall.SIGHUP),
	)

	It("goes to its end when nobody reads what it says", func(ctx SpecContext) {
		l.virsh(ctx, "destroy", l.name+"-cp1")
		l.within("sh", "-c", `"$@" | true`, "sh")
		l.run(ctx, "up", "-o", "json")
		l.within()
		l.expectHealthy(ctx)
	}, SpecTimeout(3*time.Minute))

	It("has no space for what down has to write", func(ctx SpecContext) {
		size(ctx, used(home))
		l.down(ctx)
		size(ctx, "1m") // as it was before
		expectNoNewTraces(ctx, before)
	}, SpecTimeout(2*time.Minute))
})

// A file system in a file has errors of input and output where the file's own cannot grow: the kernel finds out when it writes, not labctl.
var _ = Describe("a disk that fails", Label("ci", "Disruptive"), Serial, func() {
	It("is said, before anything is made", func(ctx SpecContext) {
		under, home := filepath.Join(suite.home, "u"), filepath.Join(suite.home, "v")
		Expect(errors.Join(os.MkdirAll(under, 0o700), os.MkdirAll(home, 0o700))).To(Succeed())
		before := takeTraces()
		here(ctx, "mount", "-t", "tmpfs", "-o", "size=16m,mode=0700", "e2e-disk", under)
		DeferCleanup(func(ctx SpecContext) {
			_ = exec.CommandContext(ctx, "umount", "--quiet", home, under).Run() // after a failure
			Expect(errors.Join(os.Remove(under), os.Remove(home))).To(Succeed())
		})
		image := filepath.Join(under, "image")
		here(ctx, "truncate", "-s", "64m", image)
		here(ctx, "mkfs.ext4", "-q", image)
		here(ctx, "mount", "-o", "loop", image, home)
		l := newLabIn(home, "e2e-disk", 40, 1, 0)
		here(ctx, "sync", "--file-system", home)
		here(ctx, "mount", "-o", "remount,size="+used(under), under)

		r := l.run(ctx, "up")
		Expect(r.code).To(Equal(1), "%s", r)
		Expect(r.stderr).To(MatchRegexp("sync .*: (input/output error|no space left on device|read-only file system)"), "%s", r)
		here(ctx, "umount", home, under)
		expectNoNewTraces(ctx, before)
	}, SpecTimeout(2*time.Minute))
})

// within has labctl started by the program; by nothing without one.
func (l *lab) within(argv ...string) { l.enter = argv }

// here runs a program on this computer.
func here(ctx context.Context, argv ...string) {
	GinkgoHelper()
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s: %s", strings.Join(argv, " "), out)
}

// used is the size of a tmpfs that has no room left.
func used(path string) string {
	GinkgoHelper()
	var st syscall.Statfs_t
	Expect(syscall.Statfs(path, &st)).To(Succeed())
	return fmt.Sprint((st.Blocks - st.Bfree) * uint64(st.Bsize))
}

// memoryGroup is a cgroup whose processes have that much memory together, of whichever version this computer has. It goes with the spec.
func memoryGroup(bytes int) string {
	GinkgoHelper()
	root, limit := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	if _, err := os.Stat(root); err != nil {
		root, limit = "/sys/fs/cgroup", "memory.max"
	}
	group := filepath.Join(root, "e2e-limits")
	Expect(os.MkdirAll(group, 0o755)).To(Succeed()) // a killed suite leaves it
	DeferCleanup(func() {
		Eventually(func() error { return os.Remove(group) }).WithTimeout(10 * time.Second).Should(Succeed())
	})
	Expect(os.WriteFile(filepath.Join(group, limit), fmt.Append(nil, bytes), 0)).To(Succeed())
	return group
}
