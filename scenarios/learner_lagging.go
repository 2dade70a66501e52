package scenarios

import (
	"context"
	"errors"

	"k8slab/lab/symptom"
)

// ballastKey is the key that the ballast is written to.
const ballastKey = "/k8slab/fault-ballast"

var learnerLagging = Fault{
	Name:    "learner-lagging",
	Story:   "etcd's data is large and the link to the new member slow: it stays a learner for long (control-plane-join-failures, kubeadm#3269)",
	Roles:   controlPlane,
	Alone:   "kubeadm joins after 100 s",
	Symptom: symptom.EtcdLearnerNotInSync,
	Applies: threeControlPlanes,
	Outside: true,
	Inject:  func(ctx context.Context, t Target) error { return t.joinSlowly(ctx, "4mbit", "2m") },
	Effect:  learns,
	Recover: nodeVerb("join"),
	Restore: endSlowJoin,
}

// joinSlowly begins a join whose learner catches up at the given rate: at 4 Mbit/s that takes most of a minute. etcdLimit is how long kubeadm
// waits for it.
func (t Target) joinSlowly(ctx context.Context, rate, etcdLimit string) error {
	if err := t.ballast(ctx); err != nil {
		return err
	}
	if err := t.slowPeers(ctx, rate); err != nil {
		return err
	}
	return t.joinByHand(ctx, t.Address, etcdLimit)
}

// endSlowJoin undoes joinSlowly.
func endSlowJoin(ctx context.Context, t Target) error {
	return errors.Join(t.freePeers(ctx), unballast(ctx, t), forgetJoinByHand(ctx, t))
}

// ballast writes one key again and again, 12 KiB each time, until the database has 24 MiB. A new member receives at least as much, as a log or
// as a snapshot. One process makes all requests, because a process for each would take minutes.
func (t Target) ballast(ctx context.Context) error {
	return t.shell(ctx, t.ControlPlane, `
		dir=$(mktemp -d)
		trap 'rm -rf "$dir"' EXIT
		pki=/etc/kubernetes/pki/etcd
		ask() { curl --silent --show-error --fail-early --fail --cacert $pki/ca.crt --cert $pki/peer.crt --key $pki/peer.key "$@"; }
		size=$(ask --data '{}' https://127.0.0.1:2379/v3/maintenance/status | sed -n 's/.*"dbSize":"\([0-9]*\)".*/\1/p')
		writes=$(((25165824 - ${size:?etcd told no size}) / 9216))
		test "$writes" -gt 0 || exit 0
		printf '{"key":"%s","value":"%s"}' "$(printf %s "$1" | base64 --wrap=0)" "$(head -c 9216 /dev/urandom | base64 --wrap=0)" > "$dir/put"
		for i in $(seq "$writes"); do
			printf 'url = "https://127.0.0.1:2379/v3/kv/put"\noutput = "%s/answer"\n' "$dir"
		done > "$dir/requests"
		ask --data "@$dir/put" --config "$dir/requests"`, ballastKey)
}

func unballast(ctx context.Context, t Target) error {
	return t.etcdctl(ctx, "--command-timeout=10s", "del", ballastKey)
}
