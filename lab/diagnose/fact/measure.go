package fact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8slab/lab/event"
	"k8slab/lab/join"
	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

// organ is how one is measured. An error of measure is a question that was not answered: nothing is known then.
type organ struct {
	name, detail string
	measure      func(*measurer, context.Context) ([]join.Defect, error)
	after        string   // the unit with whose start it begins, or theRuntime: what fails sooner may only be starting
	words        []string // lines of logs that mention it have one of them
	heavy        bool     // it computes too much for an emulated processor
}

// theRuntime stands for the unit of the container runtime that the machine has.
const theRuntime = "the container runtime"

var organs = []organ{
	{name: OrganSandbox, detail: "through CRI a pod sandbox is made, with its network and its container of the pause image, and removed",
		measure: (*measurer).sandbox, after: theRuntime, heavy: true,
		words: []string{"RunPodSandbox", "CreatePodSandbox", "runc", "snapshot"}},
	{name: OrganKubelet,
		detail:  "what kubelet reads when it starts: its unit, program, flags, configuration, kubeconfig, and the cluster's CA",
		measure: (*measurer).kubeletRestart,
		words:   []string{"kubelet.service", "command failed", "failed to load", "config.yaml", "kubeadm-flags"}},
	{name: OrganCertificates, detail: "certificates in files, in kubeconfigs and as they are served: their names, issuers and keys",
		measure: (*measurer).identities, words: []string{"x509", "certificate", "tls:"}},
	{name: OrganStaticPods, detail: "each static pod's manifest is a Pod, and runs as it is written",
		measure: (*measurer).staticPods, after: "kubelet", words: []string{"manifest", "static pod", "mirror pod"}},
	{name: OrganForwarding,
		detail:  "the packet filter, the kernel and flannel's links pass packets of pods on, and kube-proxy's rules are there",
		measure: (*measurer).forwarding, after: theRuntime, words: []string{"kube-proxy", "iptables", "nft", "flannel"}},
	{name: OrganDNS, detail: "the file of DNS servers that kubelet gives to pods can be read",
		measure: (*measurer).resolver, words: []string{"resolv.conf"}},
	{name: OrganFileSystems, detail: "file systems that a node writes to have space and inodes, and can be written",
		measure: (*measurer).fileSystems,
		words:   []string{"No space left", "no space left", "Read-only file system", "read-only file system"}},
}

// asked is the name of the question: others have the same names as organs.
func (o organ) asked() string { return "organ " + o.name }

// measurer measures the organs of the machine that it runs on.
type measurer struct {
	m        join.Machine
	patience time.Duration // see join.Machine
	again    bool          // it has twice its time, because the first answer was late
	dated    []Certificate // that it has seen besides those in files
}

// wanted are the organs that the machine has: a member's, without what is too much for an emulated processor.
func wanted(m join.Machine) []organ {
	if !m.Exists("/etc/kubernetes/kubelet.conf") && !m.Exists("/var/lib/k8slab/joined") {
		return nil
	}
	emulated := m.Emulated()
	return slices.DeleteFunc(slices.Clone(organs), func(o organ) bool { return o.heavy && emulated })
}

// take measures an organ. A measurement that was cut short is unread, as any other question is; where it had twice its time, and the
// processors have time, the organ does not answer.
func (w *measurer) take(ctx context.Context, o organ) (Organ, error) {
	began := time.Now()
	defects, err := o.measure(w, ctx)
	if errors.Is(err, errLate) && w.again && !w.busy() {
		defects, err = append(defects, join.Defect{Where: o.name, Text: err.Error()}), nil
	}
	result := judged(o, defects)
	result.Elapsed = time.Since(began).Round(time.Millisecond).Seconds()
	return result, err
}

var (
	errLate    = errors.New("no answer in time")
	errSkipped = errors.New("not measured") // because of something that has checks of its own
)

// busy reports whether more programs want a processor than there are: then a late answer proves nothing.
func (w *measurer) busy() bool {
	first, _, _ := strings.Cut(w.m.Line("/proc/loadavg"), " ")
	load, err := strconv.ParseFloat(first, 64)
	return err != nil || load > float64(2*runtime.NumCPU())
}

// judged is an organ with what its measurement found.
func judged(o organ, defects []join.Defect) Organ {
	result := Organ{Name: o.name, Detail: o.detail}
	var failed []string
	for _, d := range defects {
		d.Text, d.Hint = event.Redact(d.Text), event.Redact(d.Hint)
		if !d.Warn {
			failed = append(failed, d.String())
		}
		if d.Symptom != "" {
			result.Named = append(result.Named, d)
		}
	}
	result.Error = strings.Join(failed, "; ")
	return result
}

// settle is how long after the start of its unit an organ may fail because it only starts.
const settle = 30 * time.Second

// settled ends the measurements: it takes back what may only be starting, and finds the lines that mention what failed.
func settled(n *Node) {
	slices.SortFunc(n.Certificates, func(a, b Certificate) int { return cmp.Compare(a.File, b.File) })
	if n.Facts.Running() { // kubeadm: it is not a member yet
		n.Organs = nil
		return
	}
	slices.SortFunc(n.Organs, func(a, b Organ) int { return cmp.Compare(place(a.Name), place(b.Name)) })
	n.Organs = slices.DeleteFunc(n.Organs, func(o Organ) bool {
		of := organs[place(o.Name)]
		after := of.after
		if after == theRuntime {
			after = cmp.Or(n.Facts.Runtime, "containerd")
		}
		started := n.Units[after].Started
		age := n.Time.Sub(started)
		missing := o.Name == OrganSandbox && len(o.Named) > 0 // an image does not come by waiting
		young := o.Error != "" && !missing && !started.IsZero() && age < settle
		if young {
			n.Errors[of.asked()] = fmt.Sprintf("%s has started only %s ago: %s", after, age.Round(time.Second), o.Error)
		}
		return young
	})
	for i := range n.Organs {
		if o := &n.Organs[i]; o.Error != "" {
			o.Lines = mentions(n.Texts, organs[place(o.Name)].words)
		}
	}
}

func place(name string) int {
	return slices.IndexFunc(organs, func(o organ) bool { return o.name == name })
}

// mentionLimit is how many lines of a failed organ are kept.
const mentionLimit = 4

// mentions are the last lines of the texts that have one of the words, each with its text's name.
func mentions(texts []Text, words []string) []string {
	var found []string
	for _, t := range texts {
		var last []string
		for line := range strings.Lines(t.Text) {
			if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(line, word) }) {
				last = append(last, t.Name+": "+strings.TrimSpace(line))
			}
		}
		found = append(found, last[max(0, len(last)-mentionLimit/2):]...)
	}
	return found[max(0, len(found)-mentionLimit):]
}

// sandbox has the runtime make what each pod needs.
func (w *measurer) sandbox(ctx context.Context) ([]join.Defect, error) {
	err := join.TrySandbox(ctx, w.m)
	failed, ok := errors.AsType[*join.TrialError](err)
	switch {
	case errors.Is(err, join.ErrUntried):
		return nil, errSkipped
	case !ok:
		return nil, err
	case failed.Late:
		return nil, fmt.Errorf("%w: %w", errLate, failed)
	case failed.Other != "":
		d := join.Defect{Symptom: symptom.SandboxImageMisconfigured, Where: "the container runtime", Text: failed.Said + ", but " + failed.Other}
		d.Hint = "name " + failed.Other + " as the sandbox image in /etc/containerd/config.toml; systemctl restart containerd"
		return []join.Defect{d}, nil
	case failed.Missing != "":
		d := join.Defect{Symptom: symptom.ImagePullFailure, Where: "the container runtime", Text: failed.Said + ": no pod can start"}
		d.Hint = "copy it from another node: ctr -n k8s.io images export FILE " + failed.Missing + "; here: ctr -n k8s.io images import FILE"
		return []join.Defect{d}, nil
	}
	return []join.Defect{{Where: "the container runtime", Text: failed.Error()}}, nil
}

func (w *measurer) kubeletRestart(ctx context.Context) ([]join.Defect, error) {
	return join.KubeletRestart(ctx, w.m)
}

// forwarding judges the packet filter and the links.
func (w *measurer) forwarding(ctx context.Context) ([]join.Defect, error) {
	found, err := join.Forwarding(ctx, w.m)
	found = append(found, lasting(ctx, func() []join.Defect {
		links, linksErr := readLinks()
		if linksErr != nil {
			err = errors.Join(err, linksErr)
		}
		if !w.m.Flannel() {
			return nil
		}
		return judgeLinks(links, w.m.SubnetEnv())
	})...)
	return found, err
}

// linkTime is how long a link may be without what it needs: the first pod of a node, a trial's too, makes cni0, and later its address.
const linkTime = time.Second

// lasting are the defects that are still there after that time; none where none was for a moment.
func lasting(ctx context.Context, look func() []join.Defect) (found []join.Defect) {
	_ = wait.For(ctx, "the links of pods", linkTime, 100*time.Millisecond, func(context.Context) error {
		if found = look(); len(found) > 0 {
			return errors.New("they are not right")
		}
		return nil
	})
	return found
}

// judgeLinks compares flannel's links with what flannel says that it made. One that is missing is judged by who misses it.
func judgeLinks(links []Link, env map[string]string) []join.Defect {
	var found []join.Defect
	for _, l := range links {
		if env == nil || l.Name != "flannel.1" && l.Name != "cni0" {
			continue
		}
		bad := func(text string) {
			d := join.Defect{Symptom: symptom.NetworkPluginPodsFailing, Where: l.Name, Text: text}
			d.Hint = "ip link delete " + l.Name + "; kubectl -n kube-flannel delete pod --field-selector spec.nodeName=NODE: flannel makes it again"
			found = append(found, d)
		}
		if !l.Up {
			bad("the link is down")
			continue
		}
		if mtu, err := strconv.Atoi(env["FLANNEL_MTU"]); err == nil && l.Name == "flannel.1" && l.MTU != mtu {
			bad(fmt.Sprintf("its MTU is %d, and flannel's is %d", l.MTU, mtu))
		}
		if !slices.ContainsFunc(l.Addresses, func(a string) bool { return !strings.Contains(a, ":") }) {
			bad("it has no IPv4 address")
		}
	}
	return found
}
