//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
)

var notInNames = regexp.MustCompile(`[^A-Za-z0-9]+`)

// saveEvidence keeps what the lab looks like if the spec failed. It fails nothing itself: a lab that is broken answers little.
func (l *lab) saveEvidence(ctx context.Context) {
	report := CurrentSpecReport()
	if !report.Failed() {
		return
	}
	spec := strings.Trim(notInNames.ReplaceAllString(report.FullText(), "-"), "-")
	dir := filepath.Join(suite.results, spec[:min(len(spec), 100)], l.name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		GinkgoWriter.Println("evidence:", err)
		return
	}
	save := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			GinkgoWriter.Println("evidence:", err)
		}
	}
	l.mu.Lock()
	save("commands.txt", l.transcript)
	l.mu.Unlock()
	l.saveLogs(save)
	ask := func(name string, args ...string) {
		short, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		r := l.start(short, nil, args...)
		_ = r.cmd.Wait()
		save(name, []byte(r.stdout.String()+r.stderr.String()))
	}
	ask("status.json", "status", "-o", "json")
	ask("diagnosis.txt", "diagnose", "--force", "--bundle", filepath.Join(dir, "bundle.tar.gz"))
	ask("events.txt", "kubectl", "--", "get", "events", "-A", "--sort-by=.lastTimestamp", "--request-timeout=10s")
	ask("pods.txt", "kubectl", "--", "get", "pods,nodes", "-A", "-o", "wide", "--request-timeout=10s")
	for _, n := range l.nodes {
		ask("journal-"+n+".txt", "logs", n)
	}
	AddReportEntry("evidence", dir, ReportEntryVisibilityFailureOrVerbose)
}

// saveLogs copies the runs' events and the daemon's log.
func (l *lab) saveLogs(save func(string, []byte)) {
	files, _ := filepath.Glob(filepath.Join(suite.home, "k8slab", ".logs", l.name, "*.jsonl"))
	daemon, _ := filepath.Glob(l.dir("libvirt", "*.log"))
	domains, _ := filepath.Glob(l.dir("libvirt", "log", "*", "*.log")) // why a machine ended
	consoles, _ := filepath.Glob(l.dir("machines", "*.console"))
	for _, f := range slices.Concat(files, daemon, domains, consoles) {
		if data, err := os.ReadFile(f); err == nil {
			save(strings.ReplaceAll(strings.TrimPrefix(f, suite.home+"/"), "/", "-"), data)
		}
	}
}
