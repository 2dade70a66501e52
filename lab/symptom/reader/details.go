package reader

import "k8slab/lab/symptom"

// detail is what text says more about a cause.
type detail struct {
	of      symptom.ID
	name    string
	phrases []string
}

// details are in order of precedence, for texts that show several: an address that cannot work, then a port that is blocked, then a
// member that is merely slow.
var details = []detail{
	{symptom.EtcdLearnerNotInSync, symptom.AlreadyPromoted, []string{"can only promote a learner member\n",
		"can only promote a learner member,", "can only promote a learner member}", "ErrMemberNotLearner"}},
	{symptom.EtcdLearnerNotInSync, symptom.WrongAddress, []string{"https://10.0.2.15:2380", "https://127.0.0.1:2380",
		"https://127.0.1.1:2380", "https://localhost:2380", ":2380*x509: certificate is valid for", "2380*doesn't contain any IP SANs",
		"bind: cannot assign requested address", "missing from --initial-advertise-peer-urls"}},
	{symptom.EtcdLearnerNotInSync, symptom.PeerPortBlocked, []string{":2380: i/o timeout", ":2380: connect: connection timed out",
		":2380: connect: no route to host", "peer*i/o timeout", "DPT=2380", "2380/tcp filtered",
		"nc: connect to*port 2380 (tcp) timed out", "nc: connect to*port 2380 (tcp) failed: Connection timed out"}},
	{symptom.EtcdLearnerNotInSync, symptom.NeverStarted, []string{"the etcd member * is not started\n", "unstarted, *, true\n",
		"| unstarted | *| true |\n", ":2380: connect: connection refused", "restarting failed container=etcd",
		"Back-off restarting failed container etcd", "etcd-*CrashLoopBackOff", "failed to pull image*etcd", "ErrImagePull*etcd",
		"member count is unequal", "etcd*failed to start container"}},
	{symptom.EtcdLearnerNotInSync, symptom.SlowDisk, []string{"slow fdatasync", "likely from slow disk", "sync duration of",
		"disk is too slow", "likely due to a slow disk"}},
	{symptom.EtcdLearnerNotInSync, symptom.CatchingUp, []string{"sending database snapshot", "sent database snapshot",
		"start to send snapshot", "receiving database snapshot", "received and saved database snapshot", "applying snapshot",
		"started streaming with peer", "is less than 90%*leader", "rejecting promote learner: learner is not ready"}},
}
