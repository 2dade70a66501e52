package join

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"k8slab/lab/kube"
)

// restoreByHand restores what joins need. Only the administrator has the configuration that the cluster was made with.
const restoreByHand = "kubeadm init phase bootstrap-token; kubeadm init phase upload-config all --config FILE, " +
	"with the configuration that the cluster was made with"

// madeToken is what `kubeadm init phase bootstrap-token` says of the token that it always makes.
var madeToken = regexp.MustCompile(`Using token: ([a-z0-9]{6})\.[a-z0-9]{16}`)

// restoreJoins has kubeadm make cluster-info and the rights of bootstrap tokens again. It uploads no configuration: without the
// administrator's file, kubeadm would replace the cluster's by its defaults.
func (l Login) restoreJoins(ctx context.Context, _ *Job, _ Identity) error {
	api, err := l.kube(ctx)
	if err != nil {
		return err
	}
	defer api.Close()
	needs, err := api.MissingForJoins(ctx)
	if err != nil {
		return err
	}
	for _, n := range needs {
		if n.Phase != kube.PhaseBootstrapToken {
			return fmt.Errorf("%s; run on a control plane: %s", n.What, restoreByHand)
		}
	}
	out, err := l.command(ctx, "kubeadm", "init", "phase", "bootstrap-token")
	if err != nil {
		return err
	}
	if m := madeToken.FindStringSubmatch(out); m != nil { // it lives for a day, and nobody asked for it
		if err := api.DeleteBootstrapToken(ctx, m[1]); err != nil {
			return err
		}
	}
	left, err := api.MissingForJoins(ctx)
	if err == nil && len(left) > 0 {
		err = errors.New("kubeadm init phase bootstrap-token did not restore it: " + kube.Words(left))
	}
	return err
}
