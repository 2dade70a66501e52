package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"k8slab/lab/diagnose/fact"
	joining "k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// api judges what the API server answers, or that it does not.
func (j *judgement) api() {
	a := j.f.API
	if a.Error != "" {
		if j.cluster() {
			j.find(symptom.APIServerUnreachable, "", "API", a.Error)
		}
		return
	}
	if a.Denied != "" && a.Ready == "" { // an API server that starts denies everything until it has read its roles
		j.find(symptom.RBACChanged, "", "API", fmt.Sprintf("the administrator's credentials have no rights: ClusterRoleBinding %s or ClusterRole cluster-admin is "+
			"missing or changed: %s", kube.Administrators, a.Denied)).Repairable = true
		return
	}
	if failed := slices.Sorted(maps.Keys(a.Errors)); len(failed) > 0 {
		j.unread = append(j.unread, fmt.Sprintf("API: %s: %s", strings.Join(failed, ", "), a.Errors[failed[0]]))
	}
	if a.Ready != "" {
		id := symptom.ControlPlaneCrashloop
		if strings.Contains(a.Ready, "etcd") {
			id = symptom.EtcdUnreachable
		}
		j.find(id, a.Via, "API", a.Ready)
	}
	machines := map[string]string{}
	for _, n := range a.Nodes {
		j.record(n)
		if other := machines[n.MachineID]; other != "" && n.MachineID != "" {
			j.find(symptom.DuplicateMachineIdentity, n.Name, "API", fmt.Sprintf("its machine-id %s is also that of %s", n.MachineID, other))
		}
		machines[n.MachineID] = n.Name
	}
	j.versions()
	j.pods()
	j.requests()
	j.forJoins()
	j.rights()
	j.documents()
	j.leaders()
}

// versions judges kubelets that are newer than the API server that they talk to: a control plane's own, or for a worker each. An upgrade that
// has not ended leaves older ones for a while, which all API servers serve.
// https://kubernetes.io/releases/version-skew-policy
func (j *judgement) versions() {
	if j.f.Upgrade != "" {
		j.find(symptom.UpgradeUnfinished, "", "upgrade", j.f.Upgrade).Level = symptom.Warn
	}
	for _, n := range j.f.API.Nodes {
		for _, on := range slices.Sorted(maps.Keys(j.f.API.Servers)) {
			server := j.f.API.Servers[on]
			own := n.Role != kube.RoleControlPlane || n.Name == on
			if own && server != "" && semver.Compare(semver.MajorMinor(n.KubeletVersion), semver.MajorMinor(server)) > 0 {
				f := j.find(symptom.VersionSkew, n.Name, "API", fmt.Sprintf("its kubelet is %s, newer than the API server of %s, %s", n.KubeletVersion, on, server))
				f.Hint = "`labctl upgrade` takes the API server to the version of kubelet. By hand: `kubeadm upgrade node` on " + on + "."
			}
		}
	}
}

// forJoins judges what the cluster lacks for joins, and what admission keeps out.
func (j *judgement) forJoins() {
	for _, lack := range joining.NeedFaults(j.f.API.Needs) {
		f := j.find(lack.Symptom, "", "API", lack.Evidence)
		f.Hint, f.Repairable = cmp.Or(lack.Hint, f.Hint), true // labctl repair runs the phases of kubeadm that made it
	}
	for _, r := range j.f.API.Rejections {
		f := j.find(symptom.AdmissionRejects, "", "API", r.By+": "+r.Message)
		if kind, name, known := strings.Cut(r.Owner, " "); known {
			f.Hint = "labctl never removes what somebody else has made. Have its owner change it; if nobody needs it: " +
				symptom.DeleteObject.With(kind, name) + "."
		}
	}
}

// rights judges what the cluster's own parts may not do any more.
func (j *judgement) rights() {
	if j.f.API.Ready != "" { // its rights come with its roles
		return
	}
	for _, r := range j.f.API.Rights {
		j.find(symptom.RBACChanged, "", "API", r.What).Repairable = true
	}
}

// documents judges the cluster's own documents that do not say what they must.
func (j *judgement) documents() {
	for _, d := range j.f.API.Documents {
		j.find(CauseOfDocument(d), "", "API", d.String()).Repairable = true
	}
}

// leaderSilence is how long a leader's Lease may be old: it is renewed every 2 s, and another instance takes over after 15 s.
const leaderSilence = time.Minute

// leaders judges whether an instance of the controller manager and of the scheduler leads.
func (j *judgement) leaders() {
	for _, component := range slices.Sorted(maps.Keys(j.f.API.Leaders)) {
		l := j.f.API.Leaders[component]
		if l.Renewed.IsZero() {
			continue
		}
		now := j.clusterTime()
		for _, m := range j.machines {
			if strings.HasPrefix(l.Holder, m.Name+"_") {
				now = j.f.Time.Add(offset(m))
			}
		}
		old := now.Sub(l.Renewed)
		text := fmt.Sprintf("no %s leads: %s renewed its lease %s ago, and none has taken over", component, l.Holder, old.Round(time.Second))
		switch {
		case old < leaderSilence:
		case component == kube.ControllerManager:
			j.find(symptom.ControllerManagerFailing, "", "API", text)
		default:
			j.fails("scheduler", "", "its lease", text, "kubectl -n kube-system logs -l component="+component)
		}
	}
}

// clusterTime is the time by the clocks of the cluster, of which nothing but its Leases may be known: that of the host, unless no Lease is
// that new.
func (j *judgement) clusterTime() time.Time {
	newest := time.Time{}
	for _, renewed := range j.f.API.Leases {
		newest = later(newest, renewed)
	}
	for _, l := range j.f.API.Leaders {
		newest = later(newest, l.Renewed)
	}
	if newest.Before(j.f.Time) {
		return newest
	}
	return j.f.Time
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// record judges a Node's conditions except Ready, which the machine's own checks know better.
func (j *judgement) record(n kube.Node) {
	m := j.machines[n.Name]
	if m == nil && !j.apart() || m != nil && silent(m) {
		return
	}
	switch {
	case strings.Contains(n.Pressure, "DiskPressure"):
		j.find(symptom.DiskFull, n.Name, "API", n.Pressure)
	case strings.Contains(n.Pressure, "MemoryPressure"):
		j.find(symptom.OutOfMemory, n.Name, "API", n.Pressure).Level = symptom.Warn
	case n.Pressure != "":
		j.find(symptom.InsufficientResources, n.Name, "API", n.Pressure).Level = symptom.Warn
	}
	if n.PodCIDR == "" && m != nil && j.f.Time.Sub(n.Created) > settleTime {
		j.find(symptom.PodCIDRNotAssigned, n.Name, "API", "its Node has no podCIDR")
	}
}

// ready reports whether the Node of this name is Ready.
func (j *judgement) ready(name string) bool {
	return slices.ContainsFunc(j.f.API.Nodes, func(n kube.Node) bool { return n.Name == name && n.Ready })
}

// daemonSets judges whether the cluster's own DaemonSets exist and want a pod on every node.
func (j *judgement) daemonSets() {
	for _, name := range slices.Sorted(maps.Keys(j.f.API.DaemonSets)) {
		d := j.f.API.DaemonSets[name]
		id := symptom.NetworkPluginPodsFailing
		if strings.HasSuffix(name, "/kube-proxy") {
			id = symptom.KubeProxyCrash
		}
		switch {
		case d.Missing:
			j.find(id, "", "API", "daemonset "+name+" does not exist").Repairable = true
		case d.Error != "" && len(j.f.API.Errors) == 0: // else it is one of many
			j.unread = append(j.unread, "API: "+d.Error)
		case d.Error != "":
		case d.Want < len(j.f.API.Nodes):
			j.find(id, "", "API", fmt.Sprintf("daemonset %s wants pods on %d of %d nodes", name, d.Want, len(j.f.API.Nodes))).Repairable = true
		}
	}
}

// requestTime is how long a bootstrap request may wait for its approval: it takes a second.
const requestTime = 20 * time.Second

// requests judges certificate requests of joining kubelets that nobody answers. Old requests of a node that is Ready do not count.
func (j *judgement) requests() {
	for _, r := range j.f.API.CSRs {
		waits := r.State == "pending" || r.State == "approved"
		if waits && r.Signer == "kubernetes.io/kube-apiserver-client-kubelet" && r.Node != "" && !j.ready(r.Node) && j.f.Time.Sub(r.Created) > requestTime {
			j.find(symptom.CSRNotApproved, r.Node, "API", fmt.Sprintf("certificate request %s of %s is %s since %s", r.Name, r.Requester, r.State, r.Created.UTC().Format(time.RFC3339)))
		}
	}
}

// portChecks are the checks of the services behind the ports, by which a node says that the service works.
var portChecks = map[int]joining.CheckID{
	6443: joining.CheckAPIServer, 2379: joining.CheckEtcdMember, 2380: joining.CheckEtcdMember, 10250: joining.CheckKubelet,
}

// ports judges the dials from node to node. A dead machine or a stopped service has a finding of its own. A service that its own machine
// finds healthy, and that another machine cannot reach, is blocked on the way.
func (j *judgement) ports() {
	for i := range j.f.Machines {
		from := &j.f.Machines[i]
		if silent(from) || !joined(from) {
			continue
		}
		for _, d := range from.Inside.Dials {
			to := j.machines[d.To]
			if d.Result == "open" || d.Proto != "tcp" || silent(to) || !joined(to) || to.Inside.Facts.Running() {
				continue
			}
			if d.Result == "refused" && !passes(to.Inside, portChecks[d.Port]) {
				continue
			}
			j.find(symptom.FirewallBlocked, j.behindWall(from, to, d.Port), from.Name, fmt.Sprintf("%s → %s:%d/%s: %s, while %s answers otherwise",
				from.Name, to.Name, d.Port, d.Proto, d.Result, to.Name))
		}
	}
}

// behindWall says at which of the two machines packets to the port are lost: where most dials to the port are lost; else at the dialling
// machine, if it reaches none of its peers or has a firewall rule; else at the dialled one.
func (j *judgement) behindWall(from, to *fact.Machine, port int) string {
	if lost := j.lostAt(port); lost[from.Name] != lost[to.Name] {
		if lost[from.Name] > lost[to.Name] {
			return from.Name
		}
		return to.Name
	}
	others := 0
	for _, d := range from.Inside.Dials {
		if d.Proto != "tcp" || d.To == to.Name || silent(j.machines[d.To]) {
			continue
		}
		if d.Result == "open" {
			return to.Name
		}
		others++
	}
	if others > 0 || j.has(symptom.FirewallBlocked, from.Name) && !j.has(symptom.FirewallBlocked, to.Name) {
		return from.Name
	}
	return to.Name
}

// lostAt counts the dials to a port that nobody answered, by the nodes that they began and ended at.
func (j *judgement) lostAt(port int) map[string]int {
	if lost, counted := j.losses[port]; counted {
		return lost
	}
	lost := map[string]int{}
	j.losses[port] = lost
	for i := range j.f.Machines {
		from := &j.f.Machines[i]
		if silent(from) || from.Inside == nil {
			continue
		}
		for _, d := range from.Inside.Dials {
			if d.Port == port && j.lost(d) {
				lost[from.Name]++
				lost[d.To]++
			}
		}
	}
	return lost
}

// lost reports whether nothing answered a dial to a machine that lives.
func (j *judgement) lost(d fact.Dial) bool {
	return (d.Result == "timeout" || d.Result == "unreachable") && !silent(j.machines[d.To])
}

// reaches reports whether the machine was dialled by its peers or dialled them, and no dial was lost.
func (j *judgement) reaches(m *fact.Machine) bool {
	answered := false
	for i := range j.f.Machines {
		from := &j.f.Machines[i]
		if from.Inside == nil {
			continue
		}
		for _, d := range from.Inside.Dials {
			if from.Name != m.Name && d.To != m.Name {
				continue
			}
			if j.lost(d) {
				return false
			}
			answered = answered || d.Result == "open"
		}
	}
	return answered
}
