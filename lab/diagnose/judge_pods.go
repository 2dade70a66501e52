package diagnose

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8slab/lab/diagnose/fact"
	joining "k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// settleTime is what a kubelet that has just started may take until its node has everything.
const settleTime = 30 * time.Second

// podNetwork judges what flannel left on a member.
func (j *judgement) podNetwork(m *fact.Machine) {
	n := m.Inside
	if !settled(m) || !slices.Contains(n.Network, "flannel") {
		return
	}
	started := n.Units["kubelet"].Started
	if n.SubnetEnv == nil && n.Units["kubelet"].Active == "active" && n.Time.Sub(started) > settleTime {
		j.find(symptom.FlannelSubnetEnvMissing, m.Name, "/run/flannel/subnet.env", "it is missing").Repairable = j.flannelRestarts(m.Name)
	}
	subnet, err := netip.ParsePrefix(n.SubnetEnv["FLANNEL_SUBNET"])
	if given, ok := j.podNet(m.Name); ok && err == nil && given != subnet.Masked() {
		f := j.find(symptom.CNIStaleConfig, m.Name, "flannel", fmt.Sprintf("it still uses %s, the podCIDR of its Node is %s now", subnet.Masked(), given))
		f.Repairable = j.flannelRestarts(m.Name)
		f.Hint = fmt.Sprintf("kubectl -n kube-flannel delete pod --field-selector spec.nodeName=%[1]s; on %[1]s: ip link delete cni0; "+
			"then delete the pods of the old subnet: kubectl get pods -A -o wide --field-selector spec.nodeName=%[1]s", m.Name)
	}
	j.strangers(m)
	for _, l := range n.Links {
		if l.Name != "cni0" || err != nil {
			continue
		}
		for _, a := range l.Addresses {
			if have, err := netip.ParsePrefix(a); err == nil && have.Addr().Is4() && have.Masked() != subnet.Masked() {
				j.find(symptom.CNIStaleConfig, m.Name, "cni0", fmt.Sprintf("it has %s, flannel's subnet of this node is %s", have, subnet))
			}
		}
	}
}

// flannelRestarts reports whether labctl repair restarts flannel on the node: where it runs, or its DaemonSet was deleted.
func (j *judgement) flannelRestarts(node string) bool {
	return j.f.API.DaemonSets["kube-flannel/flannel"].Missing ||
		slices.ContainsFunc(j.f.API.Pods, func(p kube.Pod) bool {
			return p.Node == node && p.Namespace == "kube-flannel" && strings.HasPrefix(p.Name, "flannel-") && p.Ready && !p.Deleting
		})
}

// strangers finds pods with an address outside of their node's network. They started when the node had another configuration.
func (j *judgement) strangers(m *fact.Machine) {
	for _, n := range j.f.API.Nodes {
		for _, p := range j.f.API.Pods {
			if n.Name == m.Name && p.Misaddressed(n) {
				f := j.find(symptom.CNIStaleConfig, m.Name, "API", fmt.Sprintf("pod %s/%s has %s, which is not of its node's network %s", p.Namespace, p.Name, p.IP, n.PodCIDR))
				f.Hint, f.Repairable = fmt.Sprintf("kubectl -n %s delete pod %s, or end its sandbox on %s: crictl stopp", p.Namespace, p.Name, m.Name), true
			}
		}
	}
}

// podNet is the network that the cluster gave the node for its pods.
func (j *judgement) podNet(name string) (netip.Prefix, bool) {
	for _, n := range j.f.API.Nodes {
		if n.Name == name {
			p, err := netip.ParsePrefix(n.PodCIDR)
			return p.Masked(), err == nil
		}
	}
	return netip.Prefix{}, false
}

// lostTunnel is one that carries no answer.
type lostTunnel struct{ from, to, result string }

// overlay judges flannel's tunnels: every node needs one to every other node, and an answer through it. When several are silent, the fault
// is at the node that most of them share.
func (j *judgement) overlay() {
	var lost []lostTunnel
	at := map[string]int{}
	ends := j.tunnelEnds()
	for _, from := range ends {
		results := map[string]string{}
		for _, d := range from.machine.Inside.Overlay {
			results[d.To] = d.Result
		}
		for _, to := range ends {
			if from.machine == to.machine || to.shut {
				continue
			}
			if result := j.tunnel(from, to, results); result == "timeout" || result == "unreachable" {
				lost = append(lost, lostTunnel{from.machine.Name, to.machine.Name, result})
				at[from.machine.Name]++
				at[to.machine.Name]++
			}
		}
	}
	for _, l := range lost {
		node := l.to
		if known := j.has(symptom.FirewallBlocked, l.from); known != j.has(symptom.FirewallBlocked, l.to) && known || at[l.from] > at[l.to] {
			node = l.from
		}
		j.find(symptom.FirewallBlocked, node, l.from, fmt.Sprintf("%s → %s:8472/udp: flannel's tunnel carries no answer (%s)", l.from, l.to, l.result))
	}
}

// tunnelEnd is a machine that should have working tunnels. There are as many ways as pairs of them, so what is asked of one is asked once.
type tunnelEnd struct {
	machine   *fact.Machine
	pods, far string // the range of its pods, and the address where tunnels to it end
	shut      bool
}

func (j *judgement) tunnelEnds() []tunnelEnd {
	var ends []tunnelEnd
	for i := range j.f.Machines {
		if m := &j.f.Machines[i]; j.tunnels(m) {
			pods, _ := j.podNet(m.Name)
			ends = append(ends, tunnelEnd{m, pods.String(), pods.Addr().String(), j.shut(m, kubeletPort)})
		}
	}
	return ends
}

// tunnels reports whether the machine should have working tunnels: it is a settled member, flannel has run there, and kubelet is well.
func (j *judgement) tunnels(m *fact.Machine) bool {
	if silent(m) || !joined(m) || m.Inside.Facts.Running() || m.Inside.Errors["overlay"] != "" {
		return false
	}
	subnet, err := netip.ParsePrefix(m.Inside.SubnetEnv["FLANNEL_SUBNET"])
	given, known := j.podNet(m.Name)
	return err == nil && known && given == subnet.Masked() && slices.Contains(m.Inside.Network, "flannel") && passes(m.Inside, joining.CheckKubelet) &&
		m.Inside.Time.Sub(m.Inside.Units["kubelet"].Started) > settleTime
}

// kubeletPort is what is dialled through a tunnel.
const kubeletPort = 10250

// shut reports whether a direct dial to the port of the machine failed, so that a tunnel proves nothing about it.
func (j *judgement) shut(m *fact.Machine, port int) bool {
	return slices.ContainsFunc(j.f.Machines, func(from fact.Machine) bool {
		return from.Inside != nil && slices.ContainsFunc(from.Inside.Dials, func(d fact.Dial) bool {
			return d.To == m.Name && d.Port == port && d.Result != "open"
		})
	})
}

// tunnel is the result of the dial through the tunnel. A missing tunnel is a finding.
func (j *judgement) tunnel(from, to tunnelEnd, results map[string]string) string {
	result, dialled := results[to.far]
	if !dialled {
		j.find(symptom.NetworkPluginPodsFailing, from.machine.Name, "flannel",
			fmt.Sprintf("it has no tunnel to the pods of %s (%s)", to.machine.Name, to.pods))
	}
	return result
}

// userPods warns of users' pods that cannot get their image, once for each node and cause.
func (j *judgement) userPods() {
	for i := range j.f.Machines {
		name := j.f.Machines[i].Name
		waits := kube.ImageWaits(slices.DeleteFunc(slices.Clone(j.f.API.Pods), func(p kube.Pod) bool { return p.Node != name || Own(p) }))
		for k, w := range waits {
			if k == evidenceLimit-1 && len(waits) > evidenceLimit {
				j.userPod(name, w.Cause, fmt.Sprintf("%d more images are missing in the same way", len(waits)-k))
				break
			}
			j.userPod(name, w.Cause, w.String())
		}
	}
}

func (j *judgement) userPod(node string, cause kube.PullCause, text string) {
	f := j.findKind(symptom.ImagePullFailure, symptom.UserPod+string(cause), node, "API", text)
	f.Level = symptom.Warn
	f.Meaning, f.Hint = pullTexts[cause].meaning, pullTexts[cause].hint+" Without the registry: "+loadImage
	if !j.f.Uplink && cause.Stranded() {
		f.Meaning = "A pod waits for an image that its node does not have and cannot pull: nodes of this lab have no uplink."
		f.Hint = loadImage + " Or give nodes a way to registries: `uplink: nat` in the section network of cluster.yaml. " +
			"Or name a registry in the lab as a mirror in its section registries."
	}
}

// podFailures has the cause that a failure of each of the cluster's own pods means, by the beginning of the pod's name.
var podFailures = []struct {
	prefix string
	id     symptom.ID
}{
	{"flannel-", symptom.NetworkPluginPodsFailing},
	{"kube-flannel-", symptom.NetworkPluginPodsFailing},
	{"kube-proxy-", symptom.KubeProxyCrash},
	{"kube-controller-manager-", symptom.ControllerManagerFailing},
	{"kube-apiserver-", symptom.ControlPlaneCrashloop},
	{"kube-scheduler-", symptom.ControlPlaneCrashloop},
	{"etcd-", symptom.EtcdUnreachable},
}

// pods judges failing pods on Ready nodes. A pod that only starts, or whose node is broken, is no cause.
func (j *judgement) pods() {
	for _, p := range j.f.API.Pods {
		if p.Deleting || !j.ready(p.Node) || !podFails(p) {
			continue
		}
		text := fmt.Sprintf("pod %s/%s: %s", p.Namespace, p.Name, p.Reason)
		id := specific(p.Reason, "")
		if id == symptom.ControlPlaneCrashloop { // any container can crash again and again
			id = ""
		}
		for _, known := range podFailures {
			if strings.HasPrefix(p.Name, known.prefix) {
				id = specific(p.Reason, known.id)
				break
			}
		}
		if id == "" && !Own(p) {
			j.unread = append(j.unread, fmt.Sprintf("%s; next: kubectl -n %s describe pod %s", text, p.Namespace, p.Name))
			continue
		}
		if id == "" {
			j.fails("pods", p.Node, "API", text, fmt.Sprintf("kubectl -n %s describe pod %s", p.Namespace, p.Name))
			continue
		}
		j.find(id, p.Node, "API", text)
	}
}

// podFails tells a pod that fails from one that starts: a container of it has ended, or kubelet uses one of its words for a failure.
func podFails(p kube.Pod) bool {
	return p.Exited || slices.ContainsFunc([]string{"BackOff", "Err", "OOMKilled", "Evicted", "Failed"}, func(sign string) bool {
		return strings.Contains(p.Reason, sign)
	})
}
