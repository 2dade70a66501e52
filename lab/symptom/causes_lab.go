package symptom

// labCauses are the verdict that nothing is wrong, and what only the lab's own facts or a member's data can show.
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
		patterns: proves(
			"Domain State: shut off", "State: shut off", "domain is not running", "State: crashed", "shut off (crashed)",
			"shut off (destroyed)", "shut off (failed)", "*shut off\n",
		),
	},
	{
		ID:      MachinePaused,
		Meaning: "The node's machine is suspended.",
		Hint:    "`labctl up` resumes it; by hand: `virsh resume DOMAIN`.",
		patterns: proves(
			"State: paused", "paused (user)", "paused (I/O error)", "paused (ioerror)", "domain*is paused", "pmsuspended",
			"Resource is paused, will not attempt", "Reconciliation is paused for this object",
		),
	},
	{
		ID:      NodeUnreachable,
		Meaning: "The node's machine runs but does not answer over SSH.",
		Hint:    "Look at its console, its address and sshd: `labctl host exec -- virsh console DOMAIN`.",
		patterns: proves("ssh: connect to host*port 22", ":22: connect: no route to host", ":22: i/o timeout",
			":22: connect: connection refused", "ssh: handshake failed", "Connection timed out during banner exchange",
			"kex_exchange_identification: read", "UNREACHABLE!", "Failed to connect to the host via ssh"),
	},
	{
		ID:      EtcdDataCorrupt,
		Meaning: "An etcd member's data cannot be read, or differs from the other members'.",
		Hint: "With three members and two healthy: `etcdctl member remove ID` of the bad one, `kubeadm reset -f` on its machine, " +
			"join again. " +
			"With one member: keep its data directory, restore the latest snapshot (`etcdutl snapshot restore FILE --data-dir NEW`).",
		Sources: []string{"etcd-io/etcd#11220", "etcd-io/etcd#11949"},
		patterns: proves("walpb: crc mismatch", "wal: crc mismatch", "snap: crc mismatch", "alarm:CORRUPT", "etcdserver: corrupt cluster",
			"data inconsistency found", "checkInitialHashKV", "failed to recover v3 backend from snapshot",
			"failed to find database snapshot file", "snap: snapshot file doesn't exist", "failed to open WAL",
			"wal: max entry size limit exceeded", "file is not a valid bolt database", "panic: freepages", "invalid freelist page",
			"freelist*invalid page type", "page * already freed", "fileutil: file already locked*corrupt", "mmap: *bad file",
			"panic: assertion failed: Page expected", "found data inconsistency with peers", "etcdserver: failed to recover",
			"wal: slice bounds out of range", "failed to read WAL, cannot be repaired", "cannot be repaired",
			"recovering backend from snapshot error", "invalid database", "mvcc: cannot unmarshal event", "bbolt*checksum error",
			"version mismatch*bolt", "unexpected fault address*bolt", "read wal error",
			"snapshot checksum"),
	},
	{
		ID:      ImageFilesystemZero,
		Meaning: "The runtime still reports an image file system without capacity after it has settled.",
		Hint: "`crictl imagefsinfo`; `systemctl restart containerd` and then the kubelet; look at the disk under " +
			"/var/lib/containerd.",
		patterns: together(
			repeated(4, "invalid capacity 0 on image filesystem"),
			proves("failed multiple times in a row*invalid capacity 0 on image", "ImageGCFailed*invalid capacity 0 on image"),
		),
	},
}
