package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8slab/config"
	"k8slab/lab/session"
)

// Dismantling is the end of a cluster that labctl did not make.
type Dismantling struct {
	*Run
	Workers, ControlPlanes []config.Node // that kubeadm has worked on, in the order in which they are reset
	Steps                  []string      // what will be done, what is lost and what stays, for a person
}

// NewDismantling looks at every machine, and says what taking the cluster apart comes to. It changes nothing. All machines must answer: one
// that comes back later would go on with a cluster that is no more.
func NewDismantling(ctx context.Context, s *session.Session) (*Dismantling, error) {
	members := s.Cluster.Members()
	facts, silent := s.Facts(ctx, members)
	if silent != nil {
		return nil, fmt.Errorf("nothing was changed, because not every machine answers: %w\nnext: turn it on, or remove it from cluster.yaml if it is gone for good", silent)
	}
	d := &Dismantling{Run: New(s, facts, nil)}
	if err := d.OneCluster(members); err != nil {
		return nil, err
	}
	for _, n := range members {
		switch f := d.Fact(n); {
		case !f.Joined && !f.Dirty && !f.Running():
		case n.Role == config.ControlPlane:
			d.ControlPlanes = append(d.ControlPlanes, n)
		default:
			d.Workers = append(d.Workers, n)
		}
	}
	slices.Reverse(d.ControlPlanes) // the first one has the cluster to the end
	if len(d.Workers)+len(d.ControlPlanes) > 0 {
		d.Steps = d.describe(ctx)
	}
	return d, nil
}

// OneCluster refuses a machine with the certificates of another cluster.
func (c *Run) OneCluster(members []config.Node) error {
	first := config.Node{}
	for _, n := range members {
		ca := c.Fact(n).CA
		switch {
		case ca == "":
		case first.Name == "":
			first = n
		case ca != c.Fact(first).CA:
			return fmt.Errorf("%s and %s are in different clusters: their /etc/kubernetes/pki/ca.crt differ; "+
				"next: remove the one that does not belong here from cluster.yaml, or run kubeadm reset on it", first.Name, n.Name)
		}
	}
	return nil
}

// describe is for a person who decides. What the cluster itself would say is missing where no API server answers.
func (d *Dismantling) describe(ctx context.Context) (steps []string) {
	if len(d.Workers) > 0 {
		steps = append(steps, "reset the workers "+strings.Join(config.Names(d.Workers), ", ")+" (kubeadm reset)")
	}
	for _, n := range d.ControlPlanes {
		steps = append(steps, "reset the control plane "+n.Name+" (kubeadm reset)")
	}
	lost := "lost: every object of the cluster, which is etcd's data; its certificate authority and every certificate and kubeconfig made with it"
	if v, err := d.AnyAdmin(ctx); err == nil {
		defer v.Close()
		if pods, err := v.Kube.Pods(ctx, "", ""); err == nil {
			lost += fmt.Sprintf("; %d pods, which end", len(pods))
		}
		if nodes, err := v.Kube.Nodes(ctx); err == nil {
			for _, n := range nodes {
				if _, known := d.Cluster.Node(n.Name); !known {
					steps = append(steps, "leave "+n.Name+" without a cluster: it is a Node, and cluster.yaml does not have it")
				}
			}
		}
	}
	return append(steps, lost, "stays: programs, images, the pod network's files in /etc/cni/net.d, packet filter rules, "+
		"and what pods have put into directories of their machines")
}

// Dismantle resets the workers together, and then one control plane after another. Run again, it goes on where it stopped.
func (d *Dismantling) Dismantle(ctx context.Context) error {
	if err := d.FinishRunning(ctx); err != nil {
		return err
	}
	if err := session.ForEachNode(d.Workers, func(n config.Node) error { return d.apart(ctx, n) }); err != nil {
		return err
	}
	for _, n := range d.ControlPlanes {
		if err := d.apart(ctx, n); err != nil {
			return err
		}
	}
	return d.ForgetRestore()
}

// apart resets a machine. Nobody will miss its etcd member.
func (d *Dismantling) apart(ctx context.Context, n config.Node) error {
	step := d.Events.Start(n.Name, "reset", resetBudget)
	limited, cancel := d.Within(ctx, resetBudget)
	defer cancel()
	err := reset(limited, d.Session, n.Name)
	if err == nil {
		err = d.RefreshFacts(ctx, n)
	}
	if f := d.Fact(n); err == nil && (f.Joined || f.Dirty) {
		err = errors.New("files of the cluster are still there")
	}
	if err != nil {
		err = fmt.Errorf("%s: %w\nnext: labctl dismantle again, which goes on; or look there: labctl ssh %[1]s journalctl -n 50", n.Name, err)
	}
	return step.End(err)
}
