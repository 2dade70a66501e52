package symptom

// labCauses are the verdict that nothing is wrong, and the causes that only the lab's own facts or a member's data show.
var labCauses = []Symptom{
	{
		ID:      Healthy,
		Meaning: "The join succeeded or the node is fine; the other messages are harmless.",
		Hint:    "Nothing to do.",
	},
	{
		ID:      MachineNotRunning,
		Meaning: "The node's machine is shut off or crashed.",
		Hint:    "`labctl up` starts it again; its console log says how it ended.",
	},
	{
		ID:      MachinePaused,
		Meaning: "The node's machine is suspended.",
		Hint:    "`labctl up` resumes it; by hand: `virsh resume DOMAIN`.",
	},
	{
		ID:      NodeUnreachable,
		Meaning: "The node's machine runs but does not answer over SSH.",
		Hint:    "Look at its console, its address and sshd: `labctl host exec -- virsh console DOMAIN`.",
	},
	{
		ID:      EtcdDataCorrupt,
		Meaning: "An etcd member's data cannot be read, or differs from the other members'.",
		Hint: "With three members and two healthy: `etcdctl member remove ID` of the bad one, `kubeadm reset -f` on its machine, " +
			"join again. With one member: keep its data directory, restore the latest snapshot (`etcdutl snapshot restore FILE " +
			"--data-dir NEW`).",
		Sources: []string{"etcd-io/etcd#11220", "etcd-io/etcd#11949"},
	},
	{
		ID:      ImageFilesystemZero,
		Meaning: "The runtime still reports an image file system without capacity after it has settled.",
		Hint:    "`crictl imagefsinfo`; `systemctl restart containerd` and then the kubelet; look at the disk under /var/lib/containerd.",
	},
	{
		ID:       FileChanged,
		Meaning:  "A file that the node needs is not as its image or kubeadm made it.",
		Hint:     "`labctl repair` puts it back; by hand: copy it from another node.",
		Measured: true, Repairable: true,
	},
	{
		ID:      Unexplained,
		Meaning: "A part of the cluster does not do its work, and nothing that was read explains why.",
		Hint: "The evidence says what was measured, and what the logs say of it. `labctl diagnose --bundle FILE` saves everything " +
			"that was read.",
		Measured: true,
	},
}
