package reader

import "k8slab/lab/symptom"

// etcdMessages are from etcd's server, its client, etcdctl and bbolt, 3.1 to 3.6.
var etcdMessages = map[symptom.ID][]pattern{
	symptom.AdvertiseAddressWrong: proves("expected IP in URL for binding",
		"When listening on specific address(es), this etcd process must advertise"),
	symptom.ClockSkew: proves("time skewed*etcd", "drift-time*exceeds"),
	symptom.DiskFull: proves(
		"alarm raised*NOSPACE", "alarm NOSPACE raised", "applying raft message exceeded backend quota",
		"message exceeded backend quota; raising alarm", "failed to preallocate space when creating a new WAL",
		"failed to allocate space when creating new wal file",
	),
	symptom.DNSResolutionFailure: proves("failed to resolve URL Host", "failed resolving host", "error querying DNS SRV records",
		"dns lookup errors:"),
	symptom.EtcdDataCorrupt: proves(
		"found hash mismatch", "found different hash values from remote peer", "mismatched hashes", "alarm raised*CORRUPT",
		"alarm CORRUPT raised", "corrupted snapshot file", "snap file is corrupt", "failed to read a snap file",
		"failed to read empty snapshot", "unexpected empty snapshot", "snap: empty snapshot", "failed to rename a broken snap file",
		"repaired WAL error", "failed to repair WAL", "open wal error:", "does not match with snapshot (index",
		"of the backend is missing", "failed to recover from snapshot", "recovered store from snapshot error",
		"failed to restore mvcc store", "restore KV error", "failed to open database", "cannot open database at", "file size too small",
		"mmap stat error", "unexpected error while reading WAL", "could not repair*wal", "wrong (unexpected) magic",
		"is out of range [committed(", "state.commit*is out of range", "conflict with committed entry", "first index of committed entry",
		"illegal v2store content", "etcdserver: corrupt", "database isn't correctly mapped", "discarded uncommitted*corrupt",
		"bbolt*invalid page type", "unexpected page type", "leafPageElement: expected", "got nil bucket for key",
		"Failed to validate schema", "failed to create WAL: *exist",
	),
	symptom.EtcdLearnerNotInSync: proves("not supported for learner*failed", "ErrLearnerNotReady", "failed to promote the learner",
		"timed out promoting"),
	symptom.EtcdMemberMismatch: proves(
		"But etcd could not find valid cluster configuration in the given data dir", "but could not find valid cluster configuration",
		"has duplicate url", "PeerURLs: no match found for existing member", "member with duplicated name has registered",
		"member with duplicated name has already been registered", "two members with the given name", "two member with same name found",
		"--initial-advertise-peer-urls has*but missing from --initial-cluster", "forgot to set --initial-cluster",
		"forgot to set --initial-advertise-peer-urls", "advertise-peer-urls*mismatch", "initial cluster unset and no discovery URL found",
		"got different member ID", "failed to find local ID in cluster members", "failed to parse cluster ID",
		"failed to find member*in cluster", "resolved urls: *!=", "discovery-srv*scheme mismatch", "advertise-client-urls is required",
		"request version incompatibility", "the running cluster version*is higher than the maximum cluster version",
		"incompatible with current running cluster", "cluster version of remote member is not compatible", "server version incompatib",
	),
	symptom.EtcdNoQuorum: proves(
		"started member will be less than quorum", "will be less than the quorum number of the cluster",
		"reconfigure breaks active quorum", "not enough started members, rejecting", "not healthy for reconfigure",
		"etcdserver: leader unavailable", "since quorum is not active", "lost leader*at term", "publish error: etcdserver",
	),
	symptom.EtcdSlow: together(
		mayShow("etcdserver: leader changed", "frequent leader changes", "frequent leader election"),
		proves(
			"requesting*took too long*wal", "etcdserver: request timed out, leader transfer took too long",
			"db file is flocked by another process, or taking too long",
			"another etcd process is using*or loading backend file is taking >10 seconds", "snapshotting is taking more than",
			"snapshotting taking too long",
		),
		slow(
			3, "A tick missed to fire. Node blocks too long", "waiting for node to catch up its applied index has timed out",
			"dropped Raft message since sending buffer is full", "since receiving buffer is full",
			"ignored out-of-date read index response",
		),
	),
	symptom.EtcdStaleMember: proves(
		"streaming request ignored (ID mismatch", "ignored streaming request; ID mismatch", "rejected the stream from peer",
		"reject message from removed member", "rejected Raft message from removed member", "rejected Raft message to mismatch member",
		"membership: ID removed", "membership: peerURL exists", "membership: ID exists", "member exists with identical ID",
		"the local member has been removed", "member unknown*etcd", "error updating attributes of unknown member",
		"failed to update; member unknown", "skipped attributes update of removed member", "peer*failed to find local node",
	),
	symptom.EtcdUnreachable: proves(
		"could not get cluster response from", "failed to get cluster response", "failed to reach the peer URL",
		"failed to get raft cluster member(s)", "cannot get the version of member", "exceeded header timeout",
		"client: endpoint*exceeded", "failed to fetch endpoints from etcd cluster member list", "etcdserver: server stopped",
		"lost TCP streaming connection with remote peer*EOF*failed", "failed to get cluster from remote peers", "endpoint health failed",
		"Error: unhealthy cluster", "failed to create client to peer",
	),
	symptom.PortInUse: proves("creating peer listener failed"),
	symptom.ReadOnlyFilesystem: proves(
		"cannot write to member directory", "cannot write to WAL directory", "cannot access data directory",
		"cannot access member directory", "cannot create cert directory",
	),
	symptom.X509SANMismatch: proves("does not match any of DNSNames", "tls:*does not match any of",
		"rejected connection*IPAddresses*DNSNames"),
	symptom.CertificateExpired: proves("failed to find peer cert files*expired"),
}
