// Package health says how an opened lab is: its status, the proof that it is healthy, its diagnosis, and the traces of a node. It may wait,
// but changes nothing.
package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/kube"
	"k8slab/lab/session"
	"k8slab/lab/wait"
)

// ProofBudget bounds the time from the last join to a proven cluster. It is long for emulated virtual machines.
const ProofBudget = 6 * time.Minute

// probe is the DaemonSet and Service of the pods that prove the pod network.
const (
	probeNamespace = "k8slab"
	probePort      = "8080"
	probeService   = "probe.k8slab.svc.cluster.local:" + probePort
)

// condition is something that must hold in a healthy cluster.
type condition struct {
	name  string
	check func(context.Context) error
}

// conditions define a healthy cluster. Each depends on those before it, and Prove waits for them in this order.
func conditions(s *session.Session, v *session.Admin) []condition {
	return []condition{
		{"API server ready", v.Kube.Ready},
		{"every etcd member a started, healthy voter", func(ctx context.Context) error { return etcdComplete(ctx, s, v) }},
		{"every node Ready", func(ctx context.Context) error { return nodesReady(ctx, s, v) }},
		{"pod network and probe deployed", func(ctx context.Context) error {
			return errors.Join(v.Kube.DaemonSetReady(ctx, FlannelNamespace, "flannel"), v.Kube.DaemonSetReady(ctx, probeNamespace, "probe"))
		}},
		{"CoreDNS running", func(ctx context.Context) error { return v.Kube.DeploymentReady(ctx, "kube-system", "coredns") }},
		{"pods reach pods and a Service by name across all nodes", func(ctx context.Context) error { return podsReach(ctx, s, v) }},
	}
}

// Prove waits until every condition holds.
func Prove(ctx context.Context, s *session.Session, v *session.Admin) error {
	step := s.Events.Start("", "proof", ProofBudget)
	return step.End(await(ctx, s, v, step))
}

func await(ctx context.Context, s *session.Session, v *session.Admin, step *event.Step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, ProofBudget, fmt.Errorf("the proof's %s budget ran out", ProofBudget))
	defer cancel()
	for _, c := range conditions(s, v) {
		step.Progress("%s", c.name)
		if err := wait.For(ctx, c.name, ProofBudget, s.Pace(), session.ShowWaiting(step, c.check)); err != nil {
			return err
		}
	}
	// Each held at some moment. Healthy means that all hold at the same time.
	return wait.For(ctx, "everything at once", ProofBudget, s.Pace(), session.ShowWaiting(step, func(ctx context.Context) error {
		return errors.Join(Healthy(ctx, s, v)...)
	}))
}

// Healthy checks all conditions once, concurrently, and returns an error for each that does not hold. On emulated machines it checks one
// after another: at once, every answer would come too late.
func Healthy(ctx context.Context, s *session.Session, v *session.Admin) []error {
	all := conditions(s, v)
	errs := make([]error, len(all))
	var g errgroup.Group
	if s.Emulated() {
		g.SetLimit(1)
	}
	for i, c := range all {
		g.Go(func() error {
			if err := c.check(ctx); err != nil {
				errs[i] = fmt.Errorf("%s: %w", c.name, err)
			}
			return nil
		})
	}
	_ = g.Wait()
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

func etcdComplete(ctx context.Context, s *session.Session, v *session.Admin) error {
	if err := v.Etcd.Healthy(ctx); err != nil {
		return err
	}
	members, err := v.Etcd.Members(ctx)
	if err != nil {
		return err
	}
	if want := len(s.Cluster.ControlPlanes()); len(members) != want {
		return fmt.Errorf("etcd has %d members, cluster.yaml has %d control planes", len(members), want)
	}
	return nil
}

func nodesReady(ctx context.Context, s *session.Session, v *session.Admin) error {
	nodes, err := v.Kube.Nodes(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range s.Cluster.Members() {
		switch k := session.FindNode(nodes, n.Name); {
		case k == nil:
			errs = append(errs, fmt.Errorf("%s: no such Node", n.Name))
		case !k.Ready:
			errs = append(errs, fmt.Errorf("%s: not Ready: %s", n.Name, k.Reason))
		}
	}
	return errors.Join(errs...)
}

// podsReach has the probe of each node connect to every other probe, to the Service by its DNS name, and through the Service to each probe.
// The last is needed because after a failover of the virtual IP kube-proxy's watch is dead for about 30 s: meanwhile its stale endpoints
// get one connection in five.
func podsReach(ctx context.Context, s *session.Session, v *session.Admin) error {
	pods, err := v.Kube.Pods(ctx, probeNamespace, "app=probe")
	if err != nil {
		return err
	}
	service, err := v.Kube.Service(ctx, probeNamespace, "probe")
	if err != nil {
		return err
	}
	question := url.Values{"token": {ProbeToken(s)}, "target": {probeService}, "service": {net.JoinHostPort(service, probePort)}}
	byNode := map[string]kube.Pod{}
	owner := map[string]string{}
	for _, p := range pods {
		if p.Deleting || p.IP == "" {
			continue
		}
		if other := owner[p.IP]; other != "" {
			return fmt.Errorf("pods on %s and %s have the same address %s", other, p.Node, p.IP)
		}
		owner[p.IP], byNode[p.Node] = p.Node, p
	}
	members := s.Cluster.Members()
	for _, n := range members {
		p, known := byNode[n.Name]
		if !known {
			return fmt.Errorf("%s: its probe has no address yet", n.Name)
		}
		question.Add("target", net.JoinHostPort(p.IP, probePort))
		question.Add("pod", p.Name)
	}
	return session.ForEachNode(members, func(n config.Node) error {
		failures, err := askProbe(ctx, s, n.Name, byNode[n.Name].IP, question)
		if err == nil && len(failures) > 0 {
			err = fmt.Errorf("%s: its pod cannot reach: %s", n.Name, strings.Join(failures, "; "))
		}
		return err
	})
}

// askProbe asks the probe at the address, through its node, which of the question's targets it cannot reach.
func askProbe(ctx context.Context, s *session.Session, node, ip string, question url.Values) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: s.Nodes[node].Dial}}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(ip, probePort), Path: kube.ProbePath, RawQuery: question.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: ask its probe: %w", node, err)
	}
	defer func() { _ = resp.Body.Close() }()
	return kube.ProbeAnswer(resp.Body)
}

// apiBudget bounds the wait for an API server that was ready when it was saved.
const apiBudget = 2 * time.Minute

// leaseBudget bounds the wait for kubelets, which renew their Leases every 10 s and back off after a failure.
const leaseBudget = 2 * time.Minute

// SinceBudget bounds ProveSince.
const SinceBudget = apiBudget + leaseBudget + ProofBudget

// ProveSince proves a restored lab healthy. First it waits until every kubelet has renewed its Lease since that time: until then, the API
// server shows the nodes as they were when they were saved.
func ProveSince(ctx context.Context, s *session.Session, since time.Time) error {
	var v *session.Admin
	defer func() {
		if v != nil {
			v.Close()
		}
	}()
	step := s.Events.Start("", "API server", apiBudget)
	err := wait.For(ctx, "the API server at "+s.Endpoint(), apiBudget, s.Pace(), session.ShowWaiting(step, func(ctx context.Context) (err error) {
		if v == nil {
			if v, err = s.AnyAdmin(ctx); err != nil {
				return err
			}
		}
		return v.Kube.Ready(ctx)
	}))
	if err := step.End(err); err != nil {
		return err
	}
	step = s.Events.Start("", "leases", leaseBudget)
	err = wait.For(ctx, "every kubelet to renew its Lease", leaseBudget, s.Pace(), session.ShowWaiting(step, func(ctx context.Context) error {
		renewed, err := v.Kube.LeaseRenewals(ctx)
		if err != nil {
			return err
		}
		for _, n := range s.Cluster.Members() {
			if !renewed[n.Name].After(since) {
				err = errors.Join(err, fmt.Errorf("%s renewed it at %s", n.Name, renewed[n.Name].Format(time.RFC3339)))
			}
		}
		return err
	}))
	if err := step.End(err); err != nil {
		return err
	}
	return Prove(ctx, s, v)
}
