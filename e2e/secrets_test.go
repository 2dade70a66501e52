//go:build e2e

package e2e

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// secretWatch looks at all processes while a lab comes up: it keeps their command lines, and takes the real token and certificate key out
// of the configuration that kubeadm has before it, which is gone when kubeadm is.
type secretWatch struct {
	lab     *lab
	scanner *scanner
	stop    func()

	cmdlines map[string]bool
}

var configSecret = regexp.MustCompile(`(?m)^\s*(?:- )?(certificateKey|token):\s*"?([a-z0-9.]+)"?\s*$`)

func watchSecrets(l *lab) *secretWatch {
	w := &secretWatch{lab: l, scanner: newScanner(), cmdlines: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			w.look()
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	w.stop = func() { cancel(); wg.Wait() }
	return w
}

func (w *secretWatch) look() {
	pids, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range pids {
		data, err := os.ReadFile(filepath.Join(p, "cmdline"))
		if err != nil || len(data) == 0 {
			continue
		}
		cmdline := strings.ReplaceAll(string(data), "\x00", " ")
		w.cmdlines[cmdline] = true
		program, args, _ := strings.Cut(cmdline, " ")
		if filepath.Base(program) != "kubeadm" {
			continue
		}
		// Only a container's processes are seen from here, and only its own lab's count.
		if cgroup, _ := os.ReadFile(filepath.Join(p, "cgroup")); !strings.Contains(string(cgroup), w.lab.name) {
			continue
		}
		config, _ := os.ReadFile(filepath.Join(p, "root", "run", "k8slab", "kubeadm.yaml"))
		for _, m := range configSecret.FindAllSubmatch(config, -1) {
			w.scanner.add("the "+string(m[1])+" of "+strings.Fields(args + " ?")[0], string(m[2]))
		}
	}
}

// expectNoSecrets searches everything that the lab wrote but for the places that are there to hold keys.
func expectNoSecrets(ctx context.Context, l *lab, w *secretWatch, up result) {
	GinkgoHelper()
	s := w.scanner
	if strings.HasPrefix(l.uri(ctx), "lxc:") {
		// init's token and key, and a token for each of the four joins.
		Expect(len(s.known)).To(BeNumerically(">=", 6), "the search knows the secrets that were used")
	}
	// Quietly: the report and the evidence are no places for it either.
	s.addPEM("the cluster CA's key", string(l.runQuietly(ctx, "ssh", "cp1", "--", "cat", "/etc/kubernetes/pki/ca.key")))
	sshKey, err := os.ReadFile(l.dir("ssh", "id_ed25519"))
	Expect(err).NotTo(HaveOccurred())
	s.addPEM("the lab's SSH key", string(sshKey))

	var found []string
	outputs := map[string]string{
		"up stdout": up.stdout, "up stderr": up.stderr,
		"status": l.must(ctx, "status", "-o", "json", "--verbose"), "plan": l.must(ctx, "plan", "-o", "json"),
		"kubectl": l.kubectl(ctx, "get", "nodes,pods", "-A", "-o", "wide"),
	}
	for name, text := range outputs {
		found = append(found, s.scan("output of "+name, []byte(text), true)...)
	}
	for cmdline := range w.cmdlines {
		found = append(found, s.scan("command line of "+strings.Fields(cmdline + " ?")[0], []byte(cmdline), false)...)
	}
	found = append(found, s.files(l)...)
	for _, n := range l.nodes {
		journal := l.runQuietly(ctx, "logs", n)
		Expect(journal).NotTo(BeEmpty(), "journal of %s", n)
		found = append(found, s.scan("journal of "+n, journal, false)...)
		// tar says 1 when a log grew while it was read.
		logs := l.runQuietly(ctx, "ssh", n, "--", "sh", "-c", "tar -C / -cf - --ignore-failed-read var/log run/k8slab || test $? = 1")
		Expect(len(logs)).To(BeNumerically(">", 10000), "logs of %s", n)
		found = append(found, s.scan("logs of "+n, logs, false)...)
	}
	Expect(found).To(BeEmpty())
	Expect(openModes(l)).To(BeEmpty(), "readable by others")
}

// runQuietly is for output that is too much for the transcript, or a secret.
func (l *lab) runQuietly(ctx context.Context, args ...string) []byte {
	GinkgoHelper()
	r := l.start(ctx, nil, args...)
	Expect(r.cmd.Wait()).To(Succeed(), "labctl %s: %s", strings.Join(args, " "), r.stderr.String())
	return []byte(r.stdout.String())
}

// files searches the lab's state and run logs. Keys belong into ssh/, seeds/, snapshots/ and the kubeconfig, and a machine's disk is the machine's.
func (s *scanner) files(l *lab) []string {
	GinkgoHelper()
	var found []string
	skipped := regexp.MustCompile(`^(ssh|seeds|machines|snapshots|kubeconfig[^/]*)(/|$)`)
	for _, root := range []string{l.dir(), filepath.Join(suite.home, "k8slab", ".logs", l.name)} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(root, path)
			switch {
			case err != nil:
				return nil // the daemon's own files come and go
			case skipped.MatchString(rel) && d.IsDir():
				return fs.SkipDir
			case skipped.MatchString(rel), !d.Type().IsRegular():
				return nil
			}
			data, err := os.ReadFile(path)
			found = append(found, s.scan(path, data, true)...)
			return err
		})
		Expect(err).NotTo(HaveOccurred())
	}
	return found
}

// openModes lists what others could read. Below seeds/ and libvirt/ are files with the modes that a node and a daemon want: there it is
// the closed directory above that counts.
func openModes(l *lab) []string {
	GinkgoHelper()
	var open []string
	root := filepath.Join(suite.home, "k8slab")
	inside := regexp.MustCompile(`^` + regexp.QuoteMeta(l.name) + `/(seeds|libvirt/[a-z]+)/`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		rel, _ := filepath.Rel(root, path)
		info, err := d.Info()
		if err != nil || inside.MatchString(rel) || d.Type()&fs.ModeSymlink != 0 {
			return nil
		}
		if info.Mode().Perm()&0o077 != 0 {
			open = append(open, info.Mode().String()+" "+rel)
		}
		return nil
	})
	Expect(err).NotTo(HaveOccurred())
	return open
}
