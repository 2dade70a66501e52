package symptom

// etcdCauses are the members of etcd and how they agree.
var etcdCauses = []Symptom{
	{
		ID:      EtcdLearnerNotInSync,
		Meaning: "The new etcd member stays a learner: it has not started, cannot reach its peers, or does not catch up.",
		Hint: "On the new node `crictl ps -a --name etcd` and its log; each way `nc -zv PEER 2380`; `etcdctl endpoint status " +
			"--cluster -w table` for raft indexes. Then remove the learner (`etcdctl member remove ID` on a healthy member), " +
			"`kubeadm reset -f` on the new node, join again.",
		Sources: []string{"kubernetes/kubeadm#2997", "kubernetes/kubeadm#3269", "kubernetes/kubeadm#3287",
			"kubernetes/kubernetes#122826"},
		Repairable: true,
	},
	{
		ID:      EtcdTooManyLearners,
		Meaning: "Another learner holds etcd's only learner slot: a join runs now, or an earlier failed join left it.",
		Hint: "`etcdctl member list -w table` on a healthy member; join one control plane at a time; when no join is under way, " +
			"`etcdctl member remove ID` of the learner, then join again.",
		Sources:    []string{"rancher/rke2#347", "k3s-io/k3s#2306", "kubernetes-sigs/cluster-api#13221"},
		Repairable: true,
	},
	{
		ID:      EtcdStaleMember,
		Meaning: "A dead or earlier member is still registered in etcd.",
		Hint: "`etcdctl member list -w table` and `etcdctl endpoint health --cluster`; when the rest keeps a majority, `etcdctl " +
			"member remove ID` of the dead one; on the machine that returns `kubeadm reset -f`, then join.",
		Sources:    []string{"kubernetes/kubeadm#2138", "kubernetes/kubernetes#81071", "etcd-io/etcd#20269"},
		Repairable: true,
	},
	{
		ID: EtcdMemberMismatch,
		Meaning: "The member list of etcd and the new member's initial-cluster do not agree, most often after a half-done or " +
			"concurrent join.",
		Hint: "`etcdctl member list -w table`; remove the half-added member (`etcdctl member remove ID`), on its machine `kubeadm " +
			"reset -f` (which clears that member's data), then join one control plane at a time.",
		Sources: []string{"etcd-io/etcd#10002", "kubernetes/kubeadm#2005"},
	},
	{
		ID:      EtcdSlow,
		Meaning: "etcd is too slow: its disk or its host does not keep up.",
		Hint: "`etcdctl check perf`, `iostat -x 1`, etcd_disk_wal_fsync_duration_seconds (99 % should stay under 10 ms): give it an " +
			"SSD, more CPU, or fewer neighbours.",
		Sources: []string{"etcd-io/etcd#11809"},
	},
	{
		ID:      EtcdNoQuorum,
		Meaning: "Too few members of etcd are alive to elect a leader.",
		Hint: "Bring back enough members (start their machines, kubelet, containerd): a majority of `etcdctl member list` must run. " +
			"Only when they are lost for good, restore one member from a snapshot (`etcdutl snapshot restore`) and join the others " +
			"again; keep every data directory until then.",
		Sources: []string{"kubernetes/kubeadm#2188"},
	},
	{
		ID:      EtcdUnreachable,
		Meaning: "An etcd endpoint does not answer.",
		Hint: "`crictl ps -a --name etcd` and its log on that node; `etcdctl --endpoints=https://IP:2379 endpoint health` with the " +
			"certificates in /etc/kubernetes/pki/etcd.",
	},
}
