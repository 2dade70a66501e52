//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// firstDayPage is for who comes to labs from elsewhere. Its transcripts are what one person types, in this order.
const firstDayPage = "../docs/first-day.md"

// fileOnPage is the cluster.yaml of the page.
var fileOnPage = regexp.MustCompile(`(?m)^<!-- cluster\.yaml -->\n\n((?: {4}.*\n)+)`)

// newcomer is somebody who types what the page says, in a directory of their own.
type newcomer struct {
	*lab
	stories    []story
	kubeconfig string
}

// newNewcomer writes the page's file, but for what a spec needs: another name, a network of its own, perhaps another uplink and registries.
func newNewcomer(name string, second int, uplink, registries string) *newcomer {
	GinkgoHelper()
	text, err := os.ReadFile(firstDayPage)
	Expect(err).NotTo(HaveOccurred())
	written := fileOnPage.FindStringSubmatch(string(text))
	Expect(written).NotTo(BeNil(), "%s has no cluster.yaml", firstDayPage)
	if uri := os.Getenv("E2E_URI"); uri != "" {
		registries += fmt.Sprintf("libvirt: {uri: %s}\n", uri)
	}
	file := strings.ReplaceAll("\n"+written[1], "\n    ", "\n")
	for _, change := range [][2]string{
		{"\nname: lab\n", "\nname: " + name + "\n"},
		{"{uplink: nat}", fmt.Sprintf("{uplink: %s, cidr: 10.%d.0.0/24}", uplink, second)},
		{"\nnodes:\n", "\n" + registries + "nodes:\n"},
	} {
		Expect(file).To(ContainSubstring(change[0]))
		file = strings.Replace(file, change[0], change[1], 1)
	}
	desk := filepath.Join(suite.home, "e2e", name)
	n := &newcomer{kubeconfig: filepath.Join(desk, "kubeconfig"), stories: parsePage(string(text)).stories,
		lab: &lab{name: name, home: suite.home, config: desk + ".yaml", nodes: []string{"cp1", "w1"}, enter: []string{"env", "--chdir=" + desk}}}
	Expect(os.MkdirAll(desk, 0o700)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(desk, "cluster.yaml"), []byte(file), 0o600)).To(Succeed())
	_ = os.Remove(n.config)
	Expect(os.Symlink(filepath.Join(desk, "cluster.yaml"), n.config)).To(Succeed()) // where e2e/down.sh looks
	DeferCleanup(n.down, NodeTimeout(2*time.Minute))
	DeferCleanup(n.saveEvidence, NodeTimeout(2*time.Minute))
	n.install()
	return n
}

// install gives the newcomer labctl, a kubectl that knows no cluster but those of the kubeconfig, and a docker that has the page's images.
func (n *newcomer) install() {
	GinkgoHelper()
	bin := GinkgoT().TempDir()
	Expect(os.Symlink(suite.labctl, filepath.Join(bin, "labctl"))).To(Succeed())
	for program, script := range map[string]string{
		"kubectl": `exec labctl kubectl -- --kubeconfig="$KUBECONFIG" "$@"`,
		"docker":  `test "$1" = save && exec cat "` + bin + `/$2.tar"`,
	} {
		Expect(os.WriteFile(filepath.Join(bin, program), []byte("#!/bin/sh\n"+script+"\n"), 0o700)).To(Succeed())
	}
	// They differ: of an image that kubelet has pulled under one name, it pulls another name too.
	for image, arguments := range map[string][]string{"nginx:1.29": webServer, "shop:dev": {"probe"}} {
		tag, err := name.NewTag(image)
		Expect(err).NotTo(HaveOccurred())
		Expect(tarball.WriteToFile(filepath.Join(bin, image+".tar"), tag, containerImage(arguments...))).To(Succeed())
	}
	GinkgoT().Setenv("PATH", bin+":"+os.Getenv("PATH"))
	GinkgoT().Setenv("KUBECONFIG", n.kubeconfig)
}

// webServer is what the page's nginx is in a spec.
var webServer = []string{"probe", "--listen", ":80"}

// live goes through the page, without the story that is left out.
func (n *newcomer) live(ctx context.Context, leftOut string) {
	GinkgoHelper()
	for _, s := range n.stories {
		if s.name == leftOut {
			continue
		}
		n.types(ctx, s)
		switch s.name {
		case "create":
			n.expectHealthy(ctx)
		case "more":
			Expect(n.kubectl(ctx, "get", "nodes", "-o", "name")).To(ContainSubstring("node/w2"))
		case "less":
			Expect(n.kubectl(ctx, "get", "nodes", "-o", "name")).NotTo(ContainSubstring("node/w2"))
		}
	}
	Expect(n.dir()).NotTo(BeADirectory())
	text, err := os.ReadFile(n.kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(text)).NotTo(ContainSubstring(n.name))
}

// types types the commands of a story and wants them to succeed, with what the page shows of their output. What stays until Ctrl-C stays
// until the end of the story.
func (n *newcomer) types(ctx context.Context, s story) {
	GinkgoHelper()
	for _, step := range s.steps {
		By(s.name + ": " + step.command)
		r := n.launch(ctx, step.command, []string{"bash", "-c", step.command}, nil, nil)
		if strings.HasPrefix(step.command, "labctl open ") {
			Eventually(r.stdout.String).WithContext(ctx).WithTimeout(30*time.Second).
				Should(ContainSubstring(strings.TrimSpace(step.output)), "%s", &r.stderr)
			defer func() {
				r.signal(syscall.SIGINT)
				Expect(r.wait().code).To(BeZero())
			}()
			continue
		}
		got := r.wait()
		Expect(got.code).To(BeZero(), "%s: %s", step.command, got)
		Expect(n.onPage(got.stderr+"\n"+got.stdout)).To(ContainSubstring(n.onPage(step.output)), "%s", step.command)
	}
}

// onPage is what the page would say in a command's place, in one line.
func (n *newcomer) onPage(output string) string {
	return strings.Join(strings.Fields(strings.NewReplacer(n.name, "lab", n.kubeconfig, "~/.kube/config").Replace(output)), " ")
}

var _ = Describe("the first day of a newcomer", Label("nightly", "Slow"), Serial, func() {
	It("is as its page says, with images from a registry of the internet", func(ctx SpecContext) {
		w := newInternet(ctx)
		before := w.state(ctx)
		w.has(ctx, "library/nginx:1.29", containerImage(webServer...))
		n := newNewcomer("e2e-first-day", 78, "nat", "registries: [{name: docker.io, mirrors: ['http://"+internetIP+"']}]\n")
		n.enter = append(w.enter(), n.enter...)
		n.live(ctx, "without-uplink")
		Expect(w.state(ctx)).To(Equal(before))
	}, SpecTimeout(10*time.Minute))

	It("is as its page says without an uplink, with images that are loaded", func(ctx SpecContext) {
		newNewcomer("e2e-first-day-alone", 80, "none", "").live(ctx, "")
	}, SpecTimeout(10*time.Minute))
})
