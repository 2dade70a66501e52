//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// storyPage has the transcripts: after a line `<!-- transcript: NAME -->` an indented block, in which `$ labctl ...` begins each command.
// E2E_UPDATE_TRANSCRIPTS=1 writes into them what the commands print now.
const storyPage = "../docs/existing-clusters.md"

// pageNetwork is the network of the cluster on the page.
const pageNetwork = "192.168.4."

// troubles are made before the first command of a story. Each ends when the cluster shows it.
var troubles = map[string]func(ctx context.Context, h *home){
	// Somebody's drop-in has the name of kubeadm's and hides it, and the credentials are gone: kubelet serves no cluster.
	"standalone": func(ctx context.Context, h *home) {
		west := h.first("worker")
		h.root(ctx, west.machine, `mkdir -p /etc/systemd/system/kubelet.service.d
cat >/etc/systemd/system/kubelet.service.d/10-kubeadm.conf <<END
[Service]
ExecStart=
ExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml
END
rm /etc/kubernetes/kubelet.conf
systemctl daemon-reload
systemctl restart kubelet`)
		h.owner(ctx, "wait --for=condition=Ready=Unknown --timeout=2m node/"+west.name)
	},
	// kubeadm was killed while the second control plane joined again: it had added its member to etcd, and nobody promotes it.
	"learner": func(ctx context.Context, h *home) {
		north, south := h.nodes[0], h.nodes[1]
		h.root(ctx, south.machine, "kubeadm reset -f >/root/reset.log 2>&1") // also removes its member, while the Node is there
		h.owner(ctx, "delete node "+south.name)
		join := h.root(ctx, north.machine, `export KUBECONFIG=/etc/kubernetes/admin.conf
echo "$(kubeadm token create --print-join-command) --control-plane --certificate-key $(
	kubeadm init phase upload-certs --upload-certs --config /root/kubeadm.yaml | tail -n 1)"`)
		h.root(ctx, south.machine, fmt.Sprintf(`(until test -e /etc/kubernetes/manifests/etcd.yaml; do sleep 0.01; done
pkill -KILL -x kubeadm) &
! %s --node-name %s --apiserver-advertise-address %s --ignore-preflight-errors SystemVerification,Mem,NumCPU >/root/join.log 2>&1
wait
`+askEtcd+`
until ask endpoint status; do sleep 1; done`,
			strings.TrimSpace(join), south.name, south.ip))
	},
	// A worker was installed anew: it knows nothing of the cluster, which still has its Node.
	"reinstalled": func(ctx context.Context, h *home) {
		west := h.first("worker")
		h.root(ctx, west.machine, `kubeadm reset -f >/root/reset.log 2>&1
rm -rf /etc/cni/net.d/*
tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id`)
		h.owner(ctx, "wait --for=condition=Ready=Unknown --timeout=2m node/"+west.name)
	},
}

// tellStories has the cluster go through the stories of the page, from the first login on.
func (h *home) tellStories(ctx context.Context) {
	GinkgoHelper()
	h.moveIn()
	text, err := os.ReadFile(storyPage)
	Expect(err).NotTo(HaveOccurred())
	page := parsePage(string(text))
	Expect(page.stories).To(HaveLen(len(troubles) + 1))
	update := os.Getenv("E2E_UPDATE_TRANSCRIPTS") != ""
	for i, s := range page.stories {
		if trouble := troubles[s.name]; trouble != nil {
			trouble(ctx, h)
		}
		for k, step := range s.steps {
			By(s.name + ": " + step.command)
			got := h.live(ctx, step)
			page.stories[i].steps[k].output = got
			if !update {
				Expect(alike(got)).To(Equal(alike(step.output)), "%s: $ %s\n%s", s.name, step.command, got)
			}
		}
		h.ignoreContainers()
		h.expectWhole(ctx)
	}
	if update {
		Expect(os.WriteFile(storyPage, []byte(page.String()), 0o644)).To(Succeed())
	}
}

// moveIn gives the owner a new home directory, with the key where ssh looks for it, and works in it.
func (h *home) moveIn() {
	GinkgoHelper()
	owner := filepath.Dir(h.cluster.config)
	Expect(os.RemoveAll(owner)).To(Succeed())
	h.know()
	key, err := os.ReadFile(h.key)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(owner, ".ssh", "id_ed25519"), key, 0o600)).To(Succeed())
	h.cluster.enter = append(h.cluster.enter, "env", "--chdir="+owner)
}

// live runs a command of the page, and returns what the page would show of it.
func (h *home) live(ctx context.Context, s step) string {
	GinkgoHelper()
	network := h.nodes[0].ip[:strings.LastIndex(h.nodes[0].ip, ".")+1]
	args := strings.Fields(strings.ReplaceAll(s.command, pageNetwork, network))[1:]
	var text string
	if strings.Contains(s.output, "[y/N]") { // somebody sits there; progress is plain where it is no terminal's
		r := h.cluster.asked(ctx, map[string]string{"[y/N] ": "y"}, append(args, "2>&1", "|", "cat")...)
		text = strings.ReplaceAll(strings.ReplaceAll(r.stdout, "\r", ""), "[y/N] ", "[y/N] y\n")
	} else {
		r := h.cluster.startAs(ctx, nil, nil, nil, args...).wait()
		text = r.stderr + r.stdout
	}
	owner := filepath.Dir(h.cluster.config)
	text = strings.NewReplacer(network, pageNetwork, suite.labctl, "labctl", h.cluster.home+"/", "~/.local/state/", owner+"/", "~/").
		Replace(text)
	return shorten(text)
}

var (
	progress = regexp.MustCompile(`^\d\d:\d\d:\d\d (\S+) +`)
	telling  = regexp.MustCompile(`: cause: |: repaired: |^backup: done|proven a healthy member`)
	// busy is what a join adds on a computer that has no time.
	busy    = regexp.MustCompile(`: cause: (etcd-slow|token-expired-or-invalid|controller-manager-failing): |: repaired: made the token again`)
	summary = regexp.MustCompile(`^(phase +node +time|total +\S+|[a-z ]* +\S+ +[0-9.]+m?s( .*)?|  Log: .*)$`)
)

// shorten leaves out progress but for what tells something, and the table of times.
func shorten(text string) string {
	var kept []string
	inTable := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if at := progress.FindStringIndex(line); at != nil {
			line = line[at[1]:]
			if !telling.MatchString(line) || busy.MatchString(line) || strings.HasPrefix(line, "repair: ") {
				continue
			}
		}
		inTable = strings.HasPrefix(line, "phase ") || inTable && summary.MatchString(line)
		if !inTable && !strings.HasPrefix(line, "  Log: ") {
			kept = append(kept, line)
		}
	}
	return strings.Trim(strings.Join(kept, "\n"), "\n")
}

// differing is what no two runs have in common.
var differing = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\n {10,}`), " "},                           // a long line that is broken somewhere else
	{regexp.MustCompile(`(?m)^evidence +(\S+ )?\S+:\d+: .*\n`), ""}, // lines of logs
	{regexp.MustCompile(`found\.\nChecked`), "found. Checked"},
	{regexp.MustCompile(`(?m)^(unread +.*)?\n`), ""}, // what a busy computer did not answer in time
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d+)?`), "TIME"},
	{regexp.MustCompile(`\d{8}T\d{6}`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "ID"},
	{regexp.MustCompile(`\b[0-9a-f]{15,16}\b`), "ID"},
	{regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), "TOKEN"},
	{regexp.MustCompile(`\.k8slab-\w+`), "DIRECTORY"},
	{regexp.MustCompile(`\brevision \d+`), "revision N"},
	{regexp.MustCompile(`\d+ of \d+( raft entries \(\d+%\))?(, \d+(/s| entries a second))?`), "N of N"},
	{regexp.MustCompile(`\b[0-9.]+ [KM]iB`), "SIZE"},
	{regexp.MustCompile(`((?:yes|no) +(?:yes|no) +)\d+`), "${1}N"}, // the raft index
	{regexp.MustCompile(`\bleader\b`), "voter"},
	{regexp.MustCompile(`\b(\d+(\.\d+)? ?(h|m|s|ms))+\b(/[0-9hms]+)?`), "DURATION"},
	{regexp.MustCompile(` +`), " "},
	{regexp.MustCompile(`(?m) $`), ""},
}

// alike are the lines of an output with placeholders for what differs. They are sorted: etcd's members come in the order of their IDs.
func alike(output string) []string {
	output += "\n"
	for _, d := range differing {
		output = d.what.ReplaceAllString(output, d.as)
	}
	return slices.Sorted(strings.SplitSeq(strings.TrimSpace(output), "\n"))
}

// storyText is the page: prose, and the stories in it.
type storyText struct {
	prose   []string // before each story, and after the last
	stories []story
}

type story struct {
	name  string
	steps []step
}

// step is a command, and what the page shows of its output.
type step struct{ command, output string }

var transcript = regexp.MustCompile(`(?m)^<!-- transcript: (\S+) -->\n\n((?: {4}.*\n|\n)+)`)

func parsePage(text string) storyText {
	GinkgoHelper()
	var p storyText
	for {
		at := transcript.FindStringSubmatchIndex(text)
		if at == nil {
			p.prose = append(p.prose, text)
			return p
		}
		s := story{name: text[at[2]:at[3]]}
		for line := range strings.SplitSeq(strings.Trim(text[at[4]:at[5]], "\n"), "\n") {
			line = strings.TrimPrefix(line, "    ")
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				s.steps = append(s.steps, step{command: command})
				continue
			}
			Expect(s.steps).NotTo(BeEmpty(), "%s begins without a command: %s", s.name, line)
			s.steps[len(s.steps)-1].output += line + "\n"
		}
		p.prose, p.stories, text = append(p.prose, text[:at[0]]), append(p.stories, s), text[at[1]:]
	}
}

func (p storyText) String() string {
	var b strings.Builder
	for i, s := range p.stories {
		fmt.Fprintf(&b, "%s<!-- transcript: %s -->\n\n", p.prose[i], s.name)
		for _, step := range s.steps {
			for _, line := range slices.Concat([]string{"$ " + step.command}, strings.Split(strings.Trim(step.output, "\n"), "\n")) {
				b.WriteString(strings.TrimRight("    "+line, " ") + "\n")
			}
		}
		b.WriteString("\n")
	}
	return b.String() + p.prose[len(p.prose)-1]
}
