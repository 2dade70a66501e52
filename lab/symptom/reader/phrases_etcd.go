package reader

import "k8slab/lab/symptom"

// etcdPhrases are of etcd's members and their agreement.
var etcdPhrases = map[symptom.ID][]pattern{
	symptom.EtcdLearnerNotInSync: together(
		except(proves("can only promote a learner member"), "which is in sync"),
		repeated(4, "rpc not supported for learner"),
		repeated(3, "can only promote a learner member which is in sync with leader"),
		proves(
			"error execution phase*can only promote a learner member",
			"error creating local etcd static pod manifest file: etcdserver: can only promote a learner",
			"Promoting the learner*failed: etcdserver: can only promote", "learner is not ready", "unable to promote learner",
			"failed to promote learner", "the etcd member * is not started\n", "error promoting learner", "failed to promote a member",
			"started, *, true\n", "| started | *| true |\n", "rejecting promote learner", "learner stalled at RaftAppliedIndex",
		),
	),
	symptom.EtcdTooManyLearners: endsTheWait("too many learner members", "ErrTooManyLearners"),
	symptom.EtcdStaleMember: together(
		except(proves("| unstarted | | http"), "| true |"),
		proves(
			"Peer URLs already exists", "check-etcd*failed to dial endpoint", "etcdserver: unhealthy cluster",
			"etcd cluster is not healthy", "is out of range [lastIndex(0)]", "tocommit(*is out of range",
			"Was the raft log corrupted, truncated, or lost", "the member has been permanently removed from the cluster",
			"this member has been permanently removed from the cluster", "has already been bootstrapped", "cluster ID mismatch",
			"cluster-id-mismatch", "rejected stream from remote peer because it was removed", "member already exists",
			"data-dir used by this member must be removed", "failed to find remote peer in cluster",
			"could not get cluster response from*stale", "the local member*stale", "etcdserver: member not found",
			"member ID already exists", "etcd*peer URL*exists", "etcd member*already a member of the cluster",
			"health check for peer*could not connect: *dial tcp*no route to host", "unstarted, *, false\n", "| unstarted |*| false |\n",
			"failed to remove etcd member", "member*not started*etcd", "etcd member*is not healthy",
			"the member*has been removed from the cluster",
		),
		mayShow("error execution phase check-etcd"),
	),
	symptom.EtcdMemberMismatch: proves(
		"member count is unequal", "error validating peerURLs", "unmatched member while checking PeerURLs",
		"couldn't find local name*in the initial cluster configuration", "could not find local name*in the initial cluster",
		"missing from --initial-advertise-peer-urls", "--initial-cluster must include", "mismatch member ID",
		"failed to resolve*to match --initial-cluster", "error setting up initial cluster", "URLStringsEqual",
		"duplicate urls found in*initial-cluster", "discovery failed*initial-cluster", "invalid initial cluster",
		"members in the initial cluster*do not match", "re-configuration failed due to not enough started members",
	),
	symptom.EtcdSlow: together(
		slow(
			3, "took too long", "slow fdatasync", "sync duration of", "failed to send out heartbeat on time", "likely overloaded",
			"overloaded network", "overloaded likely from slow disk",
		),
		proves(
			"likely due to a slow disk", "etcdserver: request timed out, possibly due to", "disk is too slow",
			"possibly due to previous leader failure", "possibly due to connection lost", "slow disk*etcd",
			"etcdserver: too many requests", "etcdserver: request timed out, waiting for the applied index took too long",
			"timed out waiting for read index response (local node might have slow network)", "FAIL: Throughput too low",
			"FAIL: 99% latency too high", "purging*took too long", "etcd*disk latency", "apply entries took too long*s]",
			"wal_fsync*slow", "fsync*took too long",
		),
	),
	symptom.EtcdNoQuorum: together(
		except(proves(
			"raft*lost leader", "quorum lost", "lost quorum", "loss of quorum", "no quorum", "quorum is not", "not enough*quorum",
			"no leader", "etcdserver: not capable", "unhealthy cluster*leader", "ETCD_NO_LEADER", "cluster*lost its leader",
		), "elected leader", "became leader"),
		repeated(6, "is starting a new election at term", "became pre-candidate at term", "became candidate at term"),
		proves(
			"failed to publish local member to cluster through raft", "cluster has lost quorum", "not enough healthy members",
			"losing quorum", "no leader elected",
		),
	),
	symptom.EtcdUnreachable: together(
		except(proves(":2380: connect: connection refused"), "prober detected"),
		proves(
			":2379: connect: connection refused", ":2379: connect: no route to host", ":2380: connect: no route to host",
			":2379: connection refused", ":2379*context deadline exceeded", ":2379*transport: Error while dialing",
			"127.0.0.1:2379*connection refused", "etcd client: no endpoints available", "Failed to get etcd status for",
			"failed to dial endpoint*with maintenance client", "etcdclient: no available endpoints", "storage backend*etcd*unreachable",
			"cannot fetch cluster info from peer urls", "could not retrieve cluster information from the given URLs",
			"failed to connect to etcd", "Unable to create storage backend", "endpoint health*unhealthy",
			"is unhealthy: failed to commit proposal", "is unhealthy: failed to connect", "[-]etcd failed",
			"timeout waiting for etcd cluster to be available", "error creating local etcd static pod manifest file: timeout",
			"control-plane-join/etcd: error creating local etcd static pod manifest file", ":2379: bad certificate*etcd",
			"etcdserver: request timed out", "error execution phase control-plane-join/etcd", "error execution phase etcd-join",
			"Unhealthy*etcd", "createConnection*:2379", "retrying of unary invoker failed*:2379*DeadlineExceeded", "unreachable*:2380",
			"error creating storage factory: context deadline exceeded", "Error creating leases: error creating storage",
			"endpoint*:2379*DeadlineExceeded", "etcd*Unhealthy*connection refused", "failed to list etcd members",
			"etcd cluster*unavailable", "could not connect to etcd", "unable to connect to etcd", "etcd endpoints*unreachable",
			"error syncing endpoints with etcd", "failed to dial*:2379", ":2379: getsockopt: connection refused",
			"Error while dialing dial tcp *:2379", "etcd check failed", "timed out waiting for etcd",
			"etcdctl*Error: context deadline exceeded", "error connecting to etcd", "daemon-apiserver*Error: context deadline exceeded",
			"stderr F Error: context deadline exceeded",
		),
		repeated(
			4, "prober detected unhealthy status", "health check for peer", "dropped internal Raft message since sending buffer is full",
		),
	),
}
