package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/kube"
	"k8slab/lab/node"
	"k8slab/lab/session"
	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

// tokenTTL is the life of a bootstrap token. Each is deleted as soon as its join has ended.
const tokenTTL = 30 * time.Minute

// tokenMark begins the description of the lab's own bootstrap tokens.
const tokenMark = "labctl: "

// initMark is the description of the token that kubeadm init makes.
const initMark = tokenMark + "init"

// certificatesMark begins the description of the token that owns the uploaded certificates: Kubernetes deletes them together with it.
// Nobody can join with this token (kubeadm, copycerts.go).
const certificatesMark = "Proxy for managing TTL for the kubeadm-certs secret"

// joinMark is the description of the tokens for the node's joins.
func joinMark(node string) string { return tokenMark + "join of " + node }

// signBudget bounds the wait for kube-controller-manager to sign a token. On an emulated machine it needs over a minute to start its
// controllers.
const signBudget = time.Minute

// signQuiet is how long a signature may take before the wait for it is told of.
const signQuiet = 2 * time.Second

// unsignedError says that nobody signs cluster-info for a new token, so that no machine can discover the cluster with it.
type unsignedError struct{ error }

func (e *unsignedError) Unwrap() error { return e.error }

// signedToken makes a bootstrap token and waits until discovery can use it. kubeadm would wait too, but polls only every 5 s. tell is told
// once of what a long wait is for. The error is an *unsignedError if the wait was in vain.
func signedToken(ctx context.Context, s *session.Session, v *session.Admin, description string, tell func(string)) (string, error) {
	token, err := v.Kube.CreateBootstrapToken(ctx, tokenTTL, description)
	if err != nil {
		return "", err
	}
	begin, told := time.Now(), false
	scale := time.Duration(s.TimeScale())
	err = wait.For(ctx, "the bootstrap token to be signed", scale*signBudget, s.Pace()/4, func(ctx context.Context) error {
		ok, err := v.Kube.ClusterInfoHasJWS(ctx, token)
		if err != nil || ok {
			return err
		}
		if time.Since(begin) < scale*signQuiet {
			return errors.New("cluster-info has no signature for it yet")
		}
		err = signerSilent(ctx, v)
		if !told {
			told = true
			tell(err.Error())
		}
		return err
	})
	if _, late := errors.AsType[*wait.TimeoutError](err); late {
		err = &unsignedError{err}
	}
	return token, err
}

// signerSilent is why a token has no signature.
func signerSilent(ctx context.Context, v *session.Admin) error {
	const unsigned = "nobody signs cluster-info for the bootstrap token"
	holder, renewed, err := v.Kube.Leader(ctx, kube.ControllerManager)
	switch {
	case err != nil:
		return err
	case renewed.IsZero():
		return errors.New(unsigned + "; there is no Lease of kube-controller-manager, which does")
	}
	return fmt.Errorf("%s; kube-controller-manager %s, which does, renewed its Lease %s ago", unsigned, holder,
		time.Since(renewed).Round(time.Second))
}

// uploadCertificates has kubeadm on a control plane upload the encrypted certificates to the cluster, and returns their key.
func uploadCertificates(ctx context.Context, s *session.Session, from config.Node) (string, error) {
	key, err := newCertificateKey()
	if err != nil {
		return "", err
	}
	text, err := marshal([]any{object{
		"apiVersion": kubeadmAPI, "kind": "InitConfiguration", "certificateKey": key,
		"localAPIEndpoint": object{"advertiseAddress": from.IP.String()}, "nodeRegistration": registration(s, from),
	}})
	if err != nil {
		return "", err
	}
	n := s.Nodes[from.Name]
	if err := n.Copy(ctx, kubeadmConfig, 0o600, strings.NewReader(text)); err != nil {
		return "", err
	}
	err = n.Run(ctx, node.Command{Argv: []string{"kubeadm", "init", "phase", "upload-certs", "--upload-certs", "--skip-certificate-key-print", "--config", kubeadmConfig}})
	return key, errors.Join(err, n.Run(context.WithoutCancel(ctx), node.Command{Argv: []string{"rm", "-f", kubeadmConfig}}))
}

// firstWithKubeadm runs do for the first control plane on which kubeadm is installed.
func firstWithKubeadm(controlPlanes []config.Node, do func(config.Node) (string, error)) (string, error) {
	without := &noKubeadmError{}
	for _, n := range controlPlanes {
		out, err := do(n)
		var exit *node.ExitError
		if !errors.As(err, &exit) || exit.Status != 127 {
			return out, err
		}
		without.nodes = append(without.nodes, n.Name)
	}
	return "", without
}

// noKubeadmError says that no control plane of the cluster has kubeadm.
type noKubeadmError struct{ nodes []string }

func (e *noKubeadmError) Error() string {
	return fmt.Sprintf("%s: kubeadm is not found on %s, one of which has to upload the certificates; next: install it there",
		symptom.KubeBinariesMissing, strings.Join(e.nodes, ", "))
}

// newCertificateKey is a random AES-256 key in hexadecimal.
func newCertificateKey() (string, error) {
	key := make([]byte, 32)
	_, err := rand.Read(key)
	return hex.EncodeToString(key), err
}
