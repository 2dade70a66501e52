package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/kube"
	"k8slab/lab/session"
	"k8slab/lab/wait"
)

// borrowTime is how long borrowed credentials are valid: longer than a repair takes.
const borrowTime = 3 * time.Hour

// rightsTime is how long an API server that has just started may deny everything, until it has read its roles.
const rightsTime = 10 * time.Second

// OpenForRepair is Open. Where the credentials of no control plane open the cluster, or they have no rights there, kubeadm on a control plane
// signs others with the cluster's authority. They are valid for a while, need no role, and stay in memory.
func OpenForRepair(ctx context.Context, s *session.Session, images ImageImport) (*Run, error) {
	c, err := Open(ctx, s, images)
	if c == nil || err == nil && c.usable(ctx) == nil {
		return c, err
	}
	borrowErr := c.borrow(ctx)
	if c.Admin != nil { // while no API server answers, no credentials help
		return c, nil
	}
	return nil, errors.Join(err, borrowErr)
}

// usable says why the administrator's credentials are of no use now, nil if they are.
func (c *Run) usable(ctx context.Context) (err error) {
	_ = wait.For(ctx, "the administrator's rights", rightsTime*time.Duration(c.TimeScale()), c.Pace(), func(ctx context.Context) error {
		if err = works(ctx, c.Session, c.Admin); kube.Denied(err) {
			return err
		}
		return nil
	})
	return err
}

// borrow opens the cluster with credentials that the first control plane with a whole authority signs. Those that do not work either are of
// use only if there are no others.
func (c *Run) borrow(ctx context.Context) error {
	var errs []error
	for _, n := range c.JoinedControlPlanes() {
		text, err := c.sign(ctx, n)
		var v *session.Admin
		if err == nil {
			v, err = c.OpenAdminWith(ctx, n, c.JoinedControlPlanes(), text)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: have kubeadm sign credentials for the repair: %w", n.Name, err))
			continue
		}
		err = works(ctx, c.Session, v)
		switch {
		case c.Admin == nil:
			c.Admin = v
		case err == nil:
			c.Admin.Close()
			c.Admin = v
		default:
			v.Close()
		}
		return err
	}
	return errors.Join(errs...)
}

// sign has kubeadm on the control plane print a kubeconfig of a member of system:masters, whom every API server lets do everything.
func (c *Run) sign(ctx context.Context, n config.Node) (string, error) {
	text, err := told(initDocuments(c.Session, n, "", ""), "", "", "") // whose authority it is, is all that counts
	if err != nil {
		return "", err
	}
	const script = `umask 077; d=$(mktemp -d) || exit 1; trap 'rm -rf "$d"' EXIT; cat >"$d/config" || exit 1
kubeadm kubeconfig user --config "$d/config" "$@"`
	return session.Feed(ctx, c.Nodes[n.Name], true, strings.NewReader(text), "sh", "-c", script, "sh",
		"--org", "system:masters", "--client-name", "k8slab-repair", "--validity-period", borrowTime.String())
}
