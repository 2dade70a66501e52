package reader

import (
	"bytes"
	"regexp"
	"slices"
	"time"

	"k8slab/lab/symptom"
)

// endedPod finds a file in the cgroup of one pod or container that is not there: that one has ended meanwhile. What the node lacks is missing
// for all.
var endedPod = regexp.MustCompile(`(?:open|openat2|stat|lstat|read) \S*kubepods\S*pod[0-9a-f][0-9a-f_-]{5,}\S*: no such file`)

// contained finds what systemd says at its start in a container. The kernel's log that is read there is that of the whole computer.
var contained = regexp.MustCompile(`Detected virtualization (?:lxc|lxc-libvirt|docker|podman|systemd-nspawn|openvz|container-other)\b` +
	`|unmet condition check \(ConditionVirtualization=!container\)`)

var virtualization = []byte("irtualization")

// The kernel's report of a process that it ended begins with the process that wanted memory. Of a memory cgroup that had reached its limit it
// names the cgroup: that of a pod, or of a machine or container beside this one, is not the node.
var (
	oomBegins    = []byte("invoked oom-killer")
	memcg        = []byte("memcg=")
	oomElsewhere = regexp.MustCompile(`oom_memcg=/\S*(?:kubepods|machine|lxc|docker|libpod|nspawn)`)
)

// kubelets is in the head of a journal's lines that the kubelet wrote.
var kubelets = []byte(" kubelet[")

// note keeps what the record at hand says about those after it.
func (s *scan) note() {
	raw := s.rec.raw
	if head := raw[:min(len(raw), headSearch)]; bytes.Contains(head, kubelets) {
		s.latest = append(s.latest[:0], head...)
	}
	switch {
	case bytes.Contains(raw, virtualization) && contained.Match(raw):
		s.container = true
		for id, t := range s.tallies { // of before systemd says so
			if isKernels(t.first.raw) && isKernels(t.last.raw) {
				delete(s.tallies, id)
			}
		}
	case bytes.Contains(raw, oomBegins):
		s.oomElsewhere, s.beforeOOM = false, s.tallies[symptom.OutOfMemory].copied()
	case !s.oomElsewhere && bytes.Contains(raw, memcg) && oomElsewhere.Match(raw):
		s.oomElsewhere = true
		delete(s.tallies, symptom.OutOfMemory)
		if s.beforeOOM != nil {
			s.tallies[symptom.OutOfMemory] = s.beforeOOM
		}
	}
}

// breath is more than passes between two complaints of the kubelet about what lasts: it renews its lease, asks its runtime and starts a pod
// again within 10 to 15 s.
const breath = 30 * time.Second

// sayAgain are the causes of which the kubelet complains every few seconds while they last.
var sayAgain = []symptom.ID{symptom.RuntimeSocketMissing, symptom.CNINotInitialized, symptom.APIServerUnreachable, symptom.EtcdUnreachable, symptom.ControlPlaneCrashloop, symptom.ControllerManagerFailing,
	symptom.NetworkPluginPodsFailing, symptom.TLSBootstrapTimeout, symptom.ImagePullFailure, symptom.FlannelSubnetEnvMissing, symptom.CNIPluginBinaryMissing, symptom.CNIStaleConfig}

// dropOutlived takes back what the kubelet complained of and then no more, although it went on writing.
func (s *scan) dropOutlived() {
	latest := readHead(string(s.latest))
	if latest.program != "kubelet" || !latest.timed {
		return
	}
	for _, id := range sayAgain {
		t := s.tallies[id]
		if t == nil || t.deadly > 0 {
			continue
		}
		h := readHead(string(t.last.raw[:min(len(t.last.raw), headSearch)]))
		if h.program != "kubelet" || !h.timed {
			continue
		}
		if silent := (latest.clock - h.clock + day) % day; silent >= breath && silent < day/2 {
			delete(s.tallies, id)
			s.recovered = true
		}
	}
}

// probed finds the event of a probe that failed: whether it still does, only the pod says.
var probed = regexp.MustCompile(`\bWarning +Unhealthy +pod/`)

// atStart finds what every kubelet says once at its start, in its journal and as an event of its Node.
var atStart = regexp.MustCompile(`Image garbage collection failed once|InvalidDiskCapacity +node/|Reason:InvalidDiskCapacity`)

// housekeeping is the kubelet's, and no matter of etcd.
var housekeeping = []byte("Housekeeping took longer")

// dropHarmless takes the causes out of what was found in the record at hand that are none on this node, and reports whether there were any.
func (s *scan) dropHarmless() bool {
	had := len(s.found)
	kernels := had > 0 && s.container && isKernels(s.rec.raw)
	s.found = slices.DeleteFunc(s.found, func(f find) bool {
		switch {
		case f.known.kind != ofCause:
			return false
		case f.known.id == symptom.CgroupControllerMissing && endedPod.Match(s.rec.raw):
			return true
		case f.known.id == symptom.EtcdSlow && bytes.Contains(s.rec.raw, housekeeping):
			return true
		case symptom.General(f.known.id) && probed.Match(s.rec.raw):
			return true
		case f.known.id == symptom.NodeUnreachable && programOf(s.rec.raw) == "sshd": // a client went away: the node answered
			return true
		case f.known.id == symptom.ImageFilesystemZero && atStart.Match(s.rec.raw):
			return true
		}
		return kernels || f.known.id == symptom.OutOfMemory && s.oomElsewhere
	})
	return len(s.found) < had
}

// isKernels reports whether a record of a journal is the kernel's.
func isKernels(raw []byte) bool { return programOf(raw) == "kernel" }

// programOf is the program that wrote a record of a journal.
func programOf(raw []byte) string { return readHead(string(raw[:min(len(raw), headSearch)])).program }

// copied is a tally as it is now.
func (t *tally) copied() *tally {
	if t == nil {
		return nil
	}
	c := *t
	for _, at := range []*sight{&c.first, &c.killer, &c.last} {
		at.raw = bytes.Clone(at.raw)
	}
	return &c
}
