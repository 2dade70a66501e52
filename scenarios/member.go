package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

var errMemberHealthy = absent("its etcd member is healthy")

// memberDown is nil once the node's etcd member does not answer, or answers without its peers: a control plane beside it asks, which can ask
// its own member how it is.
func memberDown(ctx context.Context, t Target) error {
	limit := "--command-timeout=" + t.patiently(2*time.Second).String()
	if _, err := t.etcd(ctx, limit, "endpoint", "status"); err != nil {
		return fmt.Errorf("%s can ask no etcd: %w", t.ControlPlane, err)
	}
	if _, err := t.etcdOf(ctx, t.Address, limit, "endpoint", "health"); err == nil {
		return errMemberHealthy
	}
	return ctx.Err()
}

// etcdMember is one of etcd's, as another tells of it.
type etcdMember struct {
	ID        uint64
	Name      string
	PeerURLs  []string
	IsLearner bool
}

func (t Target) etcdMembers(ctx context.Context) ([]etcdMember, error) {
	out, err := t.etcd(ctx, "--command-timeout=3s", "member", "list", "--write-out=json")
	if err != nil {
		return nil, err
	}
	var list struct{ Members []etcdMember }
	err = json.Unmarshal([]byte(out), &list)
	return list.Members, err
}

// votes is nil once the node's member votes.
func (t Target) votes(ctx context.Context) error {
	members, err := t.etcdMembers(ctx)
	if err == nil && !slices.ContainsFunc(members, func(m etcdMember) bool { return m.Name == t.Node && !m.IsLearner }) {
		err = errors.New("its etcd member does not vote")
	}
	return err
}

// learns is nil once the node's member has started, which gives it its name, and is a learner. It answers nobody while it receives a
// snapshot.
func learns(ctx context.Context, t Target) error {
	members, err := t.etcdMembers(ctx)
	if err == nil && !slices.ContainsFunc(members, func(m etcdMember) bool { return m.Name == t.Node && m.IsLearner }) {
		err = errors.New("its etcd member is not a learner")
	}
	return err
}

// A join that the node's owner makes without the lab: its unit, and the label of the token that it was made with.
const (
	byHand     = "fault-join"
	ownerToken = "k8slab.fault=join"
)

// joinByHand has the node's owner begin a join as a control plane, with a command of `labctl join-command` turned into kubeadm's
// configuration, and does not wait for its end. address is what the node's API server and etcd tell the others to reach them at; etcdLimit
// is how long kubeadm tries to change etcd's membership.
func (t Target) joinByHand(ctx context.Context, address, etcdLimit string) error {
	command, err := t.Labctl(ctx, "join-command", "--control-plane")
	if err != nil {
		return err
	}
	words := strings.Fields(command)
	ignored := ""
	for _, w := range words {
		if list, found := strings.CutPrefix(w, "--ignore-preflight-errors="); found {
			ignored = list
		}
	}
	after := func(word string) string {
		for i, w := range words[:max(0, len(words)-1)] {
			if w == word {
				return words[i+1]
			}
		}
		return ""
	}
	id, _, _ := strings.Cut(after("--token"), ".")
	if _, err := t.kubectl(ctx, "label", "secret", "--namespace=kube-system", "bootstrap-token-"+id, ownerToken); err != nil {
		return err
	}
	configuration := fmt.Sprintf(`apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery: {bootstrapToken: {apiServerEndpoint: %q, token: %q, caCertHashes: [%q]}}
nodeRegistration: {name: %q, ignorePreflightErrors: [%s]}
controlPlane: {certificateKey: %q, localAPIEndpoint: {advertiseAddress: %q}}
timeouts: {etcdAPICall: %q}
`, after("join"), after("--token"), after("--discovery-token-ca-cert-hash"), t.Node, ignored, after("--certificate-key"), address, etcdLimit)
	return t.shell(ctx, t.Node, `
		(umask 077; printf %s "$1" > /run/k8slab.fault)
		systemd-run --quiet --collect --unit "$2" sh -c 'labnode join --config /run/k8slab.fault --attempts 1; rm -f /run/k8slab.fault'`,
		configuration, byHand)
}

// forgetJoinByHand takes away what joinByHand left: the configuration, should the join have been killed, and the token. A join that is at work
// comes to its end first: without its token it would wait for the kubelet's certificate for minutes.
func forgetJoinByHand(ctx context.Context, t Target) error {
	ended := t.await(ctx, "the join that was begun by hand to end", 3*time.Minute, time.Second, func(ctx context.Context) error {
		return t.shell(ctx, t.Node, `! systemctl --quiet is-active "$1"`, byHand)
	})
	_, err := t.kubectl(ctx, "delete", "secret", "--namespace=kube-system", "--selector="+ownerToken)
	return errors.Join(ended, err, t.run(ctx, "rm", "--force", "/run/k8slab.fault"))
}

// joinFailed is nil once the join that was begun by hand has failed.
func joinFailed(ctx context.Context, t Target) error {
	out, err := t.Run(ctx, t.Node, "labnode", "facts")
	if err != nil {
		return err
	}
	var facts struct {
		JoinUnit string
		Outcome  *struct{ Joined bool }
	}
	if err := json.Unmarshal([]byte(out), &facts); err != nil {
		return err
	}
	switch {
	case facts.Outcome == nil:
		return fmt.Errorf("the join has no result yet (%s)", facts.JoinUnit)
	case facts.Outcome.Joined:
		return errors.New("the join succeeded")
	}
	return nil
}
