//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// lab is one lab, seen from outside: a cluster.yaml and what labctl says.
type lab struct {
	name, config string
	home         string // its labctl's XDG_STATE_HOME
	nodes        []string
	enter        []string // what runs labctl where the lab's libvirt daemon is; nil: here
	externalEtcd bool     // no node has a member

	mu         sync.Mutex
	transcript []byte // every command and its output
}

// newLab describes a lab on 10.<second>.0.0/24: each spec has a network of its own. It creates nothing but the file.
func newLab(name string, second, controlPlanes, workers int) *lab {
	GinkgoHelper()
	return newLabIn(suite.home, name, second, controlPlanes, workers)
}

func newLabIn(home, name string, second, controlPlanes, workers int) *lab {
	GinkgoHelper()
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\nnetwork: {cidr: 10.%d.0.0/24}\n", name, second)
	if uri := os.Getenv("E2E_URI"); uri != "" { // containers also where the computer could run virtual machines
		fmt.Fprintf(&b, "libvirt: {uri: %s}\n", uri)
	}
	b.WriteString("nodes:\n")
	l := &lab{name: name, home: home, config: filepath.Join(home, "e2e", name+".yaml")}
	add := func(node, role string, host int) {
		l.nodes = append(l.nodes, node)
		fmt.Fprintf(&b, "  - {name: %s, role: %s, ip: 10.%d.0.%d}\n", node, role, second, host)
	}
	for i := range controlPlanes {
		add(fmt.Sprintf("cp%d", i+1), "control-plane", 11+i)
	}
	for i := range workers {
		add(fmt.Sprintf("w%d", i+1), "worker", 21+i)
	}
	Expect(os.MkdirAll(filepath.Dir(l.config), 0o700)).To(Succeed())
	Expect(os.WriteFile(l.config, []byte(b.String()), 0o600)).To(Succeed())
	return l
}

// useLab is newLab for one spec: taken down at its end, with evidence saved first if it failed.
func useLab(name string, second, controlPlanes, workers int) *lab {
	GinkgoHelper()
	l := newLab(name, second, controlPlanes, workers)
	DeferCleanup(l.down, NodeTimeout(2*time.Minute))
	DeferCleanup(l.saveEvidence, NodeTimeout(2*time.Minute))
	return l
}

func (l *lab) dir(elem ...string) string {
	return filepath.Join(append([]string{l.home, "k8slab", l.name}, elem...)...)
}

// result is how a command ended.
type result struct {
	code           int
	stdout, stderr string
	took           time.Duration
}

func (r result) String() string {
	return fmt.Sprintf("exit status %d after %s\n%s\n%s", r.code, r.took.Round(time.Millisecond), tail(r.stdout), tail(r.stderr))
}

func tail(s string) string {
	const most = 4000
	return s[max(0, len(s)-most):]
}

// run runs labctl for the lab to its end.
func (l *lab) run(ctx context.Context, args ...string) result {
	GinkgoHelper()
	return l.start(ctx, nil, args...).wait()
}

// must is run for a command that has to succeed; it returns its standard output.
func (l *lab) must(ctx context.Context, args ...string) string {
	GinkgoHelper()
	r := l.run(ctx, args...)
	Expect(r.code).To(BeZero(), "labctl %s: %s", strings.Join(args, " "), r)
	return r.stdout
}

// running is a labctl at work, in a process group of its own.
type running struct {
	lab    *lab
	shown  string // in the transcript
	cmd    *exec.Cmd
	begun  time.Time
	stdout lines
	stderr lines
}

// start starts labctl; onLine sees each line that it writes as it comes.
func (l *lab) start(ctx context.Context, onLine func(r *running, line string), args ...string) *running {
	GinkgoHelper()
	return l.startWith(ctx, nil, onLine, args...)
}

// startWith is start with something on standard input.
func (l *lab) startWith(ctx context.Context, stdin io.Reader, onLine func(r *running, line string), args ...string) *running {
	GinkgoHelper()
	return l.startAs(ctx, []string{"-c", l.config}, stdin, onLine, args...)
}

// startAs is startWith for a lab that is named in another way than by its file.
func (l *lab) startAs(ctx context.Context, lab []string, stdin io.Reader, onLine func(r *running, line string), args ...string) *running {
	GinkgoHelper()
	return l.launch(ctx, "labctl "+strings.Join(args, " "), slices.Concat([]string{suite.labctl}, lab, args), stdin, onLine)
}

// launch starts a program where labctl runs. shown is what the transcript has of its command line.
func (l *lab) launch(ctx context.Context, shown string, program []string, stdin io.Reader, onLine func(r *running, line string)) *running {
	GinkgoHelper()
	r := &running{lab: l, shown: shown, begun: time.Now()}
	argv := slices.Concat(l.enter, program)
	r.cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	r.cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+l.home)
	// A suite that is killed takes its labctl with it.
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	r.cmd.Cancel = func() error { r.kill(); return nil }
	r.cmd.WaitDelay = 5 * time.Second
	if onLine != nil {
		var one sync.Mutex // two streams, one listener
		on := func(line string) {
			one.Lock()
			defer one.Unlock()
			onLine(r, line)
		}
		r.stdout.on, r.stderr.on = on, on
	}
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = stdin, &r.stdout, &r.stderr
	Expect(r.cmd.Start()).To(Succeed())
	return r
}

func (r *running) kill() { r.signal(syscall.SIGKILL) }

func (r *running) signal(s syscall.Signal) { _ = syscall.Kill(-r.cmd.Process.Pid, s) }

func (r *running) wait() result {
	_ = r.cmd.Wait() // the exit code says it; -1 for a signal
	res := result{code: r.cmd.ProcessState.ExitCode(), stdout: r.stdout.String(), stderr: r.stderr.String(), took: time.Since(r.begun)}
	entry := fmt.Sprintf("$ %s\n%s\n", r.shown, res)
	GinkgoWriter.Print(entry)
	r.lab.mu.Lock()
	defer r.lab.mu.Unlock()
	r.lab.transcript = append(r.lab.transcript, entry...)
	return res
}

// lines keeps what was written and passes on whole lines.
type lines struct {
	mu   sync.Mutex
	all  bytes.Buffer
	rest string
	on   func(string)
}

func (w *lines) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.Write(b)
	if w.on == nil {
		return len(b), nil
	}
	w.rest += string(b)
	for {
		line, rest, found := strings.Cut(w.rest, "\n")
		if !found {
			return len(b), nil
		}
		w.rest = rest
		w.on(line)
	}
}

func (w *lines) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

// event is a line of `-o json`.
type event struct {
	Node, Phase, State, Detail string
	Elapsed                    float64 // seconds
}

func parseEvent(line string) event {
	var e event
	_ = json.Unmarshal([]byte(line), &e) // what is no event has no phase
	return e
}

// status is what `status -o json` says.
type status struct {
	Healthy  bool
	Problems []string
	Warnings []string
	Nodes    []struct {
		Name, Role, IP, Machine, Etcd, Maker string
		Ready, Started                       bool
	}
}

func (l *lab) status(ctx context.Context) (status, result) {
	GinkgoHelper()
	r := l.run(ctx, "status", "-o", "json")
	var s status
	Expect(json.Unmarshal([]byte(r.stdout), &s)).To(Succeed(), "status: %s", r)
	return s, r
}

// expectHealthy wants every node Ready and every control plane a started voter.
func (l *lab) expectHealthy(ctx context.Context) {
	GinkgoHelper()
	s, r := l.status(ctx)
	Expect(s.Problems).To(BeEmpty())
	Expect(s.Healthy).To(BeTrue())
	Expect(r.code).To(BeZero())
	Expect(s.Nodes).To(HaveLen(len(l.nodes)))
	for _, n := range s.Nodes {
		Expect(n.Machine).To(Equal("running"), n.Name)
		Expect(n.Ready).To(BeTrue(), "%s is Ready", n.Name)
		if n.Role == "control-plane" && !l.externalEtcd {
			Expect(n.Etcd).To(Equal("voter"), n.Name)
			Expect(n.Started).To(BeTrue(), "%s's etcd member has started", n.Name)
		}
	}
}

// virsh runs virsh where the lab's daemon is.
func (l *lab) virsh(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return l.must(ctx, append([]string{"host", "exec", "--", "virsh", "-q", "-c", l.uri(ctx)}, args...)...)
}

// labs is what `lab list -o json` says of the labs of the lab's state directory.
func (l *lab) labs(ctx context.Context) (all []struct {
	Name, URI         string
	Machines, Running int
}) {
	GinkgoHelper()
	Expect(json.Unmarshal([]byte(l.must(ctx, "lab", "list", "-o", "json")), &all)).To(Succeed())
	return all
}

func (l *lab) uri(ctx context.Context) string {
	GinkgoHelper()
	for _, e := range l.labs(ctx) {
		if e.Name == l.name {
			return e.URI
		}
	}
	Fail("labctl lab list does not have " + l.name)
	return ""
}

func (l *lab) ssh(ctx context.Context, node string, argv ...string) string {
	GinkgoHelper()
	return l.must(ctx, append([]string{"ssh", node, "--"}, argv...)...)
}

func (l *lab) kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return l.must(ctx, append([]string{"kubectl", "--"}, args...)...)
}

// down takes the lab down. It may be gone already.
func (l *lab) down(ctx context.Context) {
	GinkgoHelper()
	l.must(ctx, "down")
	Expect(l.dir()).NotTo(BeADirectory())
}

// daemonPID is the lab's own libvirtd; 0 when the computer's serves.
func (l *lab) daemonPID() int {
	GinkgoHelper()
	data, err := os.ReadFile(l.dir("libvirt", "serve.pid"))
	if os.IsNotExist(err) {
		return 0
	}
	Expect(err).NotTo(HaveOccurred())
	serve, _, _ := strings.Cut(string(data), " ")
	children, err := filepath.Glob(filepath.Join("/proc", serve, "task", "*", "children"))
	Expect(err).NotTo(HaveOccurred())
	for _, list := range children {
		pids, _ := os.ReadFile(list)
		for child := range strings.FieldsSeq(string(pids)) {
			if name, _ := os.ReadFile(filepath.Join("/proc", child, "comm")); strings.TrimSpace(string(name)) == "libvirtd" {
				pid, err := strconv.Atoi(child)
				Expect(err).NotTo(HaveOccurred())
				return pid
			}
		}
	}
	Fail("the lab's serving process has no libvirtd")
	return 0
}
