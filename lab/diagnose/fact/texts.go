package fact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8slab/lab/command"
	"k8slab/lab/event"
	"k8slab/lab/join"
)

// What is taken of each text: its end, which is where the cause is.
const (
	journalLines = 20000
	journalLimit = 1 << 20
	logLimit     = 64 << 10
)

// journals are the units whose journals are read.
var journals = []string{"kubelet", "containerd", "crio", "keepalived", "k8slab-kubeadm"}

// logged are the pods' containers whose logs are read: those that the cluster itself is made of.
var logged = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "flannel", "kube-flannel"}

type streamFunc func(ctx context.Context, w io.Writer, argv ...string) error

func streamProgram(ctx context.Context, w io.Writer, argv ...string) error {
	_, err := command.Command{Argv: argv, Stdout: w}.Run(ctx)
	return err
}

// texts reads the journals and logs, all at once.
func (c *collector) texts(ctx context.Context) error {
	if c.o.Since == NoTexts {
		return nil
	}
	var services map[string]map[string]string
	if c.o.Recent {
		services, _ = c.services(ctx) // without them, all of the journals is read
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []Text
	var errs []error
	keep := func(name, text string, err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
		if text != "" {
			all = append(all, Text{Name: name, Text: event.Redact(text)})
		}
	}
	for _, unit := range journals {
		wg.Go(func() {
			text, err := c.journal(ctx, "--unit="+unit+".service", c.begin(unit, services))
			keep(unit, text, err)
		})
	}
	if !c.m.Container() { // whose kernel, and so its log, is its host's
		wg.Go(func() {
			text, err := c.journal(ctx, "--dmesg", c.begin("kernel", services))
			keep("kernel", text, err)
		})
	}
	for name, file := range c.podLogs() {
		wg.Go(func() {
			text, err := tailOf(file, logLimit)
			keep(name, text, err)
		})
	}
	wg.Go(func() {
		text, err := tailOf(c.m.Path(join.LogFile), journalLimit)
		keep("kubeadm", text, err)
	})
	wg.Wait()
	slices.SortFunc(all, func(a, b Text) int { return strings.Compare(a.Name, b.Name) })
	c.set(func(n *Node) { n.Texts = all })
	return errors.Join(errs...)
}

// Recent is how far back a text can explain what is wrong now, unless somebody asks for another time.
const Recent = 10 * time.Minute

// WholeText tells whether all of a text is of one series of attempts, however old.
func WholeText(name string) bool { return name == "kubeadm" || name == "k8slab-kubeadm" }

// Horizon is the time before which a unit's text is about old trouble: the start of its last run, at most some minutes before that run's end.
func (u Unit) Horizon(now time.Time) time.Time {
	from := now.Add(-Recent)
	if u.Active != "" && u.Active != "active" && !u.Since.IsZero() {
		from = u.Since.Add(-Recent)
	}
	if u.Started.After(from) {
		from = u.Started.Add(-time.Second)
	}
	return from
}

// begin is the time from which a text is read, zero for the last boot.
func (c *collector) begin(name string, services map[string]map[string]string) time.Time {
	switch {
	case c.o.Since > 0:
		return c.m.Now().Add(-c.o.Since)
	case services == nil || WholeText(name):
		return time.Time{}
	}
	return unitFrom(services[name]).Horizon(c.m.Now()).Add(-time.Second)
}

func (c *collector) journal(ctx context.Context, which string, from time.Time) (string, error) {
	argv := []string{"journalctl", "--boot", "--no-pager", "--quiet", "--output=short-iso", fmt.Sprintf("--lines=%d", journalLines), which}
	if !from.IsZero() {
		argv = append(argv, fmt.Sprintf("--since=@%d", from.Unix()))
	}
	end := &tail{limit: journalLimit}
	err := c.stream(ctx, end, argv...)
	return end.String(), err
}

// podLogs finds the newest log of each container of the cluster's own pods, by name: POD-DIRECTORY/CONTAINER/ATTEMPT.log.
func (c *collector) podLogs() map[string]string {
	const root = "/var/log/pods"
	newest := map[string]string{}
	times := map[string]time.Time{}
	for _, pod := range c.m.List(root) {
		for _, container := range c.m.List(path.Join(root, pod)) {
			if !slices.Contains(logged, container) {
				continue
			}
			dir := path.Join(root, pod, container)
			file := latest(c.m.List(dir))
			info, err := os.Stat(c.m.Path(path.Join(dir, file)))
			if file == "" || err != nil || info.ModTime().Before(times[container]) {
				continue
			}
			newest[container], times[container] = c.m.Path(path.Join(dir, file)), info.ModTime()
		}
	}
	return newest
}

// latest is the log with the highest number; rotated ones have more behind it.
func latest(files []string) string {
	best, found := -1, ""
	for _, f := range files {
		number, err := strconv.Atoi(strings.TrimSuffix(f, ".log"))
		if err == nil && strings.HasSuffix(f, ".log") && number > best {
			best, found = number, f
		}
	}
	return found
}

// tailOf is the end of a file, from the beginning of a line; "" where there is none.
func tailOf(file string, limit int64) (string, error) {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	end := &tail{limit: int(limit)}
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.Size() > 2*limit {
		if _, err := f.Seek(info.Size()-2*limit, io.SeekStart); err != nil {
			return "", err
		}
		end.cut = true
	}
	_, err = io.Copy(end, io.LimitReader(f, 4*limit)) // it may grow meanwhile
	return end.String(), err
}

// tail keeps the end of what is written to it.
type tail struct {
	limit int
	buf   []byte
	cut   bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*t.limit {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-t.limit:]...)
		t.cut = true
	}
	return len(p), nil
}

func (t *tail) String() string {
	text := t.buf
	cut := t.cut
	if len(text) > t.limit {
		text, cut = text[len(text)-t.limit:], true
	}
	if cut { // half a line, and with it half a secret
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return strings.ToValidUTF8(string(text), "?")
}
