package diagnose

import (
	"context"
	"errors"
	"sync"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/event"
)

// cluster asks the API server and etcd through the first control plane that can: none is waited for after another.
func (s Sources) cluster(ctx context.Context, f *fact.Facts) {
	var api fact.API
	var members fact.Etcd
	var proof []fact.Organ
	defer func() { f.API, f.Etcd, f.Proof = api, members, proof }()
	via, c, err := s.first(ctx)
	if err != nil {
		api.Error, members.Error = errorText(err), errorText(err)
		return
	}
	defer c.Close()
	api.Via, members.Via = via, via
	var wg sync.WaitGroup
	if s.Prove != nil {
		wg.Go(func() {
			ctx, cancel := s.within(ctx, proofLimit)
			defer cancel()
			proof = s.Prove(ctx, c)
		})
	}
	wg.Go(func() {
		ctx, cancel := s.within(ctx, apiQuestion)
		defer cancel()
		askAPI(ctx, c.Kube, s.Want, s.Existing, &api)
	})
	if c.Etcd != nil {
		wg.Go(func() {
			ctx, cancel := s.within(ctx, etcdLimit)
			defer cancel()
			askEtcd(ctx, c.Etcd, &members)
		})
	}
	wg.Wait()
	for i := range proof {
		proof[i].Error = event.Redact(proof[i].Error)
	}
}

type opened struct {
	via     string
	cluster Cluster
	serves  bool // its API server answers
	err     error
}

// first opens the cluster through every control plane at once and takes the first whose API server answers; else, for etcd, the first that
// gave its credentials.
func (s Sources) first(ctx context.Context) (string, Cluster, error) {
	ctx, cancel := s.within(ctx, openLimit)
	defer cancel()
	results := make(chan opened)
	asked := 0
	ways := s.Peers
	if len(ways) == 0 {
		ways = []fact.Peer{{Role: roleControlPlane}}
	}
	for _, m := range ways {
		if m.Role != roleControlPlane || s.Open == nil {
			continue
		}
		asked++
		go func() {
			o := opened{via: m.Name}
			if o.cluster, o.err = s.Open(ctx, m.Name); o.err == nil {
				o.serves = o.cluster.Kube.Answers(ctx) == nil
			}
			results <- o
		}()
	}
	var spare *opened
	var errs []error
	for range asked {
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
