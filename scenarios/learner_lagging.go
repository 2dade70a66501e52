package scenarios

import (
	"context"
	"errors"

	"k8slab/lab/symptom"
)

// ballastKey is what the ballast is written to.
const ballastKey = "/k8slab/fault-ballast"

var learnerLagging = Fault{
	Name:    "learner-lagging",
	Story:   "etcd's data is large and the link to the new member slow: it stays a learner for long (control-plane-join-failures, kubeadm#3269)",
	Roles:   controlPlane,
	Symptom: symptom.EtcdLearnerNotInSync,
	Applies: threeControlPlanes,
	Outside: true,
	Inject:  func(ctx context.Context, s Site) error { return s.joinSlowly(ctx, "4mbit", "2m") },
	Bites:   learns,
	Recover: nodeVerb("join"),
	Restore: unballast,
}

// joinSlowly begins a join whose learner catches up at a rate: at 2 Mbit/s it needs most of a minute. etcdLimit is how long kubeadm waits for
// that.
func (s Site) joinSlowly(ctx context.Context, rate, etcdLimit string) error {
	if err := s.ballast(ctx, "2000"); err != nil {
		return err
	}
	if err := s.slowPeers(ctx, rate); err != nil {
		return err
	}
	return s.joinByHand(ctx, s.Address, etcdLimit)
}

// ballast writes one key again and again, 12 KiB each time: what counts is the number of entries in the log that a learner needs before it
// may vote. One program makes all requests, because one for each would take minutes.
func (s Site) ballast(ctx context.Context, writes string) error {
	return s.shell(ctx, s.ControlPlane, `
		dir=$(mktemp -d)
		trap 'rm -rf "$dir"' EXIT
		key=$(printf %s "$1" | base64 --wrap=0)
		printf '{"key":"%s","value":"%s"}' "$key" "$(head -c 9216 /dev/urandom | base64 --wrap=0)" > "$dir/put"
		for i in $(seq "$2"); do
			printf 'url = "https://127.0.0.1:2379/v3/kv/put"\noutput = "%s/answer"\n' "$dir"
		done > "$dir/requests"
		pki=/etc/kubernetes/pki/etcd
		curl --silent --show-error --fail-early --fail --cacert $pki/ca.crt --cert $pki/peer.crt --key $pki/peer.key \
			--data "@$dir/put" --config "$dir/requests"`, ballastKey, writes)
}

// unballast takes the ballast and the slow links away.
func unballast(ctx context.Context, s Site) error {
	return errors.Join(s.freePeers(ctx), s.etcdctl(ctx, "--command-timeout=10s", "del", ballastKey))
}
