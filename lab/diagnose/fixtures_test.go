package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8slab/lab/symptom"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

var fleet = []struct{ name, role string }{
	{"cp1", "control-plane"}, {"cp2", "control-plane"}, {"cp3", "control-plane"}, {"w1", "worker"}, {"w2", "worker"},
}

// healthyReport is a lab of 3 control planes and 2 workers with nothing wrong.
func healthyReport() Report {
	r := Report{Lab: "k8slab", Source: live, Time: noon, Took: 1.84, Healthy: true, Findings: []symptom.Finding{}}
	for i, n := range fleet {
		r.Nodes = append(r.Nodes, NodeRow{
			Name: n.name, Role: n.role, IP: fmt.Sprintf("10.17.3.1%d", i+1), Machine: "running", Ready: "True", Kubelet: "active",
			Runtime: "containerd v2.4.2 answers on /run/containerd/containerd.sock", RuntimeResult: "ok", Version: "v1.36.3", ClockOffset: 0.0004 * float64(i), DiskFree: 0.61 - 0.01*float64(i), MemoryFree: 0.42,
		})
		if n.role == "control-plane" {
			r.Nodes[i].FsyncP99 = 0.0021
			r.Members = append(r.Members, MemberRow{
				Name: n.name, ID: fmt.Sprintf("8e9e05c52164694%d", i), PeerURL: fmt.Sprintf("https://10.17.3.1%d:2380", i+1), Node: n.name,
				Started: true, Leader: i == 0, RaftIndex: 18342, DBSize: 4_870_144,
			})
		}
	}
	for i, from := range fleet {
		for j, to := range fleet {
			if i != j {
				r.Ports = append(r.Ports, ports(from.role, from.name, to.role, to.name, 0.3+0.1*float64(i+j))...)
			}
		}
	}
	r.Attempts = []AttemptRow{
		joinedAttempt("cp2", 20*time.Second, 21.4), joinedAttempt("cp3", 44*time.Second, 10.6),
		joinedAttempt("w1", 21*time.Second, 3.9), joinedAttempt("w2", 21500*time.Millisecond, 4.2),
	}
	return r
}

func ports(fromRole, from, toRole, to string, millis float64) []PortRow {
	rows := []PortRow{{from, to, 10250, "tcp", "open", millis}, {from, to, 8472, "udp", "unknown", 0}}
	if toRole == "control-plane" {
		rows = append(rows, PortRow{from, to, 6443, "tcp", "open", millis})
		if fromRole == "control-plane" {
			rows = append(rows, PortRow{from, to, 2379, "tcp", "open", millis}, PortRow{from, to, 2380, "tcp", "open", millis})
		}
	}
	return rows
}

// closePorts makes what leads to a node give that result.
func closePorts(r *Report, to, result string, ports ...int) {
	for i := range r.Ports {
		p := &r.Ports[i]
		if p.To == to && p.Proto == "tcp" && (len(ports) == 0 || slices.Contains(ports, p.Port)) {
			p.Result, p.Millis = result, 0
		}
	}
}

func joinedAttempt(node string, after time.Duration, took float64) AttemptRow {
	a := AttemptRow{Node: node, Number: 1, Started: noon.Add(-time.Hour).Add(after), Elapsed: took, Joined: true}
	names := []string{"preflight", "prepare", "kubelet-start", "validate"}
	shares := []float64{0.1, 0.15, 0.45, 0.3}
	if strings.HasPrefix(node, "cp") {
		names = []string{"preflight", "prepare", "certs", "kubeconfig", "etcd-join", "kubelet-start", "validate"}
		shares = []float64{0.05, 0.08, 0.06, 0.04, 0.42, 0.2, 0.15}
	}
	at := 0.0
	for i, name := range names {
		a.Phases = append(a.Phases, PhaseRow{Name: name, At: at, Elapsed: took * shares[i]})
		at += took * shares[i]
	}
	return a
}

// found is a finding with the catalogue's words.
func found(id symptom.ID, node string, because symptom.ID, evidence ...symptom.Evidence) symptom.Finding {
	s, _ := symptom.Lookup(id)
	return symptom.Finding{Symptom: id, Level: symptom.Fail, Node: node, Meaning: s.Meaning, Evidence: evidence, Hint: s.Hint,
		Repairable: s.Repairable, BecauseOf: because}
}

// brokenReport has a control plane that cannot join for another's learner, and a worker whose runtime serves no CRI.
func brokenReport() Report {
	r := healthyReport()
	r.Healthy = false
	warning := found(symptom.EtcdSlow, "cp1", "", symptom.Evidence{Source: "etcd", Line: 311, Time: "2026-03-02T11:58:40.1Z",
		Text: `{"level":"warn","ts":"2026-03-02T11:58:40.1Z","caller":"wal/wal.go:805","msg":"slow fdatasync","took":"1.204s","expected-duration":"1s"}`})
	warning.Level = symptom.Warn
	r.Findings = []symptom.Finding{
		found(symptom.EtcdTooManyLearners, "cp3", "",
			symptom.Evidence{Source: "kubeadm", Line: 41, Time: "11:57:02", Text: "[etcd] Adding etcd member: https://10.17.3.13:2380 failed: etcdserver: too many learner members in cluster"},
			symptom.Evidence{Source: "etcd members", Text: "9f2c1d3b77aa0142 is a learner that never started: https://192.0.2.42:2380 belongs to no node of this lab"}),
		found(symptom.CRIPluginDisabled, "w1", "", symptom.Evidence{Source: "containerd", Line: 7, Time: "Mar 02 11:40:11",
			Text: `level=info msg="skip loading plugin" error="disabled by config" id=io.containerd.grpc.v1.cri type=io.containerd.grpc.v1`}),
		found(symptom.CRIPluginDisabled, "w2", "", symptom.Evidence{Source: "/etc/containerd/config.toml", Line: 3, Text: `disabled_plugins = ["cri"]`}),
		warning,
		found(symptom.EtcdLearnerNotInSync, "cp3", symptom.EtcdTooManyLearners, symptom.Evidence{Source: "kubeadm", Line: 44, Time: "11:57:03",
			Text: "etcdserver: can only promote a learner member which is in sync with leader"}),
		found(symptom.KubeletNotRunning, "w1", symptom.CRIPluginDisabled, symptom.Evidence{Source: "kubelet", Line: 90, Time: "Mar 02 11:40:31",
			Text: `"command failed" err="failed to run Kubelet: validate service connection: validate CRI v1 runtime API for endpoint \"unix:///run/containerd/containerd.sock\": rpc error: code = Unimplemented desc = unknown service runtime.v1.RuntimeService"`}),
		found(symptom.KubeletNotRunning, "w2", symptom.CRIPluginDisabled),
	}
	r.Findings[4].Detail = "never-started"
	r.Nodes[2].Ready, r.Nodes[2].Kubelet = "", "inactive"
	for i := 3; i < 5; i++ {
		r.Nodes[i].Ready, r.Nodes[i].Kubelet = "False", "failed"
		r.Nodes[i].Runtime, r.Nodes[i].RuntimeResult = "unknown service runtime.v1.RuntimeService", "fixable"
	}
	r.Nodes[0].FsyncP99 = 1.204
	r.Nodes[1].DiskFree = 0.09
	closePorts(&r, "cp3", "refused")
	closePorts(&r, "w1", "refused", 10250)
	closePorts(&r, "w2", "refused", 10250)
	r.Members[2] = MemberRow{ID: "9f2c1d3b77aa0142", PeerURL: "https://192.0.2.42:2380", Learner: true}
	fails := func(number int, after, took float64) AttemptRow {
		return AttemptRow{Node: "cp3", Number: number, Started: noon.Add(-5 * time.Minute).Add(time.Duration(after * float64(time.Second))),
			Elapsed: took, Symptom: symptom.EtcdTooManyLearners, Evidence: "etcdserver: too many learner members in cluster",
			Phases: []PhaseRow{{"preflight", 0, 1.2}, {"prepare", 1.2, 2.4}, {"certs", 3.6, 1.1}, {"kubeconfig", 4.7, 0.6}, {"etcd-join", 5.3, took - 5.3}}}
	}
	r.Attempts = append(r.Attempts[:1], r.Attempts[2], r.Attempts[3], fails(1, 0, 62), fails(2, 92, 31.5))
	return r
}

// learnerReport has a third control plane that is on its way in.
func learnerReport() Report {
	r := healthyReport()
	r.Healthy = false
	f := found(symptom.EtcdLearnerNotInSync, "cp3", "", symptom.Evidence{Source: "etcd status", Text: "cp3 has 131072 of 204800 raft entries, 9400/s"})
	f.Level, f.Detail, f.Repairable = symptom.Warn, "catching-up", false
	f.Meaning = "The new etcd member catches up with the leader and is not promoted yet."
	f.Hint = "Wait: at this rate it is promoted in about 6 s. `labctl etcd members` follows it."
	r.Findings = []symptom.Finding{f}
	r.Nodes[2].Ready = ""
	for i := range r.Members {
		r.Members[i].RaftIndex, r.Members[i].DBSize = 204_800, 1_610_612_736
	}
	m := &r.Members[2]
	m.Learner, m.RaftIndex, m.Behind, m.Rate = true, 131_072, 73_728, 9400
	r.Attempts[1] = AttemptRow{Node: "cp3", Number: 1, Started: noon.Add(-19 * time.Second), Elapsed: 19,
		Phases: []PhaseRow{{"preflight", 0, 0.9}, {"prepare", 0.9, 1.4}, {"certs", 2.3, 0.8}, {"kubeconfig", 3.1, 0.4}, {"etcd-join", 3.5, 15.5}}}
	return r
}

// unreachableReport has a node that is powered off; the API server does not answer either.
func unreachableReport() Report {
	r := healthyReport()
	r.Healthy, r.Took = false, 5.2
	r.Findings = []symptom.Finding{
		found(symptom.MachineNotRunning, "cp2", "", symptom.Evidence{Source: "libvirt", Text: "domain k8slab-cp2: off (destroyed)"}),
		found(symptom.NodeUnreachable, "cp2", symptom.MachineNotRunning, symptom.Evidence{Source: "ssh", Text: "dial tcp 10.17.3.12:22: connect: no route to host"}),
		found(symptom.EtcdUnreachable, "", symptom.MachineNotRunning, symptom.Evidence{Source: "etcd", Text: "https://10.17.3.12:2379: context deadline exceeded"}),
	}
	r.Nodes[1] = NodeRow{Name: "cp2", Role: "control-plane", IP: "10.17.3.12", Machine: "off", SSH: "dial tcp 10.17.3.12:22: connect: no route to host", Ready: "Unknown"}
	r.Ports = slices.DeleteFunc(r.Ports, func(p PortRow) bool { return p.From == "cp2" })
	closePorts(&r, "cp2", "unreachable")
	r.Members[1] = MemberRow{Name: "cp2", ID: r.Members[1].ID, PeerURL: r.Members[1].PeerURL, Node: "cp2", Started: true, Error: "context deadline exceeded"}
	r.Unread = []string{
		"cp2: nothing inside the node (dial tcp 10.17.3.12:22: connect: no route to host); read its console next: labctl logs cp2",
		"API: events (the server was unable to return a response in the time allotted)",
	}
	return r
}
