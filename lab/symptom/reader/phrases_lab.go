package reader

import "k8slab/lab/symptom"

// labPhrases are of what only the lab's own facts or a member's data show.
var labPhrases = map[symptom.ID][]pattern{
	symptom.MachineNotRunning: proves(
		"State: shut off", "domain is not running", "State: crashed", "shut off (crashed)", "shut off (destroyed)", "shut off (failed)",
		"*shut off\n",
	),
	symptom.MachinePaused: proves(
		"State: paused", "paused (user)", "paused (I/O error)", "paused (ioerror)", "domain*is paused", "pmsuspended",
		"Resource is paused, will not attempt", "Reconciliation is paused for this object",
	),
	symptom.NodeUnreachable: proves(
		"ssh: connect to host*port 22", ":22: connect: no route to host", ":22: i/o timeout", ":22: connect: connection refused",
		"ssh: handshake failed", "Connection timed out during banner exchange", "UNREACHABLE!", "Failed to connect to the host via ssh",
	),
	symptom.EtcdDataCorrupt: proves(
		"walpb: crc mismatch", "wal: crc mismatch", "snap: crc mismatch", "alarm:CORRUPT", "data inconsistency found",
		"checkInitialHashKV", "failed to recover v3 backend from snapshot", "failed to find database snapshot file",
		"snap: snapshot file doesn't exist", "failed to open WAL", "wal: max entry size limit exceeded",
		"file is not a valid bolt database", "panic: freepages", "invalid freelist page", "freelist*invalid page type",
		"page * already freed", "fileutil: file already locked*corrupt", "mmap: *bad file", "panic: assertion failed: Page expected",
		"found data inconsistency with peers", "etcdserver: failed to recover", "wal: slice bounds out of range", "cannot be repaired",
		"recovering backend from snapshot error", "invalid database", "mvcc: cannot unmarshal event", "bbolt*checksum error",
		"version mismatch*bolt", "unexpected fault address*bolt", "read wal error", "snapshot checksum",
	),
	symptom.ImageFilesystemZero: together(
		repeated(4, "invalid capacity 0 on image filesystem"),
		proves("failed multiple times in a row*invalid capacity 0 on image", "ImageGCFailed*invalid capacity 0 on image"),
	),
}
