package main

import (
	"bytes"
	"testing"

	"k8slab/lab/etcd"
	"k8slab/lab/etcdadmin"
	"k8slab/lab/golden"
)

func TestPrintMembers(t *testing.T) {
	member := func(id, node, role string, healthy bool) etcdadmin.Member {
		return etcdadmin.Member{ID: id, Name: node, Node: node, PeerURL: "https://10.30.0.11:2380", Role: role, Started: node != "", Healthy: healthy, RaftIndex: 1234, DBSize: 5 << 20}
	}
	full := member("b2", "cp2", "voter", true)
	full.Alarms = []string{"NOSPACE", "CORRUPT"}
	learner := member("c3", "cp3", "learner", true)
	learner.Progress = "cp3 (c3) has 617 of 1234 raft entries (50%), 300/s"
	tests := map[string]etcdadmin.Status{
		"healthy": {Healthy: true, Quorum: true, Members: []etcdadmin.Member{member("a1", "cp1", "leader", true), member("b2", "cp2", "voter", true)}},
		"broken": {Quorum: true, Members: []etcdadmin.Member{member("a1", "cp1", "leader", true), full, learner, member("d4", "", "learner", false)},
			Problems: []string{"member d4 at [https://192.0.2.42:2380]: has not started"}},
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			printMembers(&out, s)
			golden.Check(t, "members-"+name+".txt", out.String())
		})
	}
}

func TestPrintVerdicts(t *testing.T) {
	verdicts := []etcdadmin.Verdict{
		{ID: "d4", Learner: true, Action: etcd.Remove, Removed: true, Reason: "no machine of the lab has its peer URL"},
		{ID: "a1", Node: "cp1", Action: etcd.Keep, Reason: "it votes"},
		{ID: "c3", Node: "cp3", Learner: true, Action: etcd.Wait, Reason: "a join is at work on cp3"},
		{ID: "e5", Node: "cp4", Learner: true, Action: etcd.Remove, Reason: "no join is at work on cp4"},
	}
	var done, dry bytes.Buffer
	printVerdicts(&done, verdicts, false)
	golden.Check(t, "verdicts.txt", done.String())
	printVerdicts(&dry, verdicts[1:], true)
	golden.Check(t, "verdicts-dry-run.txt", dry.String())
}
