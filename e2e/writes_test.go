//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"golang.org/x/sys/unix"
)

var _ = Describe("labctl that is killed at a write of its state", Label("nightly", "Disruptive", "Slow"), Serial, Ordered, ContinueOnFailure, func() {
	const most = 60 // writes of one command
	var l *lab
	var before traces
	BeforeAll(func() {
		before = takeTraces()
		l = newLab("e2e-writes", 43, 1, 1)
		DeferCleanup(l.down, NodeTimeout(2*time.Minute))
	})
	AfterEach(func(ctx SpecContext) { l.saveEvidence(ctx) }, NodeTimeout(2*time.Minute))

	// Each time it is killed one write later, until it ends by itself. What it finds is what the one before left.
	DescribeTable("goes on:", func(ctx SpecContext, prepare []string, command ...string) {
		for n := 1; ; n++ {
			Expect(n).To(BeNumerically("<", most))
			if len(prepare) > 0 {
				l.must(ctx, prepare...)
			}
			if r, last := l.killedAtWrite(ctx, n, command...); r.code >= 0 {
				Expect(r.code).To(BeZero(), "after %d writes, the last of %s: %s", n-1, last, r)
				Expect(n).To(BeNumerically(">", 1), "it was never killed")
				AddReportEntry("writes", n-1)
				break
			}
			l.must(ctx, command...) // as somebody does who finds the prompt again
		}
		l.must(ctx, "up")
		l.expectHealthy(ctx)
	},
		Entry("up", SpecTimeout(15*time.Minute), []string{"down"}, "up", "--until", "machines"),
		Entry("up of what is up", SpecTimeout(5*time.Minute), nil, "up"),
		Entry("join", SpecTimeout(10*time.Minute), []string{"reset", "w1"}, "join", "w1"),
		Entry("rejoin", SpecTimeout(10*time.Minute), nil, "rejoin", "w1"),
		Entry("repair", SpecTimeout(5*time.Minute), nil, "repair"),
		Entry("a fault's experiment", SpecTimeout(20*time.Minute), nil, "fault", "run", "missing-cni"),
	)

	It("takes a lab down that lost its labctl at each write of down", func(ctx SpecContext) {
		for n := 1; ; n++ {
			l.must(ctx, "up", "--until", "machines")
			r, _ := l.killedAtWrite(ctx, n, "down")
			l.down(ctx)
			expectNoNewTraces(ctx, before)
			if r.code >= 0 {
				Expect(n).To(BeNumerically(">", 1), "it was never killed")
				break
			}
			Expect(n).To(BeNumerically("<", most))
		}
	}, SpecTimeout(10*time.Minute))
})

// killedAtWrite runs labctl and kills it at the nth time that a file of its state appears, is replaced or goes; of what the lab's own libvirt
// daemon writes there it takes no notice. It returns which the last one was.
func (l *lab) killedAtWrite(ctx context.Context, n int, args ...string) (r result, last string) {
	GinkgoHelper()
	w := watchWrites(filepath.Join(l.home, "k8slab"))
	running := l.start(ctx, nil, args...)
	ended := make(chan error, 1)
	go func() {
		for seen := 0; ; {
			path, err := w.next()
			if err != nil {
				ended <- err
				return
			}
			if last, seen = path, seen+1; seen == n {
				running.kill()
			}
		}
	}()
	r = running.wait()
	w.close()
	Expect(<-ended).To(MatchError(os.ErrClosed))
	return r, last
}

// writes watches a directory tree with inotify(7), new directories too.
type writes struct {
	fd    *os.File
	dirs  map[int32]string
	queue []string
}

func watchWrites(root string) *writes {
	GinkgoHelper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	Expect(err).NotTo(HaveOccurred())
	w := &writes{fd: os.NewFile(uintptr(fd), "inotify"), dirs: map[int32]string{}}
	Expect(os.MkdirAll(root, 0o700)).To(Succeed())
	Expect(w.add(root)).To(Succeed())
	return w
}

func (w *writes) close() { _ = w.fd.Close() }

// add watches the directory and those below it, but not where others than labctl write: the lab's own daemon, the machines. Seeds are made anew
// for each start of a machine.
func (w *writes) add(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || !d.IsDir():
			return err
		case d.Name() == "libvirt" || d.Name() == "machines" || d.Name() == "seeds":
			return filepath.SkipDir
		}
		var watch int
		control, err := w.fd.SyscallConn()
		if err != nil {
			return err
		}
		inner := control.Control(func(fd uintptr) {
			watch, err = unix.InotifyAddWatch(int(fd), path, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_DELETE|unix.IN_ONLYDIR)
		})
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err := errors.Join(err, inner); err != nil {
			return err
		}
		w.dirs[int32(watch)] = path
		return nil
	})
}

// next waits for the next write.
func (w *writes) next() (string, error) {
	for len(w.queue) == 0 {
		buf := make([]byte, 64<<10)
		n, err := w.fd.Read(buf)
		if err != nil {
			return "", err
		}
		for buf = buf[:n]; len(buf) > 0; {
			e := (*unix.InotifyEvent)(unsafe.Pointer(&buf[0]))
			end := unix.SizeofInotifyEvent + int(e.Len)
			path := filepath.Join(w.dirs[e.Wd], string(bytes.TrimRight(buf[unix.SizeofInotifyEvent:end], "\x00")))
			buf = buf[end:]
			if e.Mask&unix.IN_Q_OVERFLOW != 0 {
				return "", errors.New("inotify lost events")
			}
			if e.Mask&unix.IN_IGNORED != 0 || strings.HasSuffix(path, ".lock") {
				continue
			}
			if e.Mask&(unix.IN_ISDIR|unix.IN_CREATE) == unix.IN_ISDIR|unix.IN_CREATE {
				if err := w.add(path); err != nil {
					return "", fmt.Errorf("watch %s: %w", path, err)
				}
			}
			w.queue = append(w.queue, path)
		}
	}
	path := w.queue[0]
	w.queue = w.queue[1:]
	return path, nil
}
