package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8slab/lab/diagnose/fact"
	joining "k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// domain judges whether the machine runs and can be asked.
func (j *judgement) domain(m *fact.Machine) {
	switch m.State {
	case stateRunning, "":
	case "paused":
		j.find(symptom.MachinePaused, m.Name, "libvirt", "the domain is paused")
		return
	case "absent":
		f := j.find(symptom.MachineNotRunning, m.Name, "libvirt", "it has no machine")
		f.Meaning, f.Hint = "The node's machine was not made yet, or it was deleted.", "`labctl up` makes it."
		return
	default:
		j.find(symptom.MachineNotRunning, m.Name, "libvirt", "the domain is "+m.State)
		return
	}
	if m.StateError != "" {
		j.unread = append(j.unread, m.Name+": the state of its domain: "+m.StateError)
	}
	if m.SSH != "" {
		j.find(symptom.NodeUnreachable, m.Name, "ssh", m.SSH)
		j.moved(m)
		if last := lastLine(m.Console); last != "" {
			j.find(symptom.NodeUnreachable, m.Name, "console", last)
		}
		return
	}
	if m.Inside == nil {
		switch text := "labnode did not collect: " + m.Labnode; {
		case m.Late:
			j.unread = append(j.unread, m.Name+": "+text)
		case m.NoLabnode:
			j.findKind(symptom.FileChanged, "labnode", m.Name, "labnode collect", text).Repairable = true
		default:
			j.fails("labnode", m.Name, "labnode collect", text, "`labctl ssh "+m.Name+"` and look why labnode does not run there")
		}
		return
	}
	for what, err := range m.Inside.Errors {
		if what == "containers" && !passes(m.Inside, joining.CheckCRI) { // which says more
			continue
		}
		j.unread = append(j.unread, m.Name+": "+what+": "+err)
	}
}

// moved judges a machine that exists and does not answer where it was attached: its kubelet may have told the cluster another address since.
func (j *judgement) moved(m *fact.Machine) {
	i := slices.IndexFunc(j.f.API.Nodes, func(n kube.Node) bool { return n.Name == m.Name })
	if i < 0 || !j.f.API.Nodes[i].Ready || j.f.API.Nodes[i].IP == m.IP {
		return
	}
	at := j.f.API.Nodes[i].IP
	f := j.find(symptom.NodeUnreachable, m.Name, "API", fmt.Sprintf("its Node is Ready at %s, and it was asked at %s", at, m.IP))
	f.Meaning, f.Hint = "The node's machine has another address now.", fmt.Sprintf("Write `ip: %s` for %s in cluster.yaml, and log in once with --accept-new.", at, m.Name)
}

// settled reports whether the machine is a member, or was, on which no join or init is at work.
func settled(m *fact.Machine) bool { return joined(m) && !m.Inside.Facts.Running() }

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// ownManifests are a control plane's static pods, and what it means when one is not there.
var ownManifests = []struct {
	file string
	id   symptom.ID
	make string // again
}{
	{"etcd.yaml", symptom.EtcdUnreachable, "etcd local"},
	{"kube-apiserver.yaml", symptom.APIServerUnreachable, "control-plane apiserver"},
	{"kube-controller-manager.yaml", symptom.ControllerManagerFailing, "control-plane controller-manager"},
	{"kube-scheduler.yaml", symptom.ControlPlaneCrashloop, "control-plane scheduler"},
}

// manifests judges whether a control plane has what it is to run.
func (j *judgement) manifests(m *fact.Machine) {
	n := m.Inside
	if m.Role != roleControlPlane || !joined(m) || n.Facts.Running() || n.Errors["machine"] != "" {
		return
	}
	for _, own := range ownManifests {
		if slices.Contains(n.Manifests, own.file) || own.file == "etcd.yaml" && !n.Facts.EtcdData {
			continue
		}
		f := j.find(own.id, m.Name, "/etc/kubernetes/manifests", own.file+" is not there, so kubelet does not run it")
		f.Hint = fmt.Sprintf("put /etc/kubernetes/manifests/%s back, or labctl rejoin %s while another control plane lives (on the only one: kubeadm init phase %s)",
			own.file, m.Name, own.make)
		f.Repairable = true // by kubeadm, from the cluster's configuration or the lab's
	}
}

// checks takes over what the node's own checks found.
func (j *judgement) checks(m *fact.Machine) {
	for _, c := range m.Inside.Checks {
		about := c.ID.Traits()
		bad := c.Result == joining.Blocked || c.Result == joining.Fixable || c.Result == joining.Warn && joined(m) && about.WarnIsFault
		switch {
		case c.Symptom == "", !bad:
			continue
		case about.Way && !j.cluster(), about.MembersOnly && !joined(m):
			continue
		case c.ID == joining.CheckSwap && m.Inside.Facts.Kubelet.Active == "active": // kubelet was told to live with it
			continue
		}
		f := j.find(c.Symptom, m.Name, "check "+string(c.ID), c.Evidence)
		f.Hint = cmp.Or(c.Hint, f.Hint)
		f.Repairable = c.Result == joining.Fixable && about.Repairable && joined(m)
		if c.ID == joining.CheckClock && c.Result == joining.Warn {
			f.Level = symptom.Warn
		}
	}
}

// plugins judges whether the plugins are there that the network in use calls.
func (j *judgement) plugins(m *fact.Machine) {
	if missing := missingPlugins(m.Inside); joined(m) && len(missing) > 0 {
		j.find(symptom.CNIPluginBinaryMissing, m.Name, "/opt/cni/bin", "the network in use calls "+strings.Join(missing, ", ")+", which is not there")
	}
}

// missingPlugins are those that the network configuration in use calls, and that are not there.
func missingPlugins(n *fact.Node) []string {
	if len(n.Network) == 0 || n.Errors["network"] != "" {
		return nil
	}
	needed := slices.Clone(n.Network)
	if n.Facts.Runtime != "crio" { // which has it built in
		needed = append(needed, "loopback")
	}
	if slices.Contains(needed, "flannel") {
		needed = append(needed, "bridge", "host-local") // which it hands the pod to
	}
	return slices.DeleteFunc(needed, func(name string) bool { return slices.Contains(n.Plugins, name) })
}

// How far a clock may be off, as lab/join judges it: certificates are dated back five minutes.
const (
	offsetNoted   = 30 * time.Second
	offsetHarmful = 5 * time.Minute
)

// offset is how far the machine's clock is ahead of the host's, for certain: what the question and the answer took is not counted.
func offset(m *fact.Machine) time.Duration {
	switch {
	case m.Inside == nil:
	case m.Inside.Time.Before(m.Sent):
		return m.Inside.Time.Sub(m.Sent)
	case m.Inside.Time.After(m.Received):
		return m.Inside.Time.Sub(m.Received)
	}
	return 0
}

func (j *judgement) clock(m *fact.Machine) {
	off := offset(m)
	direction := "ahead of"
	if off < 0 {
		off, direction = -off, "behind"
	}
	if off < offsetNoted {
		return
	}
	f := j.find(symptom.ClockSkew, m.Name, "clock", fmt.Sprintf("it is %s %s the host's", off.Round(time.Second), direction))
	if off < offsetHarmful {
		f.Level = symptom.Warn
	}
}

// member judges the checks of a machine that has joined: kubelet, the control plane's static pods, the Node.
func (j *judgement) member(m *fact.Machine) {
	if !settled(m) {
		return
	}
	for _, c := range m.Inside.Member {
		if c.Result != joining.Blocked && c.Result != joining.Fixable {
			continue
		}
		id := c.Symptom
		switch c.ID {
		case joining.CheckNode:
			j.node(m, c)
			continue
		case joining.CheckEtcdMember:
			if id == symptom.EtcdLearnerNotInSync { // judged with all members
				continue
			}
			id = specific(c.Evidence, id)
		case joining.CheckKubelet:
			if j.has(symptom.KubeletStandalone, m.Name) { // a unit that lost its arguments is why it does not run, too
				continue
			}
			f := j.find(id, m.Name, "kubelet.service", c.Evidence)
			f.Hint, f.Repairable = cmp.Or(c.Hint, f.Hint), true
			continue
		}
		if id == "" {
			j.fails(string(c.ID), m.Name, "check "+string(c.ID), c.Evidence, c.Hint)
			continue
		}
		f := j.find(id, m.Name, string(c.ID), c.Evidence)
		f.Hint = cmp.Or(c.Hint, f.Hint)
		// labctl repair compares its manifest with what kubeadm makes, by what another control plane's API server says.
		f.Repairable = id == symptom.ControlPlaneCrashloop && j.f.API.Via != "" && j.f.API.Via != m.Name &&
			passes(m.Inside, joining.CheckKubelet) && passes(m.Inside, joining.CheckEtcdMember)
	}
}

// node judges a member's Node. Other rules often know better why it is not Ready; unready speaks when they found nothing.
func (j *judgement) node(m *fact.Machine, c joining.Check) {
	switch {
	case c.Reason == joining.NodeMissing:
		f := j.find(symptom.NodeNameMismatch, m.Name, "API", c.Evidence+", while its kubelet has joined: somebody deleted it")
		f.Hint, f.Repairable = cmp.Or(c.Hint, f.Hint), true
	case c.Reason == joining.NodeNotReady:
		if id := specific(c.Evidence, c.Symptom); id != "" && !j.refutes(m, id) {
			j.find(id, m.Name, "API", c.Evidence)
		}
	case c.Symptom != "":
		id := specific(c.Evidence, c.Symptom)
		if slices.Contains(ofBootstrap, id) { // a member has a certificate, and no token
			id = c.Symptom
		}
		j.find(id, m.Name, "API", c.Evidence)
	default:
		j.fails(string(c.ID), m.Name, "its Node", c.Evidence, c.Hint)
	}
}

func (j *judgement) unready() {
	for i := range j.f.Machines {
		j.notReady(&j.f.Machines[i])
	}
	for _, n := range j.f.API.Nodes {
		if j.apart() {
			j.notReady(&fact.Machine{Name: n.Name})
		}
	}
}

// notReady adds a finding for a Node that is not Ready when nothing else was found on its machine: then kubelet runs and does not work.
func (j *judgement) notReady(m *fact.Machine) {
	if silent(m) || j.on(m.Name) || m.Inside != nil && (!joined(m) || m.Inside.Facts.Running()) {
		return
	}
	for _, n := range j.f.API.Nodes {
		if n.Name == m.Name && !n.Ready && !j.has(symptom.APIServerUnreachable, "") {
			id := specific(n.Reason, symptom.KubeletNotRunning)
			if m.Inside != nil && j.refutes(m, id) { // kubelet tells of its node every 10 s only
				id = symptom.KubeletNotRunning
			}
			j.find(id, m.Name, "API", "its Node is not Ready: "+n.Reason)
		}
	}
}

// certificates judges whether a member's certificates are valid now. Where the machine's clock is far off, the host's clock decides.
func (j *judgement) certificates(m *fact.Machine) {
	if !settled(m) {
		return
	}
	now := m.Inside.Time
	if o := offset(m); o >= offsetHarmful || o <= -offsetHarmful {
		now = m.Sent
	}
	for _, c := range m.Inside.Certificates {
		switch {
		case now.After(c.NotAfter):
			j.find(symptom.CertificateExpired, m.Name, c.File, "valid until "+c.NotAfter.UTC().Format(time.RFC3339))
		case now.Before(c.NotBefore):
			j.find(symptom.ClockSkew, m.Name, c.File, "valid only from "+c.NotBefore.UTC().Format(time.RFC3339)+" on")
		}
	}
}

// etcdSuffers are what a slow disk does to etcd itself.
var etcdSuffers = []symptom.ID{symptom.EtcdUnreachable, symptom.EtcdNoQuorum, symptom.EtcdLearnerNotInSync}

func (j *judgement) disks() {
	for i := range j.f.Machines {
		j.disk(&j.f.Machines[i])
	}
}

// disk judges the write times that etcd measured while the facts were collected; older ones prove nothing about now. A slow disk is a fault
// if etcd suffers from it, or if the usual write is so slow that everything must.
func (j *judgement) disk(m *fact.Machine) {
	if m.Inside == nil || !slow(m.Inside.Etcd) {
		return
	}
	e := m.Inside.Etcd
	suffers := j.any(func(f symptom.Finding) bool {
		return slices.Contains(etcdSuffers, f.Symptom) && (f.Node == m.Name || f.Node == "")
	})
	if suffers || e.RecentMedian > fact.SlowWrite {
		j.find(symptom.EtcdSlow, m.Name, "etcd", fmt.Sprintf("the usual write to its log takes %.0f ms or more now (99th percentile since its start: %.0f ms)",
			e.RecentMedian*1000, e.FsyncP99*1000))
	}
}

// slow wants two slow writes as proof, or one that is so slow that there was no time for a second.
func slow(e *fact.EtcdDisk) bool {
	return e != nil && (e.RecentSyncs >= 2 && e.RecentMedian > slowSync || e.RecentSyncs == 1 && e.RecentMedian > fact.SlowWrite)
}

// slowSync is etcd's heartbeat interval, 100 ms, rounded up to the next step of etcd's histogram: a member whose usual write takes longer
// cannot follow a leader.
const slowSync = 0.128
