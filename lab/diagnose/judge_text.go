package diagnose

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/event"
	joining "k8slab/lab/join"
	"k8slab/lab/symptom"
	"k8slab/lab/symptom/reader"
)

// explain searches journals and logs for the cause of a measured failure that no other measurement explains. A cause that a measurement
// refutes is old trouble. A text about one thing does not explain the failure of another.
func (j *judgement) explain() {
	measured := j.seen()
	for _, effect := range measured {
		if slices.ContainsFunc(measured, func(c symptom.Finding) bool { return symptom.Brings(c.Symptom, effect.Symptom) && j.near(c, effect) }) {
			continue
		}
		if effect.Symptom == symptom.APIServerUnreachable && j.f.API.Via != "" && j.f.API.Error == "" { // the server works; the way to it is broken
			continue
		}
		for i := range j.f.Machines {
			m := &j.f.Machines[i]
			about := effect.Node == m.Name || effect.Node == "" && m.Role == roleControlPlane
			if m.Inside == nil || !about || stopped(m, effect.Symptom) || effect.Symptom == symptom.EtcdLearnerNotInSync && abandoned(m) {
				continue
			}
			for _, text := range m.Inside.Texts {
				j.explainBy(m, effect, text.Name)
			}
		}
	}
}

// ended has the unit whose end each failure is.
var ended = map[symptom.ID]string{symptom.KubeletNotRunning: "kubelet", symptom.RuntimeSocketMissing: "containerd"}

// stopped reports whether somebody stopped the unit that does not run. It did not fail, so its earlier complaints are not the reason.
func stopped(m *fact.Machine, effect symptom.ID) bool {
	unit := unitOf(m, ended[effect])
	return unit.Active == "inactive" && unit.Result == "success"
}

// tellsOf has, for each failure of one program, that program's own texts. Other texts explain only general failures. A line about an image,
// say, does not explain why a certain file is missing, although a failed pull can in general be the reason.
var tellsOf = map[symptom.ID][]string{
	symptom.RuntimeSocketMissing: {"containerd", "crio"}, symptom.EtcdNoQuorum: {"etcd"}, symptom.EtcdLearnerNotInSync: {"etcd", "kubeadm"},
	symptom.EtcdStaleMember: {"etcd"}, symptom.KubeProxyCrash: {"kube-proxy"},
}

func (j *judgement) explainBy(m *fact.Machine, effect symptom.Finding, text string) {
	for _, f := range j.judged(m, text) {
		same := f.Symptom == effect.Symptom && effect.Node == m.Name
		if same {
			f.Detail = effect.Detail
		}
		about := symptom.General(effect.Symptom) || slices.Contains(tellsOf[effect.Symptom], text)
		causes := about && symptom.Brings(f.Symptom, effect.Symptom) && !symptom.General(f.Symptom) && f.Level == symptom.Fail && !j.refutes(m, f.Symptom)
		if !same && !causes {
			continue
		}
		if !j.has(f.Symptom, f.Node) {
			j.told[spotOf(f)] = text
		}
		j.add(f)
	}
}

func spotOf(f symptom.Finding) spot { return spot{f.Symptom, f.Node} }

// brought reports whether one finding can be the cause of another here. A finding that only a text shows explains no more than explain
// would let it.
func (j *judgement) brought(cause, effect symptom.Finding) bool {
	text, told := j.told[spotOf(cause)]
	_, both := j.told[spotOf(effect)]
	if told && !both && !symptom.General(effect.Symptom) && !slices.Contains(tellsOf[effect.Symptom], text) {
		return false
	}
	return j.near(cause, effect)
}

// judged is what one of a machine's texts shows, as far as it is recent.
func (j *judgement) judged(m *fact.Machine, name string) []symptom.Finding {
	key := m.Name + "/" + name
	if found, done := j.texts[key]; done {
		return found
	}
	var found []symptom.Finding
	for _, t := range m.Inside.Texts {
		if t.Name != name {
			continue
		}
		found, _ = reader.Judge(strings.NewReader(j.recent(m, t)), name, event.Redact) // a string's reader has no errors
	}
	found = slices.DeleteFunc(found, symptom.Finding.Suspected)
	for i := range found {
		found[i].Node, found[i].BecauseOf = m.Name, ""
	}
	j.texts[key] = found
	return found
}

// site adds what the site's own rules find in the texts, as far as these are recent, and no measurement contradicts it.
func (j *judgement) site() {
	for i := range j.f.Machines {
		m := &j.f.Machines[i]
		if silent(m) || m.Inside == nil {
			continue
		}
		for _, t := range m.Inside.Texts {
			for _, f := range siteFindings(j.rules, j.recent(m, t), t.Name, m.Name) {
				f.Node = m.Name
				if !j.rules.Owns(f.Symptom) {
					if j.refutes(m, f.Symptom) {
						continue
					}
					if !j.has(f.Symptom, f.Node) {
						j.told[spotOf(f)] = t.Name
					}
				}
				j.add(f)
			}
		}
	}
}

// recent is what of a machine's text can explain what is wrong now.
func (j *judgement) recent(m *fact.Machine, t fact.Text) string {
	if fact.WholeText(t.Name) {
		return t.Text
	}
	return after(t.Text, j.horizon(m.Inside, t.Name))
}

// horizon is the time before which a text is about old trouble: its unit's, and never before the machine's last join.
func (j *judgement) horizon(n *fact.Node, name string) time.Time {
	if j.f.Since > 0 {
		return n.Time.Add(-j.f.Since)
	}
	from := n.Units[name].Horizon(n.Time)
	if began := lifeBegan(n); began.After(from) {
		return began
	}
	return from
}

// lifeBegan is when the machine's last join began; before, it was another member or none. It is zero when no join was recorded, or when the
// last one found the machine to be a member already.
func lifeBegan(n *fact.Node) time.Time {
	if o := n.Facts.Outcome; len(n.Records) == 0 || o != nil && o.Already {
		return time.Time{}
	}
	return n.Records[0].Time
}

// after leaves out the lines that were written before. A line without a time belongs to the one before it.
func after(text string, from time.Time) string {
	var kept strings.Builder
	keep := true
	for line := range strings.Lines(text) {
		if at, ok := lineTime(line); ok {
			keep = !at.Before(from)
		}
		if keep {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// lineTime reads the time that journalctl's short-iso and container logs begin a line with.
func lineTime(line string) (time.Time, bool) {
	word, _, _ := strings.Cut(line, " ")
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05-0700"} {
		if at, err := time.Parse(layout, word); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// never are causes that the journals of healthy nodes show, too, and that stop nothing.
var never = []symptom.ID{symptom.ImageFilesystemZero, symptom.CrictlEndpointUnset}

// ofBootstrap are causes that concern a machine without a certificate of its own. Every kubelet's journal shows such refusals from before
// it had one.
var ofBootstrap = []symptom.ID{symptom.BootstrapRBACForbidden, symptom.TokenExpiredOrInvalid, symptom.CACertHashMismatch,
	symptom.CertificateKeyExpired, symptom.CertificateKeyInvalid}

// refutes reports whether a measurement on the machine, of its connections or of etcd shows that the cause does not hold now.
func (j *judgement) refutes(m *fact.Machine, id symptom.ID) bool {
	n := m.Inside
	if slices.Contains(never, id) || j.etcdRefutes(id) || n.Facts.Joined && slices.Contains(ofBootstrap, id) {
		return true
	}
	for _, checks := range [][]joining.Check{n.Checks, n.Member} {
		if slices.ContainsFunc(checks, func(c joining.Check) bool {
			return c.Result == joining.OK && slices.Contains(c.ID.Traits().Refutes, id)
		}) {
			return true
		}
	}
	if steady(n, crashes[id]) {
		return true
	}
	if id == symptom.FlannelSubnetEnvMissing && n.SubnetEnv != nil { // it is there now
		return true
	}
	if id == symptom.FirewallBlocked && j.reaches(m) {
		return true
	}
	if id == symptom.EtcdSlow && n.Etcd != nil { // etcd's own measure decides
		return true
	}
	if id == symptom.OutOfMemory && j.livesAgain(m) {
		return true
	}
	if id == symptom.CertificateExpired && len(n.Certificates) > 0 {
		return !slices.ContainsFunc(n.Certificates, func(c fact.Certificate) bool { return n.Time.After(c.NotAfter) })
	}
	return false
}

// etcdRefutes reports whether the list of members shows that the cause does not hold now.
func (j *judgement) etcdRefutes(id symptom.ID) bool {
	e := j.f.Etcd
	switch {
	case len(e.Members) == 0:
		return false
	case id == symptom.EtcdStaleMember: // every member was judged already; logs also name removed ones
		return true
	case e.Quorum != "":
		return false
	}
	switch id {
	case symptom.EtcdNoQuorum:
		return true
	case symptom.EtcdTooManyLearners, symptom.EtcdLearnerNotInSync: // logs show them also for a join that succeeded later
		return !slices.ContainsFunc(e.Members, func(m fact.Member) bool { return m.Learner })
	}
	return false
}

func passes(n *fact.Node, check joining.CheckID) bool {
	return slices.ContainsFunc(slices.Concat(n.Checks, n.Member), func(c joining.Check) bool { return c.ID == check && c.Result == joining.OK })
}

// crashes has, for each cause that is a crash, the containers that would crash.
var crashes = map[symptom.ID][]string{
	symptom.EtcdStaleMember: {"etcd"}, symptom.KubeProxyCrash: {"kube-proxy"}, symptom.NetworkPluginPodsFailing: {"flannel", "kube-flannel"},
	symptom.ControllerManagerFailing: {"kube-controller-manager"},
}

// enoughFree is the part of its memory of which a machine that has it free is not short.
const enoughFree = 0.1

// livesAgain reports whether what was killed for want of memory lives again: memory is free, kubelet and the runtime run, and the last run of
// every container that may have been killed has gone on for a while.
func (j *judgement) livesAgain(m *fact.Machine) bool {
	n := m.Inside
	for _, unit := range ended {
		if unitOf(m, unit).Active != "active" {
			return false
		}
	}
	if n.Memory.Total == 0 || float64(n.Memory.Available) < enoughFree*float64(n.Memory.Total) || len(n.Containers) == 0 {
		return false
	}
	spared := j.spared(m)
	last := map[[2]string]joining.Container{}
	for _, c := range n.Containers {
		if spared[c.Pod] {
			continue
		}
		of := [2]string{c.Pod, c.Name}
		if known, is := last[of]; !is || c.Created > known.Created {
			last[of] = c
		}
	}
	for _, c := range last {
		if !goesOn(n, c) && !prepared(n, c) {
			return false
		}
	}
	return true
}

// killedTask is how containerd names what was killed: a container, or the sandbox of its pod.
var killedTask = regexp.MustCompile(`TaskOOM event container_id:\\?"([0-9a-f]{64})`)

// spared are the pods of which nothing was killed for want of memory. Only containerd says which were; where others tell of it too, any may be.
func (j *judgement) spared(m *fact.Machine) map[string]bool {
	spared, killed := map[string]bool{}, map[string]bool{}
	for _, t := range m.Inside.Texts {
		if t.Name == "containerd" {
			for _, id := range killedTask.FindAllStringSubmatch(j.recent(m, t), -1) {
				killed[id[1][:joining.ShortID]] = true
			}
		} else if slices.ContainsFunc(j.judged(m, t.Name), func(f symptom.Finding) bool { return f.Symptom == symptom.OutOfMemory }) {
			return nil
		}
	}
	if len(killed) == 0 {
		return nil
	}
	for _, c := range m.Inside.Containers {
		if _, is := spared[c.Pod]; c.ID != "" && (!is || spared[c.Pod]) {
			spared[c.Pod] = !killed[c.ID] && !killed[c.Sandbox]
		}
	}
	return spared
}

// prepared reports whether the container looks like an init container that has done its work: it ran once, and one of its pod that began later
// goes on.
func prepared(n *fact.Node, c joining.Container) bool {
	return c.Attempt == 0 && slices.ContainsFunc(n.Containers, func(o joining.Container) bool {
		return o.Pod == c.Pod && o.Name != c.Name && o.Created > c.Created && goesOn(n, o)
	})
}

// steady reports whether a container of one of the names runs, and has for a while.
func steady(n *fact.Node, names []string) bool {
	return slices.ContainsFunc(n.Containers, func(c joining.Container) bool {
		return slices.Contains(names, c.Name) && goesOn(n, c)
	})
}

// goesOn reports whether the container runs, and has for a while.
func goesOn(n *fact.Node, c joining.Container) bool {
	return c.State == "CONTAINER_RUNNING" && n.Time.Sub(time.Unix(c.Created, 0)) > settleTime
}
