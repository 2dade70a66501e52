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

// memberDown returns nil once the node's etcd member does not answer, or has lost its peers. Another control plane asks it, which must be able to
// ask its own member.
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

// etcdMember is a member of etcd, as etcdctl lists it.
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

// votes returns nil once the node's member is a voter.
func (t Target) votes(ctx context.Context) error {
	members, err := t.etcdMembers(ctx)
	if err == nil && !slices.ContainsFunc(members, func(m etcdMember) bool { return m.Name == t.Node && !m.IsLearner }) {
		err = errors.New("its etcd member does not vote")
	}
	return err
}

// learns returns nil once the node's member has started and is a learner. A member has no name before it starts. While a learner receives a
// snapshot it does not answer, so others are asked.
func learns(ctx context.Context, t Target) error {
	members, err := t.etcdMembers(ctx)
	if err == nil && !slices.ContainsFunc(members, func(m etcdMember) bool { return m.Name == t.Node && m.IsLearner }) {
		err = errors.New("its etcd member is not a learner")
	}
	return err
}

// The systemd unit of a join without the lab, and the label of its token.
const (
	byHand     = "fault-join"
	ownerToken = "k8slab.fault=join"
)

// joinByHand begins a join as a control plane, as the node's owner would, and does not wait for its end. It makes kubeadm's configuration from
// what `labctl join-command` prints. address is the one that the node's API server and etcd advertise; etcdLimit is how long kubeadm tries to
// change etcd's membership.
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
	configuration := fmt.Sprintf(`apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery: {bootstrapToken: {apiServerEndpoint: %q, token: %q, caCertHashes: [%q]}}
nodeRegistration: {name: %q, ignorePreflightErrors: [%s]}
controlPlane: {certificateKey: %q, localAPIEndpoint: {advertiseAddress: %q}}
timeouts: {etcdAPICall: %q}
`, after("join"), after("--token"), after("--discovery-token-ca-cert-hash"), t.Node, ignored, after("--certificate-key"), address, etcdLimit)
	return t.startJoin(ctx, command, "--config", configuration)
}

// beginJoin begins a join with the command that `labctl join-command` prints, and does not wait for its end.
func beginJoin(ctx context.Context, t Target) error {
	command, err := t.joinCommand(ctx)
	if err == nil {
		command, err = t.named(ctx, t.Node, command)
	}
	if err != nil {
		return err
	}
	return t.startJoin(ctx, command, "--command-file", command)
}

// startJoin marks the command's token, so that forgetJoinByHand finds it, and runs labnode with a file of the content in the background. The
// machine keeps the outcome; in its journal the failure would outlast a later join, which labctl runs.
func (t Target) startJoin(ctx context.Context, command, flag, content string) error {
	token := tokenFlag.FindStringSubmatch(command)
	if token == nil {
		return errors.New("the join command has no token")
	}
	if _, err := t.kubectl(ctx, "label", "secret", "--namespace=kube-system", "bootstrap-token-"+token[1], ownerToken); err != nil {
		return err
	}
	return t.shell(ctx, t.Node, `
		(umask 077; printf %s "$1" > /run/k8slab.fault)
		systemd-run --quiet --collect --property StandardOutput=null --property StandardError=null --unit "$2" \
			sh -c '"$1" join "$2" /run/k8slab.fault --attempts 1; rm -f /run/k8slab.fault' sh "$3" "$4"`,
		content, byHand, labnode, flag)
}

// forgetJoinByHand removes what joinByHand left: the token, and the configuration of a killed join. It waits for the end of a running join,
// which without its token would wait for the kubelet's certificate for minutes.
func forgetJoinByHand(ctx context.Context, t Target) error {
	ended := t.await(ctx, "the join that was begun by hand to end", 3*time.Minute, time.Second, func(ctx context.Context) error {
		return t.shell(ctx, t.Node, `! systemctl --quiet is-active "$1"`, byHand)
	})
	_, err := t.kubectl(ctx, "delete", "secret", "--namespace=kube-system", "--selector="+ownerToken)
	return errors.Join(ended, err, t.run(ctx, "rm", "--force", "/run/k8slab.fault"))
}

// joinFailed returns nil once the join that was begun by hand has failed.
func joinFailed(ctx context.Context, t Target) error {
	out, err := t.Run(ctx, t.Node, labnode, "facts")
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
