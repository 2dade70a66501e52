package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/kube"
	"k8slab/lab/session"
)

// JoinCommand is the command for a machine outside the lab to join the cluster. It is a secret while it is valid.
type JoinCommand struct {
	Command      string    `json:"command"`
	ControlPlane bool      `json:"controlPlane"`
	Expires      time.Time `json:"expires"` // the token; uploaded certificates live for two hours
}

// joinCommandMark is the description of join commands' tokens. It does not begin with tokenMark, so that `up` does not delete them.
const joinCommandMark = "made by labctl join-command"

// MakeJoinCommand makes a bootstrap token, uploads the certificates that a control plane needs, and returns the command to join with. The
// cluster's CA is pinned.
func MakeJoinCommand(ctx context.Context, s *session.Session, v *session.Admin, controlPlane bool) (JoinCommand, error) {
	hash, err := kube.CACertHash(v.Config)
	if err != nil {
		return JoinCommand{}, err
	}
	facts, _ := s.Facts(ctx, s.Cluster.ControlPlanes()) // one that does not answer restores and uploads nothing
	c := New(s, facts, nil)
	c.Admin = v
	if _, err := c.RestoreJoins(ctx); err != nil {
		return JoinCommand{}, err
	}
	key := ""
	if controlPlane {
		joined := c.JoinedControlPlanes()
		if key, err = firstWithKubeadm(joined, func(n config.Node) (string, error) { return uploadCertificates(ctx, s, n) }); err != nil {
			return JoinCommand{}, err
		}
	}
	expires := time.Now().Add(tokenTTL).Truncate(time.Second)
	token, err := signedToken(ctx, s, v, joinCommandMark, func(string) {})
	if err != nil {
		return JoinCommand{}, err
	}
	return JoinCommand{Command: joinCommand(s, token, hash, key), ControlPlane: controlPlane, Expires: expires}, nil
}

func joinCommand(s *session.Session, token, caHash, certificateKey string) string {
	text := fmt.Sprintf("kubeadm join %s --token %s --discovery-token-ca-cert-hash %s", s.Endpoint(), token, caHash)
	if certificateKey != "" {
		text += " --control-plane --certificate-key " + certificateKey
	}
	if ignored := ignoredChecks(s); len(ignored) > 0 {
		text += " --ignore-preflight-errors=" + strings.Join(ignored, ",")
	}
	return text
}
