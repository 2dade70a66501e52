package diagnose

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8slab/lab/diagnose/fact"
	joining "k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

func TestHealthyClusterYieldsNothing(t *testing.T) {
	for _, workers := range []int{0, 2, 50} {
		if found := Judge(healthyFacts(workers)); len(found) > 0 {
			t.Errorf("%d workers: %+v", workers, found)
		}
	}
}

const (
	socketGone  = `E0301 11:50:00.1 7 run.go:72] "command failed" err="failed to run Kubelet: validate service connection: dial unix /run/containerd/containerd.sock: connect: no such file or directory"`
	peerTimeout = `{"level":"warn","msg":"failed to reach the peer URL","error":"Get \"https://192.0.2.12:2380/version\": dial tcp 192.0.2.12:2380: i/o timeout"}`
	unknownFlag = `E0301 11:59:00.1 7 run.go:74] "command failed" err="failed to parse kubelet flag: unknown flag: --network-plugin"`
)

// Whatever went wrong before, and was repaired, stands in the journals for ever.
func TestOldTroubleInJournalsIsNone(t *testing.T) {
	f := healthyFacts(1)
	for i := range f.Machines {
		journal(&f.Machines[i], "kubelet", 20*time.Minute, socketGone, 5*time.Minute, unknownFlag, 4*time.Minute, socketGone)
		f.Machines[i].Inside.Facts.Outcome = &joining.Outcome{Joined: true}
	}
	f.API.CSRs = []kube.CSR{{Name: "csr-1", Signer: "kubernetes.io/kube-apiserver-client-kubelet", Node: "w1", State: "pending", Created: midday.Add(-time.Hour)}}
	if found := Judge(f); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

// A kubelet is refused as a stranger until it has its certificate, which explains nothing on a machine that has joined.
func TestBootstrapOfAMember(t *testing.T) {
	f := healthyFacts(1)
	m := f.Machine("w1")
	m.Inside.Facts.Joined = true
	fail(m, joining.Check{ID: "kubelet", Result: joining.Blocked, Symptom: symptom.TLSBootstrapTimeout, Evidence: "no certificate"})
	journal(m, "kubelet", time.Minute, `E0301 11:59:00.1 7 x.go:1] err="configmaps \"kubelet-config\" is forbidden: User \"system:bootstrap:abcdef\" cannot get it"`)
	if found := Judge(f); len(found) == 0 || found[0].Symptom != symptom.TLSBootstrapTimeout {
		t.Errorf("a member: %+v", found)
	}
	m.Inside.Facts.Joined = false
	if found := Judge(f); len(found) == 0 || found[0].Symptom != symptom.BootstrapRBACForbidden {
		t.Errorf("no member: %+v", found)
	}
}

// Flannel's file was missing some minutes ago, and is there: what is missing now is another file.
func TestFlannelsFileIsBack(t *testing.T) {
	for _, back := range []bool{true, false} {
		f := healthyFacts(1)
		m := f.Machine("w1")
		if !back {
			m.Inside.SubnetEnv = nil
		}
		fail(m, joining.Check{ID: "cni-config", Result: joining.Blocked, Symptom: symptom.CNINotInitialized, Evidence: "no configuration"})
		journal(m, "containerd", 1*time.Minute, `level=error msg="RunPodSandbox failed" error="plugin type=\"flannel\" failed (add): open /run/flannel/subnet.env: no such file or directory"`)
		found := Judge(f)
		if told := slices.ContainsFunc(found, func(o symptom.Finding) bool { return o.Symptom == symptom.FlannelSubnetEnvMissing }); told == back {
			t.Errorf("back %v: %+v", back, found)
		}
	}
}

// A firewall was in the way some minutes ago, and is not: the dials went through.
func TestWallIsGone(t *testing.T) {
	for _, gone := range []bool{true, false} {
		f := healthyFacts(1)
		if !gone {
			undialled(&f)
		}
		f.Etcd.Members[2].Healthy, f.Etcd.Members[2].Error = false, "context deadline exceeded"
		journal(f.Machine("cp3"), "etcd", time.Minute, peerTimeout)
		found := Judge(f)
		if told := slices.ContainsFunc(found, func(o symptom.Finding) bool { return o.Symptom == symptom.FirewallBlocked }); told == gone {
			t.Errorf("gone %v: %+v", gone, found)
		}
	}
}

// A machine that does not answer where it was is said to have moved, if its kubelet says so.
func TestMachineThatMoved(t *testing.T) {
	for _, moved := range []bool{true, false} {
		f := healthyFacts(1)
		dead(f.Machine("w1"), "running", "no route to host")
		for i, n := range f.API.Nodes {
			if f.API.Nodes[i].IP = f.Machine(n.Name).IP; n.Name == "w1" && moved {
				f.API.Nodes[i].IP = "10.17.3.99"
			}
		}
		found := Judge(f)
		if len(found) != 1 || found[0].Symptom != symptom.NodeUnreachable || strings.Contains(found[0].Hint, "ip: 10.17.3.99") != moved {
			t.Errorf("moved %v: %+v", moved, found)
		}
	}
}

type want struct {
	id        symptom.ID
	node      string
	detail    string
	becauseOf symptom.ID
}

func outlined(found []symptom.Finding) []want {
	var all []want
	for _, f := range found {
		all = append(all, want{f.Symptom, f.Node, f.Detail, f.BecauseOf})
	}
	return all
}

func dead(m *fact.Machine, state, ssh string) {
	m.State, m.SSH, m.Inside = state, ssh, nil
}

func stoppedKubelet(m *fact.Machine) {
	m.Inside.Facts.Kubelet.Active = "failed"
	m.Inside.Units["kubelet"] = fact.Unit{Load: "loaded", Active: "failed", Started: midday.Add(-2 * time.Minute), Since: midday.Add(-time.Minute)}
	fail(m, joining.Check{ID: "kubelet", Result: joining.Blocked, Symptom: symptom.KubeletNotRunning, Evidence: "failed"})
	fail(m, joining.Check{ID: "node", Result: joining.Blocked, Reason: joining.NodeNotReady, Evidence: "NodeStatusUnknown: Kubelet stopped posting node status."})
}

// damages are what can be wrong with a healthy cluster of three control planes and two workers, and what is found then.
var damages = []struct {
	name   string
	damage func(*fact.Facts)
	want   []want
}{
	{"a worker is off", func(f *fact.Facts) { dead(f.Machine("w1"), "off", "no route to host") }, []want{{id: symptom.MachineNotRunning, node: "w1"}}},
	{"a machine is paused", func(f *fact.Facts) { dead(f.Machine("w1"), "paused", "no answer") }, []want{{id: symptom.MachinePaused, node: "w1"}}},
	{"a machine does not answer", func(f *fact.Facts) { dead(f.Machine("w1"), "running", "connection refused") }, []want{{id: symptom.NodeUnreachable, node: "w1"}}},
	{"a control plane is off, and its etcd member with it", func(f *fact.Facts) {
		dead(f.Machine("cp3"), "off", "no route to host")
		f.Etcd.Members[2].Healthy, f.Etcd.Members[2].Error = false, "ask for its status: deadline exceeded"
	}, []want{{id: symptom.MachineNotRunning, node: "cp3"}, {id: symptom.EtcdUnreachable, node: "cp3", becauseOf: symptom.MachineNotRunning}}},
	{"two of three are off: no quorum, no API", func(f *fact.Facts) {
		for i, name := range []string{"cp2", "cp3"} {
			dead(f.Machine(name), "off", "no route to host")
			f.Etcd.Members[i+1].Healthy, f.Etcd.Members[i+1].Error = false, "deadline exceeded"
		}
		f.Etcd.Quorum = "list etcd members: deadline exceeded"
		f.API = fact.API{Error: "deadline exceeded"}
		fail(f.Machine("cp1"), joining.Check{ID: "api-server", Result: joining.Blocked, Symptom: symptom.ControlPlaneCrashloop, Evidence: "500"})
	}, []want{{id: symptom.MachineNotRunning, node: "cp2"}, {id: symptom.MachineNotRunning, node: "cp3"},
		{id: symptom.ControlPlaneCrashloop, node: "cp1", becauseOf: symptom.MachineNotRunning}, {id: symptom.EtcdNoQuorum, becauseOf: symptom.MachineNotRunning},
		{id: symptom.EtcdUnreachable, node: "cp2", becauseOf: symptom.MachineNotRunning}, {id: symptom.EtcdUnreachable, node: "cp3", becauseOf: symptom.MachineNotRunning},
		{id: symptom.APIServerUnreachable, becauseOf: symptom.MachineNotRunning}}},
	{"a worker's kubelet is newer than an API server", func(f *fact.Facts) { upgradedTo(f, "v1.36.3", "w1") },
		[]want{{id: symptom.VersionSkew, node: "w1"}}},
	{"a control plane's kubelet is newer than its own API server", func(f *fact.Facts) { upgradedTo(f, "v1.36.3", "cp1") },
		[]want{{id: symptom.VersionSkew, node: "cp1"}}},
	{"a control plane's kubelet is newer than other API servers", func(f *fact.Facts) { upgradedTo(f, "v1.36.3", "cp2") }, nil},
	{"an API server whose image says no version", func(f *fact.Facts) { upgradedTo(f, "", "w1") }, nil},
	{"an upgrade has not ended", func(f *fact.Facts) { f.Upgrade = "from v1.36.3 to v1.37.2" }, []want{{id: symptom.UpgradeUnfinished}}},
	{"kubelet was stopped by hand, and had old trouble", func(f *fact.Facts) {
		m := f.Machine("w1")
		stoppedKubelet(m)
		journal(m, "kubelet", 5*time.Minute, unknownFlag, 2*time.Minute, "I0301 kubelet started")
	}, []want{{id: symptom.KubeletNotRunning, node: "w1"}}},
	{"kubelet's last run says why it died", func(f *fact.Facts) {
		m := f.Machine("w1")
		stoppedKubelet(m)
		journal(m, "kubelet", time.Minute, unknownFlag)
	}, []want{{id: symptom.KubeletFlagRemoved, node: "w1"}, {id: symptom.KubeletNotRunning, node: "w1", becauseOf: symptom.KubeletFlagRemoved}}},
	{"kubelet died of a runtime that answers again", func(f *fact.Facts) {
		m := f.Machine("w1")
		stoppedKubelet(m)
		journal(m, "kubelet", time.Minute, socketGone)
	}, []want{{id: symptom.KubeletNotRunning, node: "w1"}}},
	{"containerd is dead", func(f *fact.Facts) {
		m := f.Machine("w1")
		fail(m, joining.Check{ID: "cri", Result: joining.Fixable, Symptom: symptom.RuntimeSocketMissing, Evidence: "the socket does not exist"})
		fail(m, joining.Check{ID: "node", Result: joining.Blocked, Reason: joining.NodeNotReady, Evidence: "KubeletNotReady: container runtime is down"})
	}, []want{{id: symptom.RuntimeSocketMissing, node: "w1"}}},
	{"CRI is disabled", func(f *fact.Facts) {
		fail(f.Machine("w1"), joining.Check{ID: "cri", Result: joining.Fixable, Symptom: symptom.CRIPluginDisabled, Evidence: "unknown service"})
	}, []want{{id: symptom.CRIPluginDisabled, node: "w1"}}},
	{"standalone kubelet", func(f *fact.Facts) {
		fail(f.Machine("w1"), joining.Check{ID: "kubelet", Result: joining.Blocked, Symptom: symptom.KubeletStandalone, Evidence: "no --kubeconfig"})
	}, []want{{id: symptom.KubeletStandalone, node: "w1"}}},
	{"kubelet's unit lost its arguments, and it does not run", func(f *fact.Facts) {
		fail(f.Machine("w1"), joining.Check{ID: "kubelet-unit", Result: joining.Fixable, Symptom: symptom.KubeletStandalone, Evidence: "no --kubeconfig"})
		fail(f.Machine("w1"), joining.Check{ID: "kubelet", Result: joining.Blocked, Symptom: symptom.KubeletNotRunning, Evidence: "failed"})
	}, []want{{id: symptom.KubeletStandalone, node: "w1"}}},
	{"no CNI configuration", func(f *fact.Facts) {
		m := f.Machine("w1")
		m.Inside.Network = nil
		fail(m, joining.Check{ID: "cni-config", Result: joining.Fixable, Symptom: symptom.CNINotInitialized, Evidence: "no configuration in /etc/cni/net.d"})
		fail(m, joining.Check{ID: "node", Result: joining.Blocked, Symptom: symptom.CNINotInitialized, Reason: joining.NodeNotReady, Evidence: "cni plugin not initialized"})
	}, []want{{id: symptom.CNINotInitialized, node: "w1"}}},
	{"the network is back, and the Node does not say so yet", func(f *fact.Facts) {
		const reason = "KubeletNotReady: container runtime network not ready: NetworkReady=false message:Network plugin returns error: cni plugin not initialized"
		f.API.Nodes[3].Ready, f.API.Nodes[3].Reason = false, reason
		fail(f.Machine("w1"), joining.Check{ID: "node", Result: joining.Blocked, Symptom: symptom.CNINotInitialized, Reason: joining.NodeNotReady, Evidence: reason})
	}, []want{{id: symptom.KubeletNotRunning, node: "w1"}}},
	{"no CNI plugin", func(f *fact.Facts) { f.Machine("w1").Inside.Plugins = []string{"flannel", "loopback"} },
		[]want{{id: symptom.CNIPluginBinaryMissing, node: "w1"}}},
	{"another's cni0", func(f *fact.Facts) { f.Machine("w1").Inside.Links[0].Addresses[0] = "10.88.0.1/16" }, []want{{id: symptom.CNIStaleConfig, node: "w1"}}},
	{"no subnet.env", func(f *fact.Facts) { f.Machine("w1").Inside.SubnetEnv = nil }, []want{{id: symptom.FlannelSubnetEnvMissing, node: "w1"}}},
	{"flannel was deleted", func(f *fact.Facts) {
		f.API.DaemonSets["kube-flannel/flannel"] = fact.DaemonSet{Missing: true, Error: "404"}
	}, []want{{id: symptom.NetworkPluginPodsFailing}}},
	{"swap is on and kubelet dead", func(f *fact.Facts) {
		m := f.Machine("w1")
		stoppedKubelet(m)
		fail(m, joining.Check{ID: "swap", Result: joining.Fixable, Symptom: symptom.SwapEnabled, Evidence: "on: /swapfile"})
	}, []want{{id: symptom.SwapEnabled, node: "w1"}, {id: symptom.KubeletNotRunning, node: "w1", becauseOf: symptom.SwapEnabled}}},
	{"swap is on and kubelet lives with it", func(f *fact.Facts) {
		fail(f.Machine("w1"), joining.Check{ID: "swap", Result: joining.Fixable, Symptom: symptom.SwapEnabled, Evidence: "on: /swapfile"})
	}, nil},
	{"disk full", func(f *fact.Facts) {
		fail(f.Machine("w1"), joining.Check{ID: "disk", Result: joining.Blocked, Symptom: symptom.DiskFull, Evidence: "2 % free"})
	}, []want{{id: symptom.DiskFull, node: "w1"}}},
	{"the clock is far off", func(f *fact.Facts) { f.Machine("w1").Inside.Time = midday.Add(-time.Hour) },
		[]want{{id: symptom.ClockSkew, node: "w1"}}},
	{"a certificate ended", func(f *fact.Facts) { f.Machine("cp1").Inside.Certificates[0].NotAfter = midday.Add(-time.Minute) },
		[]want{{id: symptom.CertificateExpired, node: "cp1"}}},
	{"its Node was deleted", func(f *fact.Facts) {
		fail(f.Machine("w1"), joining.Check{ID: "node", Result: joining.Blocked, Reason: joining.NodeMissing, Evidence: "none of its name"})
	}, []want{{id: symptom.NodeNameMismatch, node: "w1"}}},
	{"kubelet hangs", func(f *fact.Facts) {
		f.API.Nodes[3].Ready, f.API.Nodes[3].Reason = false, "NodeStatusUnknown: Kubelet stopped posting node status."
		fail(f.Machine("w1"), joining.Check{ID: "node", Result: joining.Blocked, Reason: joining.NodeNotReady, Evidence: "NodeStatusUnknown: Kubelet stopped posting node status."})
	}, []want{{id: symptom.KubeletNotRunning, node: "w1"}}},
	{"a worker that nobody joined yet", func(f *fact.Facts) {
		n := &fact.Node{Time: midday}
		f.Machine("w1").Inside = n
		f.API.Nodes = f.API.Nodes[:3]
		f.API.DaemonSets["kube-flannel/flannel"] = fact.DaemonSet{Ready: 3, Want: 3}
		f.API.DaemonSets["kube-system/kube-proxy"] = fact.DaemonSet{Ready: 3, Want: 3}
	}, []want{{id: symptom.KubeletConfigMissing, node: "w1"}}},
	{"its last join failed, and why still holds", func(f *fact.Facts) {
		m := f.Machine("w1")
		m.Inside.Facts = joining.Facts{Outcome: &joining.Outcome{Symptom: symptom.TokenExpiredOrInvalid, Phase: "preflight", Evidence: "no JWS"}}
		m.Inside.Member = nil
	}, []want{{id: symptom.TokenExpiredOrInvalid, node: "w1"}}},
	{"its last join failed, of what holds no longer", func(f *fact.Facts) {
		m := f.Machine("w1")
		m.Inside.Facts = joining.Facts{Outcome: &joining.Outcome{Symptom: symptom.SwapEnabled, Phase: "preflight", Evidence: "swap is on"}}
		m.Inside.Member = nil
	}, []want{{id: symptom.KubeletConfigMissing, node: "w1"}}},
	{"its last join met a learner, which is gone", func(f *fact.Facts) {
		m := f.Machine("w1")
		m.Inside.Facts = joining.Facts{Outcome: &joining.Outcome{Symptom: symptom.EtcdTooManyLearners, Phase: "etcd-join", Evidence: "too many learners"}}
		m.Inside.Member = nil
	}, []want{{id: symptom.KubeletConfigMissing, node: "w1"}}},
	{"its last join was for a name that does not resolve, which is another than the lab's", func(f *fact.Facts) {
		m := f.Machine("w1")
		m.Inside.Facts = joining.Facts{Outcome: &joining.Outcome{
			Symptom: symptom.DNSResolutionFailure, Phase: "preflight", Evidence: "k8s.example does not resolve", Endpoint: "k8s.example:6443",
		}}
		m.Inside.Member = nil
	}, []want{{id: symptom.DNSResolutionFailure, node: "w1"}}},
	{"a firewall was in the way of its last join, to another address than the lab's", func(f *fact.Facts) {
		m := f.Machine("w1")
		m.Inside.Facts = joining.Facts{Outcome: &joining.Outcome{
			Symptom: symptom.FirewallBlocked, Phase: "preflight", Evidence: "administratively prohibited", Endpoint: "k8s.example:6443",
		}}
		m.Inside.Member = nil
	}, []want{{id: symptom.FirewallBlocked, node: "w1"}}},
	{"its last join was for the lab's own address, which answers now", func(f *fact.Facts) {
		m := f.Machine("w1")
		m.Inside.Facts = joining.Facts{Outcome: &joining.Outcome{
			Symptom: symptom.APIServerUnreachable, Phase: "preflight", Evidence: "no route", Endpoint: f.Endpoint,
		}}
		m.Inside.Member = nil
	}, []want{{id: symptom.KubeletConfigMissing, node: "w1"}}},
	{"kubeadm was killed, and what it left looks like a member", func(f *fact.Facts) {
		m := f.Machine("w1")
		m.Inside.Facts.Joined = false
		m.Inside.Facts.Outcome = &joining.Outcome{Phase: "kubelet-start", Killed: true, Evidence: "signal: killed"}
	}, []want{{id: symptom.LeftoverState, node: "w1"}}},
	{"somebody joined it without labnode, after a preflight that failed", func(f *fact.Facts) {
		m := f.Machine("w1")
		m.Inside.Facts.Joined = false
		m.Inside.Facts.Outcome = &joining.Outcome{Phase: "preflight", Symptom: symptom.SwapEnabled, Evidence: "swap is on"}
	}, nil},
	{"its labnode cannot collect, and its Node is not Ready", func(f *fact.Facts) {
		m := f.Machine("w1")
		m.Inside, m.Labnode = nil, "unknown command"
		f.API.Nodes[3].Ready, f.API.Nodes[3].Reason = false, "NodeStatusUnknown: Kubelet stopped posting node status."
	}, []want{{id: symptom.KubeletNotRunning, node: "w1"}}},
	{"the virtual address is held by nobody", func(f *fact.Facts) {
		for i := range f.Machines {
			fail(&f.Machines[i], joining.Check{ID: "endpoint-connect", Result: joining.Blocked, Symptom: symptom.APIServerUnreachable, Evidence: "no way"})
		}
		f.Machines[0].Inside.Units["keepalived"] = fact.Unit{Load: "loaded", Active: "failed"}
	}, []want{{id: symptom.APIServerUnreachable}}},
	{"no room in etcd", func(f *fact.Facts) { f.Etcd.Members[1].Alarms = []string{"NOSPACE"} }, []want{{id: symptom.DiskFull, node: "cp2"}}},
	{"etcd's data is corrupt", func(f *fact.Facts) { f.Etcd.Members[1].Alarms = []string{"CORRUPT"} }, []want{{id: symptom.EtcdDataCorrupt, node: "cp2"}}},
	{"disk pressure", func(f *fact.Facts) { f.API.Nodes[3].Pressure = "DiskPressure: full" }, []want{{id: symptom.DiskFull, node: "w1"}}},
	{"a disk that is slow, and nothing suffers", func(f *fact.Facts) { f.Machine("cp1").Inside.Etcd.RecentMedian = 0.256 }, nil},
	{"a disk that is too slow for anything", func(f *fact.Facts) { f.Machine("cp1").Inside.Etcd.RecentMedian = 1.024 },
		[]want{{id: symptom.EtcdSlow, node: "cp1"}}},
	{"a disk so slow that only one write ended", func(f *fact.Facts) {
		*f.Machine("cp1").Inside.Etcd = fact.EtcdDisk{RecentSyncs: 1, RecentMedian: 2.048}
	}, []want{{id: symptom.EtcdSlow, node: "cp1"}}},
	{"one write that took a while", func(f *fact.Facts) {
		*f.Machine("cp1").Inside.Etcd = fact.EtcdDisk{RecentSyncs: 1, RecentMedian: 0.256}
	}, nil},
	{"a disk that is slow, and the API server suffers", func(f *fact.Facts) {
		f.Machine("cp1").Inside.Etcd.RecentMedian = 0.256
		f.API.Ready = "api server is not ready: etcd failed"
	}, []want{{id: symptom.EtcdSlow, node: "cp1"}, {id: symptom.EtcdUnreachable, node: "cp1", becauseOf: symptom.EtcdSlow}}},
	{"no CNI configuration, and kube-proxy's log of its start", func(f *fact.Facts) {
		m := f.Machine("w1")
		fail(m, joining.Check{ID: "cni-config", Result: joining.Fixable, Symptom: symptom.CNINotInitialized, Evidence: "no configuration in /etc/cni/net.d"})
		journal(m, "kube-proxy", time.Minute, `E0301 11:59:00.1 1 server.go:500] "Error running ProxyServer" err="open /proc/sys/net/netfilter/nf_conntrack_max: permission denied"`)
		m.Inside.Containers = []joining.Container{{Name: "kube-proxy", State: "CONTAINER_RUNNING", Created: midday.Add(-time.Minute).Unix()}}
	}, []want{{id: symptom.CNINotInitialized, node: "w1"}}},
	{"its Node was made anew and flannel uses the old subnet", func(f *fact.Facts) { f.API.Nodes[3].PodCIDR = "10.244.99.0/24" },
		[]want{{id: symptom.CNIStaleConfig, node: "w1"}}},
	{"tunnels to a node carry nothing", func(f *fact.Facts) {
		for i := range f.Machines {
			for k, d := range f.Machines[i].Inside.Overlay {
				if d.To == "10.244.21.0" || f.Machines[i].Name == "w1" {
					f.Machines[i].Inside.Overlay[k].Result = "timeout"
				}
			}
		}
	}, []want{{id: symptom.FirewallBlocked, node: "w1"}}},
	{"the API server's manifest is gone, and etcd's log has old complaints", func(f *fact.Facts) {
		m := f.Machine("cp1")
		m.Inside.Manifests = slices.DeleteFunc(m.Inside.Manifests, func(name string) bool { return name == "kube-apiserver.yaml" })
		journal(m, "etcd", time.Minute, `{"level":"warn","msg":"slow fdatasync","took":"2.1s","expected-duration":"1s"}`)
		f.API.Ready = ""
	}, []want{{id: symptom.APIServerUnreachable, node: "cp1"}}},
	{"no tunnel", func(f *fact.Facts) { f.Machine("w1").Inside.Overlay = f.Machine("w1").Inside.Overlay[1:] },
		[]want{{id: symptom.NetworkPluginPodsFailing, node: "w1"}}},
	{"packets to a port get lost", func(f *fact.Facts) {
		blockPort(f, "cp1", "cp3", 2380)
		blockPort(f, "cp2", "cp3", 2380)
	}, []want{{id: symptom.FirewallBlocked, node: "cp3"}}},
	{"peer port blocked in both directions", func(f *fact.Facts) {
		for _, other := range []string{"cp1", "cp2"} {
			blockPort(f, other, "cp3", 2380)
			blockPort(f, "cp3", other, 2380)
		}
	}, []want{{id: symptom.FirewallBlocked, node: "cp3"}}},
	{"a bootstrap request waits", func(f *fact.Facts) {
		f.API.Nodes[3].Ready, f.Machine("w1").Inside.Member = false, nil
		f.API.CSRs = []kube.CSR{{Name: "csr-1", Signer: "kubernetes.io/kube-apiserver-client-kubelet", Node: "w1", State: "pending", Created: midday.Add(-time.Minute)}}
	}, []want{{id: symptom.CSRNotApproved, node: "w1"}}},
	{"the same machine twice", func(f *fact.Facts) { f.API.Nodes[4].MachineID = f.API.Nodes[3].MachineID },
		[]want{{id: symptom.DuplicateMachineIdentity, node: "w2"}}},
	{"no podCIDR", func(f *fact.Facts) { f.API.Nodes[3].PodCIDR = "" }, []want{{id: symptom.PodCIDRNotAssigned, node: "w1"}}},
	{"kube-proxy crashes", func(f *fact.Facts) {
		f.API.Pods = []kube.Pod{{Namespace: "kube-system", Name: "kube-proxy-x", Node: "w1", Reason: "container kube-proxy: CrashLoopBackOff"}}
	}, []want{{id: symptom.KubeProxyCrash, node: "w1"}}},
	{"kube-proxy ended", func(f *fact.Facts) {
		f.API.Pods = []kube.Pod{{Namespace: "kube-system", Name: "kube-proxy-x", Node: "w1", Reason: "container kube-proxy: 2", Exited: true}}
	}, []want{{id: symptom.KubeProxyCrash, node: "w1"}}},
	{"a pod that starts", func(f *fact.Facts) {
		f.API.Pods = []kube.Pod{{Namespace: "kube-system", Name: "kube-proxy-x", Node: "w1", Reason: "container kube-proxy: ContainerCreating"}}
	}, nil},
	{"kubelet was stopped, and had complained of a pod's group", func(f *fact.Facts) {
		m := f.Machine("w1")
		fail(m, joining.Check{ID: "kubelet", Result: joining.Blocked, Symptom: symptom.KubeletNotRunning, Evidence: "masked"})
		m.Inside.Units["kubelet"] = fact.Unit{Load: "masked", Active: "inactive", Result: "success", Since: midday, Started: midday.Add(-time.Minute)}
		journal(m, "kubelet", 30*time.Second, `E0301 11:59:30.1 7 pod.go:1] "Error" err="openat2 /sys/fs/cgroup/pids/kubepods.slice: no such file or directory"`)
	}, []want{{id: symptom.KubeletNotRunning, node: "w1"}}},
	{"flannel was deleted, and a pod's group was gone when kubelet looked", func(f *fact.Facts) {
		f.API.DaemonSets["kube-flannel/flannel"] = fact.DaemonSet{Missing: true, Error: "404"}
		journal(f.Machine("cp1"), "kubelet", time.Minute, `E0301 11:59:00.1 7 pod.go:1] "Error" err="openat2 /sys/fs/cgroup/pids/kubepods.slice: no such file or directory"`)
	}, []want{{id: symptom.NetworkPluginPodsFailing}}},
	{"flannel was deleted, and a firewall had been in the way of etcd", func(f *fact.Facts) {
		f.API.DaemonSets["kube-flannel/flannel"] = fact.DaemonSet{Missing: true, Error: "404"}
		journal(f.Machine("cp2"), "etcd", time.Minute, peerTimeout)
		undialled(f)
	}, []want{{id: symptom.NetworkPluginPodsFailing}}},
	{"a pod has an address of an earlier network", func(f *fact.Facts) {
		n := f.API.Nodes[3]
		f.API.Pods = []kube.Pod{
			{Namespace: "k8slab", Name: "probe-a", Node: n.Name, IP: "10.99.0.2", Phase: "Running", Ready: true},
			{Namespace: "kube-system", Name: "of-the-host", Node: n.Name, IP: n.IP, Phase: "Running", Ready: true},
		}
	}, []want{{id: symptom.CNIStaleConfig, node: "w1"}}},
	{"all nodes lost the endpoint", func(f *fact.Facts) {
		for i := range f.Machines {
			fail(&f.Machines[i], joining.Check{ID: "endpoint-connect", Result: joining.Blocked, Symptom: symptom.APIServerUnreachable, Evidence: "no way"})
		}
	}, []want{{id: symptom.APIServerUnreachable}}},
}

func TestJudge(t *testing.T) {
	for _, tt := range damages {
		t.Run(tt.name, func(t *testing.T) {
			f := healthyFacts(2)
			tt.damage(&f)
			found := Judge(f)
			if got := outlined(found); !slices.Equal(got, tt.want) {
				t.Errorf("got\n%v\nwant\n%v", got, tt.want)
			}
			for _, one := range found {
				if one.Meaning == "" || one.Hint == "" || len(one.Evidence) == 0 || strings.TrimSpace(one.Evidence[0].Text) == "" {
					t.Errorf("incomplete: %+v", one)
				}
			}
		})
	}
}

// undialled forgets the dials from node to node, as when none was tried.
func undialled(f *fact.Facts) {
	for i := range f.Machines {
		f.Machines[i].Inside.Dials = nil
	}
}

func blockPort(f *fact.Facts, from, to string, port int) {
	for i, d := range f.Machine(from).Inside.Dials {
		if d.To == to && d.Port == port {
			f.Machine(from).Inside.Dials[i].Result = "timeout"
		}
	}
}

// A text says why a service does not run. It never says why a file is not there that was looked for.
func TestMeasuredIsNoConsequenceOfAText(t *testing.T) {
	const pull = `level=info msg="fetch failed" error="failed to do request: Head \"https://registry.example/v2/flannel/flannel/manifests/v0.27.4\": dial tcp: i/o timeout"`
	f := healthyFacts(1)
	m := f.Machine("w1")
	m.Inside.Network = nil
	fail(m, joining.Check{ID: "cni-config", Result: joining.Fixable, Symptom: symptom.CNINotInitialized, Evidence: "no configuration in /etc/cni/net.d"})
	journal(m, "containerd", time.Minute, pull)
	if got, want := outlined(Judge(f)), []want{{id: symptom.CNINotInitialized, node: "w1"}}; !slices.Equal(got, want) {
		t.Errorf("beside a measured cause: %+v", got)
	}
	f.API.Pods = []kube.Pod{{Namespace: "kube-flannel", Name: "flannel-x", Node: "w1", Reason: "CrashLoopBackOff"}}
	got := outlined(Judge(f))
	if !slices.Contains(got, want{id: symptom.ImagePullFailure, node: "w1"}) {
		t.Errorf("of a failure that is general: %+v", got)
	}
	for _, f := range got {
		if f.id == symptom.CNINotInitialized && f.becauseOf == symptom.ImagePullFailure {
			t.Errorf("%+v", got)
		}
	}
}

// The image of a user's pod could not be pulled, the pod is long deleted, and the node has another fault now.
func TestAUsersPullIsNoCause(t *testing.T) {
	const pull = `level=error msg="PullImage \"nginx\" failed" error="failed to pull and unpack image \"docker.io/library/nginx:latest\": failed to resolve reference \"docker.io/library/nginx:latest\""`
	for name, damage := range map[string]func(*fact.Machine){
		"a file is missing": func(m *fact.Machine) {
			m.Inside.Network = nil
			fail(m, joining.Check{ID: "cni-config", Result: joining.Fixable, Symptom: symptom.CNINotInitialized, Evidence: "no configuration in /etc/cni/net.d"})
		},
		"kubelet was stopped": stoppedKubelet,
	} {
		f := healthyFacts(1)
		m := f.Machine("w1")
		damage(m)
		journal(m, "containerd", time.Minute, pull)
		for _, found := range Judge(f) {
			if found.Symptom == symptom.ImagePullFailure || found.BecauseOf == symptom.ImagePullFailure {
				t.Errorf("%s: %+v", name, found)
			}
		}
	}
}

// containerd names what was killed: a pod of which nothing was may fail for another reason.
func TestKillOfAnotherPod(t *testing.T) {
	sandbox, other := strings.Repeat("a1", 32), strings.Repeat("b2", 32)
	for name, test := range map[string]struct {
		killed, kernel string
		old            bool
	}{
		"of another pod, which lives again":         {killed: other, old: true},
		"of a pod that is gone":                     {killed: strings.Repeat("c3", 32), old: true},
		"of the pod that has just started":          {killed: sandbox},
		"the kernel tells of one that is not named": {killed: other, kernel: "Out of memory: Killed process 4711 (etcd) total-vm:11840156kB"},
	} {
		f := healthyFacts(1)
		m := f.Machine("w1")
		m.Inside.Memory.Total, m.Inside.Memory.Available = 4<<30, 2<<30
		m.Inside.Containers = []joining.Container{
			{Name: "app", Pod: "default/app", ID: "1", Sandbox: sandbox[:joining.ShortID], State: "CONTAINER_RUNNING", Attempt: 4, Created: m.Inside.Time.Unix() - 1},
			{Name: "more", Pod: "default/more", ID: "2", Sandbox: other[:joining.ShortID], State: "CONTAINER_RUNNING", Attempt: 4, Created: m.Inside.Time.Unix() - 100},
		}
		journal(m, "containerd", time.Minute, `level=info msg="TaskOOM event container_id:\"`+test.killed+`\""`)
		if test.kernel != "" {
			journal(m, "kernel", time.Minute, test.kernel)
		}
		j := &judgement{f: &f, texts: map[string][]symptom.Finding{}}
		if got := j.refutes(m, symptom.OutOfMemory); got != test.old {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A container that was killed for want of memory and has lived again for a while explains no failure of today.
func TestOldKillForWantOfMemory(t *testing.T) {
	now := time.Now()
	run := func(state string, attempt uint32, age time.Duration) joining.Container {
		return joining.Container{Name: "kube-controller-manager", Pod: "kube-system/kube-controller-manager-cp1", State: state, Attempt: attempt, Created: now.Add(-age).Unix()}
	}
	killed := run("CONTAINER_EXITED", 3, 4*time.Minute)
	flannel := func(name, state string, age time.Duration) joining.Container {
		return joining.Container{Name: name, Pod: "kube-flannel/kube-flannel-x", State: state, Created: now.Add(-age).Unix()}
	}
	for name, test := range map[string]struct {
		available uint64
		all       []joining.Container
		old       bool
	}{
		"it lives again": {2 << 30, []joining.Container{killed, run("CONTAINER_RUNNING", 4, 3*time.Minute)}, true},
		"and there was an init container": {2 << 30, []joining.Container{
			killed, run("CONTAINER_RUNNING", 4, 3*time.Minute), flannel("install-cni", "CONTAINER_EXITED", 5*time.Minute), flannel("kube-flannel", "CONTAINER_RUNNING", 4*time.Minute),
		}, true},
		"the pod of an init container fails": {2 << 30, []joining.Container{
			killed, run("CONTAINER_RUNNING", 4, 3*time.Minute), flannel("install-cni", "CONTAINER_EXITED", 5*time.Minute), flannel("kube-flannel", "CONTAINER_EXITED", 4*time.Minute),
		}, false},
		"it has just started":  {2 << 30, []joining.Container{killed, run("CONTAINER_RUNNING", 4, time.Second)}, false},
		"it waits for another": {2 << 30, []joining.Container{run("CONTAINER_EXITED", 2, 6*time.Minute), killed}, false},
		"no memory is free":    {1 << 20, []joining.Container{killed, run("CONTAINER_RUNNING", 4, 3*time.Minute)}, false},
		"nothing is known":     {2 << 30, nil, false},
		"kubelet was killed":   {2 << 30, []joining.Container{run("CONTAINER_RUNNING", 4, 3*time.Minute)}, false},
	} {
		m := &fact.Machine{Name: "cp1", Inside: &fact.Node{Time: now, Containers: test.all}}
		m.Inside.Memory.Total, m.Inside.Memory.Available = 4<<30, test.available
		m.Inside.Units = map[string]fact.Unit{"kubelet": {Active: "active"}, "containerd": {Active: "active"}}
		if name == "kubelet was killed" {
			m.Inside.Units["kubelet"] = fact.Unit{Active: "activating", Result: "oom-kill"}
		}
		j := &judgement{f: &fact.Facts{Machines: []fact.Machine{*m}}}
		if got := j.refutes(m, symptom.OutOfMemory); got != test.old {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// upgradedTo has the kubelet of one node and the API server of cp2 in v1.37.2, all else in v1.36.3, and cp1's API server as given.
func upgradedTo(f *fact.Facts, first, node string) {
	f.API.Servers = map[string]string{"cp1": first, "cp2": "v1.37.2"}
	for i := range f.API.Nodes {
		f.API.Nodes[i].KubeletVersion, f.API.Nodes[i].Role = "v1.36.3", f.Machine(f.API.Nodes[i].Name).Role
		if f.API.Nodes[i].Name == node {
			f.API.Nodes[i].KubeletVersion = "v1.37.2"
		}
	}
}
