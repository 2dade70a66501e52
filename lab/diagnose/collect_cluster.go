package diagnose

import (
	"context"
	"errors"

	"k8slab/lab/etcd"
	"k8slab/lab/kube"
)

// Cluster is a way to ask the cluster itself.
type Cluster struct {
	Kube *kube.Client
	Etcd *etcd.Client // nil where nobody has its certificates
}

// Close drops the connections.
func (c Cluster) Close() {
	c.Kube.Close()
	if c.Etcd != nil {
		_ = c.Etcd.Close()
	}
}

type opened struct {
	via     string
	cluster Cluster
	serves  bool // its API server answers
	err     error
}

// openFirst opens the cluster through every control plane at once and takes the first whose API server answers; else, for etcd, the first
// that gave its credentials.
func openFirst(ctx context.Context, controlPlanes []string, open func(ctx context.Context, controlPlane string) (Cluster, error)) (string, Cluster, error) {
	results := make(chan opened)
	asked := len(controlPlanes)
	for _, name := range controlPlanes {
		go func() {
			o := opened{via: name}
			if o.cluster, o.err = open(ctx, name); o.err == nil {
				o.serves = o.cluster.Kube.Answers(ctx) == nil
			}
			results <- o
		}()
	}
	var spare *opened
	var errs []error
	for range controlPlanes {
		o := <-results
		asked--
		switch {
		case o.err != nil:
			errs = append(errs, o.err)
		case o.serves || asked == 0 && spare == nil:
			closeRest(results, asked, spare)
			return o.via, o.cluster, nil
		case spare == nil:
			spare = &o
		default:
			o.cluster.Close()
		}
	}
	if spare != nil {
		return spare.via, spare.cluster, nil
	}
	return "", Cluster{}, errors.Join(append(errs, errNoControlPlane)...)
}

var errNoControlPlane = errors.New("no control plane that was asked has an administrator's credentials")

// closeRest closes what the slower control planes still open.
func closeRest(results <-chan opened, left int, spare *opened) {
	if spare != nil {
		spare.cluster.Close()
	}
	go func() {
		for range left {
			if o := <-results; o.err == nil {
				o.cluster.Close()
			}
		}
	}()
}
