//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// traces are the things on this computer that a lab could leave behind, each as one line of text.
type traces map[string]bool

// programs are those of a lab, as the kernel names them (15 characters). Others, such as a node's systemd, are known by their cgroup.
var programs = regexp.MustCompile(`^(labctl|libvirt.*|virt.*|dnsmasq|qemu.*|containerd.*|runc.*|kube.*|etcd|keepalived|flanneld|coredns|pause|labnode|nsenter)$`)

// otherLab is the mark of a lab that is not the suite's: a user's, which may come and go beside it.
var otherLab = regexp.MustCompile(`k8slab-([a-z0-9-]+)\.partition`)

func takeTraces() traces {
	GinkgoHelper()
	t := traces{}
	t.processes()
	t.mounts()
	t.network()
	t.cgroups()
	t.loops()
	names, err := filepath.Glob("/run/k8slab/lab-*")
	Expect(err).NotTo(HaveOccurred())
	for _, dir := range append(labsLeft(), names...) {
		t["state "+dir] = true
	}
	return t
}

// expectNoNewTraces wants what there was before and no more; the kernel takes a moment to end mounts and loop devices.
func expectNoNewTraces(ctx context.Context, before traces) {
	GinkgoHelper()
	Eventually(func() []string {
		var added []string
		for line := range takeTraces() {
			if !before[line] {
				added = append(added, line)
			}
		}
		return added
	}).WithContext(ctx).WithTimeout(10*time.Second).WithPolling(200*time.Millisecond).Should(BeEmpty(), "left behind")
}

// processes lists those of the lab's programs, by process and not only by name. They are looked for everywhere, because what is left
// behind need not be where it was started; only another lab's are left out.
func (t traces) processes() {
	GinkgoHelper()
	others := otherNamespaces()
	pids, err := filepath.Glob("/proc/[0-9]*")
	Expect(err).NotTo(HaveOccurred())
	for _, p := range pids {
		comm, err := os.ReadFile(filepath.Join(p, "comm"))
		name := strings.TrimSpace(string(comm))
		cgroup, _ := os.ReadFile(filepath.Join(p, "cgroup"))
		if err != nil || !programs.MatchString(name) && !strings.Contains(string(cgroup), "e2e-") {
			continue
		}
		cmdline, err := os.ReadFile(filepath.Join(p, "cmdline"))
		if err != nil || len(cmdline) == 0 || ofOtherLab(p, others) {
			continue
		}
		t[fmt.Sprintf("process %s %s: %s", filepath.Base(p), name, strings.ReplaceAll(string(cmdline), "\x00", " "))] = true
	}
}

// otherNamespaces are the network namespaces of labs with another state directory.
func otherNamespaces() map[string]bool {
	others := map[string]bool{}
	pids, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range pids {
		cmdline, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		_, dir, serves := strings.Cut(string(cmdline), "\x00host\x00serve\x00--dir\x00")
		if serves && !strings.HasPrefix(dir, suite.home) {
			if ns, err := os.Readlink(filepath.Join(p, "ns", "net")); err == nil {
				others[ns] = true
			}
		}
	}
	return others
}

func ofOtherLab(process string, namespaces map[string]bool) bool {
	if ns, _ := os.Readlink(filepath.Join(process, "ns", "net")); namespaces[ns] {
		return true
	}
	cgroup, _ := os.ReadFile(filepath.Join(process, "cgroup"))
	if m := otherLab.FindStringSubmatch(string(cgroup)); m != nil && !strings.HasPrefix(m[1], "e2e-") {
		return true
	}
	exe, _ := os.Readlink(filepath.Join(process, "exe"))
	return filepath.Base(exe) == "labctl" && exe != suite.labctl
}

// mounts but for those of an image that another process is building in the shared cache.
func (t traces) mounts() {
	GinkgoHelper()
	data, err := os.ReadFile("/proc/self/mounts")
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(data)) {
		if !strings.Contains(line, ".partial-") {
			t["mount "+strings.TrimSpace(line)] = true
		}
	}
}

func (t traces) network() {
	GinkgoHelper()
	links, err := net.Interfaces()
	Expect(err).NotTo(HaveOccurred())
	for _, l := range links {
		t["link "+l.Name] = true
	}
	names, err := filepath.Glob("/run/netns/*")
	Expect(err).NotTo(HaveOccurred())
	for _, n := range names {
		t["namespace "+n] = true
	}
}

func (t traces) cgroups() {
	GinkgoHelper()
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // a cgroup that ended meanwhile
		}
		if m := otherLab.FindStringSubmatch(path); m != nil && !strings.HasPrefix(m[1], "e2e-") {
			return fs.SkipDir
		}
		if name := d.Name(); strings.Contains(name, "k8slab") || strings.Contains(name, "libvirt") || strings.HasPrefix(name, "machine") {
			t["cgroup "+path] = true
		}
		return nil
	})
	Expect(err).NotTo(HaveOccurred())
}

// loops are the loop devices in use, but for those on another lab's disk.
func (t traces) loops() {
	GinkgoHelper()
	out, err := exec.Command("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE").Output()
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "/k8slab/") || strings.Contains(line, suite.home) {
			t["loop "+strings.TrimSpace(line)] = true
		}
	}
}

var _ = Describe("the search for traces", Label("ci"), func() {
	It("finds what was not there before", func(ctx SpecContext) {
		before := takeTraces()
		tail, err := exec.LookPath("tail")
		Expect(err).NotTo(HaveOccurred())
		dnsmasq := filepath.Join(GinkgoT().TempDir(), "dnsmasq")
		Expect(os.Symlink(tail, dnsmasq)).To(Succeed())
		stay := exec.CommandContext(ctx, dnsmasq, "-f", "/dev/null")
		Expect(stay.Start()).To(Succeed())
		DeferCleanup(func() { _ = stay.Process.Kill(); _ = stay.Wait() })
		failures := InterceptGomegaFailures(func() { expectNoNewTraces(ctx, before) })
		Expect(failures).To(ContainElement(ContainSubstring("dnsmasq -f /dev/null")))
	}, SpecTimeout(time.Minute))
})
