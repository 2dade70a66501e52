package diagnose

import (
	"cmp"
	"slices"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/symptom"
)

// rule is one part of the judgement. It sees only the findings of the rules that it overrules or heeds. So the order of two rules that do
// not name each other changes nothing but the order of their findings.
type rule struct {
	name      ruleName
	depth     int        // orders rules that do not name each other: the smaller, the nearer to causes
	overrules []ruleName // rules whose findings it may take back or change
	heeds     []ruleName // rules whose findings decide what it finds
	machine   func(*judgement, *fact.Machine)
	cluster   func(*judgement) // for rules about the whole cluster, instead of machine
}

type ruleName string

const (
	byDomain       ruleName = "domain"
	byManifests    ruleName = "manifests"
	byChecks       ruleName = "checks"
	byPlugins      ruleName = "plugins"
	byClock        ruleName = "clock"
	byKubeadm      ruleName = "kubeadm at work"
	byMember       ruleName = "member"
	byCertificates ruleName = "certificates"
	byPodNetwork   ruleName = "pod network"
	byOrgans       ruleName = "organs"
	byLastJoin     ruleName = "last join"
	byFiles        ruleName = "files"
	byAPI          ruleName = "API"
	byPorts        ruleName = "ports"
	byTunnels      ruleName = "tunnels"
	byEtcd         ruleName = "etcd"
	byDisk         ruleName = "etcd's disk"
	byOneAPI       ruleName = "one API"
	byTexts        ruleName = "texts"
	byDaemonSets   ruleName = "daemon sets"
	byUnready      ruleName = "unready"
	byBehind       ruleName = "behind"
	byUserPods     ruleName = "user pods"
	byUnexplained  ruleName = "unexplained"
	byComforts     ruleName = "comforts"
	bySite         ruleName = "site"
)

// ofMachines are the rules about one machine.
var ofMachines = []ruleName{
	byDomain, byManifests, byChecks, byPlugins, byClock, byKubeadm, byMember, byCertificates, byPodNetwork, byOrgans,
	byLastJoin, byFiles,
}

// rules are all of them.
var rules = []rule{
	{name: byDomain, depth: 1, machine: (*judgement).domain},
	{name: byManifests, depth: 2, machine: (*judgement).manifests},
	{name: byChecks, depth: 3, machine: (*judgement).checks},
	{name: byPlugins, depth: 4, machine: (*judgement).plugins},
	{name: byClock, depth: 5, overrules: []ruleName{byChecks}, machine: (*judgement).clock},
	{name: byKubeadm, depth: 6, machine: (*judgement).atWork},
	{name: byMember, depth: 7, overrules: []ruleName{byManifests, byChecks}, machine: (*judgement).member},
	{name: byCertificates, depth: 8, overrules: []ruleName{byClock}, machine: (*judgement).certificates},
	{name: byPodNetwork, depth: 9, overrules: []ruleName{byChecks}, machine: (*judgement).podNetwork},
	{name: byOrgans, depth: 10, machine: (*judgement).organs},
	{name: byLastJoin, depth: 11, overrules: []ruleName{byChecks}, machine: (*judgement).outside},
	{name: byFiles, depth: 0, heeds: []ruleName{byManifests, byChecks, byPlugins, byMember, byPodNetwork, byOrgans},
		machine: (*judgement).files},

	{name: byAPI, depth: 12, overrules: []ruleName{byLastJoin}, cluster: (*judgement).api},
	{name: byPorts, depth: 13, heeds: ofMachines, cluster: (*judgement).ports},
	{name: byTunnels, depth: 14, heeds: append([]ruleName{byPorts}, ofMachines...), cluster: (*judgement).overlay},
	// When a join has left a learner, the learner tells more than the join's record and output.
	{name: byEtcd, depth: 15, overrules: []ruleName{byChecks, byMember, byKubeadm, byLastJoin},
		heeds: append([]ruleName{byAPI}, ofMachines...), cluster: (*judgement).etcd},
	{name: byDisk, depth: 16, heeds: append([]ruleName{byAPI, byEtcd}, ofMachines...), cluster: (*judgement).disks},
	{name: byOneAPI, depth: 17, overrules: append([]ruleName{byAPI}, ofMachines...), cluster: (*judgement).oneAPI},
	{name: byTexts, depth: 18, heeds: append([]ruleName{byAPI, byPorts, byTunnels, byEtcd, byDisk, byOneAPI}, ofMachines...),
		cluster: (*judgement).explain},
	// A missing DaemonSet is a measurement, and no log can explain why somebody deleted it.
	{name: byDaemonSets, depth: 19, overrules: []ruleName{byAPI, byTexts}, cluster: (*judgement).daemonSets},
	{name: byUnready, depth: 20, heeds: append([]ruleName{byAPI, byPorts, byTunnels, byEtcd, byDisk, byOneAPI, byTexts}, ofMachines...),
		cluster: (*judgement).unready},
	{name: byBehind, depth: 21, overrules: []ruleName{byLastJoin}, cluster: (*judgement).behind,
		heeds: append([]ruleName{byAPI, byPorts, byTunnels, byEtcd, byDisk, byOneAPI, byTexts, byDaemonSets, byUnready}, ofMachines...)},
	{name: byUserPods, depth: 22, cluster: (*judgement).userPods},
	{name: byUnexplained, depth: 23, cluster: (*judgement).unexplained,
		heeds: append([]ruleName{byAPI, byPorts, byTunnels, byEtcd, byDisk, byOneAPI, byTexts, byDaemonSets, byUnready, byBehind},
			ofMachines...)},
	{name: byComforts, depth: 30, heeds: ofMachines, cluster: (*judgement).comforts},
	// What a site looks for changes nothing of what is found without it.
	{name: bySite, depth: 31, cluster: (*judgement).site,
		heeds: append([]ruleName{byAPI, byPorts, byTunnels, byEtcd, byDisk, byOneAPI, byTexts, byDaemonSets, byUnready, byBehind, byUserPods,
			byUnexplained, byComforts}, ofMachines...)},
}

// sorted puts every rule behind those that it overrules or heeds. Rules that name each other in a circle are left over, and so are the
// rules behind them.
func sorted(rules []rule) (order, left []rule) {
	left = slices.Clone(rules)
	slices.SortFunc(left, func(a, b rule) int { return cmp.Compare(a.depth, b.depth) })
	waits := func(r rule) bool {
		return slices.ContainsFunc(left, func(o rule) bool { return o.name != r.name && r.sees(o.name) })
	}
	for {
		i := slices.IndexFunc(left, func(r rule) bool { return !waits(r) })
		if i < 0 {
			return order, left
		}
		order, left = append(order, left[i]), slices.Delete(left, i, i+1)
	}
}

// sees reports whether the other rule's findings may change what this one finds.
func (r rule) sees(other ruleName) bool {
	return r.name == other || slices.Contains(r.overrules, other) || slices.Contains(r.heeds, other)
}

// inOrder are the rules as they are applied.
var inOrder, _ = sorted(rules)

// claim is a finding and the rules that found it.
type claim struct {
	symptom.Finding
	by []ruleName
}

// apply applies the rules in their order: first those about one machine, machine by machine.
func (j *judgement) apply(order []rule) {
	for i := range j.f.Machines {
		m := &j.f.Machines[i]
		for _, r := range order {
			if r.machine != nil && (r.name == byDomain || !silent(m) && m.Inside != nil) {
				j.rule = r
				r.machine(j, m)
			}
		}
	}
	for _, r := range order {
		if r.cluster != nil {
			j.rule = r
			r.cluster(j)
		}
	}
}

// seen are the findings that the rule at work may see.
func (j *judgement) seen() []symptom.Finding {
	var all []symptom.Finding
	for _, c := range j.found {
		if slices.ContainsFunc(c.by, j.rule.sees) {
			all = append(all, c.Finding)
		}
	}
	return all
}

// any reports whether the rule at work sees such a finding.
func (j *judgement) any(such func(symptom.Finding) bool) bool {
	return slices.ContainsFunc(j.found, func(c claim) bool { return such(c.Finding) && slices.ContainsFunc(c.by, j.rule.sees) })
}

// mayChange reports whether the rule at work overrules one of those that found it.
func (j *judgement) mayChange(c claim) bool {
	return slices.ContainsFunc(c.by, func(by ruleName) bool { return by == j.rule.name || slices.Contains(j.rule.overrules, by) })
}

// takeBack removes findings that the rule at work may change, and returns them.
func (j *judgement) takeBack(such func(symptom.Finding) bool) (taken []symptom.Finding) {
	j.found = slices.DeleteFunc(j.found, func(c claim) bool {
		takes := such(c.Finding) && j.mayChange(c)
		if takes {
			taken = append(taken, c.Finding)
		}
		return takes
	})
	return taken
}

// add notes what the rule at work found, or more evidence of it.
func (j *judgement) add(f symptom.Finding) *symptom.Finding {
	for i := range j.found {
		if c := &j.found[i]; absorb(&c.Finding, f) {
			if !slices.Contains(c.by, j.rule.name) {
				c.by = append(c.by, j.rule.name)
			}
			return &c.Finding
		}
	}
	j.found = append(j.found, claim{f, []ruleName{j.rule.name}})
	return &j.found[len(j.found)-1].Finding
}
