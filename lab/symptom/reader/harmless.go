package reader

import (
	"bytes"
	"regexp"
	"slices"

	"k8slab/lab/symptom"
)

// endedPod finds that a file in the cgroup of one pod or container is missing, because it has ended. What the node lacks is missing for all.
var endedPod = regexp.MustCompile(`(?:open|openat2|stat|lstat|read) \S*kubepods\S*(?:pod[0-9a-f][0-9a-f_-]{5,}|-[0-9a-f]{64}\.scope)\S*: no such file`)

// contained finds what systemd says when it starts in a container. The kernel's log there is that of the whole computer.
var contained = regexp.MustCompile(`Detected virtualization (?:lxc|lxc-libvirt|docker|podman|systemd-nspawn|openvz|container-other)\b` +
	`|unmet condition check \(ConditionVirtualization=!container\)`)

var virtualization = []byte("irtualization")

// When the kernel kills a process for want of memory, its report begins with the process that asked for memory and names the memory
// cgroup that had reached its limit. If that is the cgroup of a pod, or of another machine or container, the node has enough.
var (
	oomBegins    = []byte("invoked oom-killer")
	memcg        = []byte("memcg=")
	oomElsewhere = regexp.MustCompile(`oom_memcg=/\S*(?:kubepods|machine|lxc|docker|libpod|nspawn)`)
)

// inJournal is in the header of a journal's lines that a program of keptRepeating wrote.
var inJournal = map[string][]byte{"kubelet": []byte(" kubelet["), "containerd": []byte(" containerd[")}

// origin is what the text has said of where its lines come from.
type origin struct {
	container bool // a machine that is a container
	// oomElsewhere: the kernel's last report of an out-of-memory kill is not about this node. beforeOOM is what was known of that cause
	// before the report began.
	oomElsewhere bool
	beforeOOM    *tally
	latest       map[string][]byte // the start of the last record of each program in keptRepeating
}

// note keeps what the record at hand says about those after it, and takes back what it shows to be another machine's.
func (o *origin) note(raw []byte, seen tallies) {
	start := raw[:min(len(raw), headerReach)]
	for program, mark := range inJournal {
		if bytes.Contains(start, mark) {
			o.latest[program] = append(o.latest[program][:0], start...)
		}
	}
	if bytes.Contains(raw, ofEtcd) {
		o.latest["etcd"] = append(o.latest["etcd"][:0], start...)
	}
	switch {
	case bytes.Contains(raw, virtualization) && contained.Match(raw):
		o.container = true
		for id, t := range seen {
			if isComputers(t.first.raw) && isComputers(t.last.raw) {
				delete(seen, id)
			}
		}
	case bytes.Contains(raw, oomBegins):
		o.oomElsewhere, o.beforeOOM = false, seen[symptom.OutOfMemory].copied()
	case !o.oomElsewhere && bytes.Contains(raw, memcg) && oomElsewhere.Match(raw):
		o.oomElsewhere = true
		delete(seen, symptom.OutOfMemory)
		if o.beforeOOM != nil {
			seen[symptom.OutOfMemory] = o.beforeOOM
		}
	}
}

// probed finds the event of a probe that failed. It does not say whether the probe still fails.
var probed = regexp.MustCompile(`\bWarning +Unhealthy +pod/`)

// pastEvent finds the event of something that the kubelet tries again and again, which it has not told of for longer than it is ever silent:
// it sends such an event of a pod at least once in 5 minutes.
var pastEvent = regexp.MustCompile(`^\s*(?:\S+\s+)?(?:\d+[dh]|[1-9]\d+m|[6-9]m)\S*\s+(?:\(.*?\)\s+)?Warning\s+` +
	`(?:FailedCreatePodSandBox|FailedMount|NetworkNotReady|Failed|BackOff|ErrImageNeverPull)\s`)

// atStart finds what every kubelet says once when it starts, in its journal and as an event of its Node.
var atStart = regexp.MustCompile(`Image garbage collection failed once|InvalidDiskCapacity +node/|Reason:InvalidDiskCapacity`)

// otherSnapshotter finds that containerd, which tries all its snapshotters when it starts, cannot use one that Kubernetes does not need.
var otherSnapshotter = regexp.MustCompile(`plugin \\?"?io\.containerd\.snapshotter\.v1\.(?:aufs|blockfile|btrfs|devmapper|erofs|zfs)\b`)

// halfWritten finds that containerd has read a configuration of the pod network at the first of several writes. It says nothing when the next one
// makes it whole. If none does, kubelet complains that the network is not ready.
var halfWritten = regexp.MustCompile(`failed to reload cni configuration after receiving fs change .*: unexpected end of JSON input`)

// housekeeping is the kubelet's, so it says nothing about etcd.
var housekeeping = []byte("Housekeeping took longer")

// withoutHarmless is what was found in a record without the causes that are none on this node.
func (o *origin) withoutHarmless(found []find, raw []byte) []find {
	if len(found) == 0 {
		return found
	}
	computers, start := o.container && isComputers(raw), otherSnapshotter.Match(raw)
	past := pastEvent.Match(raw) || halfWritten.Match(raw)
	return slices.DeleteFunc(found, func(f find) bool {
		switch {
		case f.known.kind != ofCause:
			return false
		case f.known.id == symptom.CgroupControllerMissing && endedPod.Match(raw):
			return true
		case f.known.id == symptom.EtcdSlow && bytes.Contains(raw, housekeeping):
			return true
		case symptom.General(f.known.id) && probed.Match(raw), past:
			return true
		case f.known.id == symptom.NodeUnreachable && programOf(raw) == "sshd": // a client went away; the node did answer
			return true
		case f.known.id == symptom.ImageFilesystemZero && atStart.Match(raw):
			return true
		}
		return computers || start || f.known.id == symptom.OutOfMemory && o.oomElsewhere
	})
}

// isComputers reports whether a record of a container's journal is about the whole computer: the kernel's, or of its modules.
func isComputers(raw []byte) bool {
	return slices.Contains([]string{"kernel", "systemd-modules-load"}, programOf(raw))
}

// programOf is the program that wrote a record of a journal.
func programOf(raw []byte) string { return readHeader(raw).program }
