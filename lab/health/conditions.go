package health

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"k8slab/config"
	"k8slab/lab/diagnose"
	"k8slab/lab/diagnose/fact"
	"k8slab/lab/kube"
	"k8slab/lab/session"
)

// probe is the DaemonSet and Service of the pods that prove the pod network.
const (
	probeNamespace = "k8slab"
	probePort      = "8080"
	probeService   = "probe.k8slab.svc.cluster.local:" + probePort
)

// condition is something that must hold in a healthy cluster.
type condition struct {
	organ string // what it is about
	name  string
	check func(context.Context) error // of one that a node does not meet, an ailing
}

// ailing is what is wrong with one node.
type ailing struct {
	node string
	err  error
}

func (a ailing) Error() string { return a.node + ": " + a.err.Error() }
func (a ailing) Unwrap() error { return a.err }

// conditions define a healthy cluster. Each depends on those before it, and Prove waits for them in this order.
func conditions(s *session.Session, c diagnose.Cluster) []condition {
	return []condition{
		{"API server", "API server ready", c.Kube.Ready},
		{"etcd", "every etcd member a started, healthy voter", func(ctx context.Context) error { return etcdComplete(ctx, s, c) }},
		{"node", "every node Ready", func(ctx context.Context) error { return nodesReady(ctx, s, c) }},
		{"pod network", "pod network, kube-proxy and probe deployed", func(ctx context.Context) error {
			return errors.Join(c.Kube.DaemonSetReady(ctx, FlannelNamespace, "flannel"), c.Kube.DaemonSetReady(ctx, "kube-system", "kube-proxy"),
				c.Kube.DaemonSetReady(ctx, probeNamespace, "probe"))
		}},
		{"CoreDNS", "CoreDNS running", func(ctx context.Context) error { return c.Kube.DeploymentReady(ctx, "kube-system", "coredns") }},
		{"pod network", "pods reach pods and a Service by name across all nodes",
			func(ctx context.Context) error { return podsReach(ctx, s, c) }},
	}
}

// measure checks all conditions once, concurrently. On emulated machines it checks one after another: at once, every answer would come too
// late.
func measure(ctx context.Context, s *session.Session, c diagnose.Cluster) []fact.Organ {
	all := conditions(s, c)
	found := make([][]fact.Organ, len(all))
	var g errgroup.Group
	if s.Emulated() {
		g.SetLimit(1)
	}
	for i, one := range all {
		g.Go(func() error {
			began := time.Now()
			err := one.check(ctx)
			found[i] = one.organs(err)
			for k := range found[i] {
				found[i][k].Elapsed = time.Since(began).Round(time.Millisecond).Seconds()
				found[i][k].Late = err != nil && ctx.Err() != nil
			}
			return nil
		})
	}
	_ = g.Wait()
	return slices.Concat(found...)
}

// organs are one for each node that does not meet the condition, or else one for the cluster.
func (c condition) organs(err error) []fact.Organ {
	var all []fact.Organ
	for _, one := range parts(err) {
		o := fact.Organ{Name: c.organ, Detail: c.name}
		if a, ok := errors.AsType[ailing](one); ok {
			o.Node, one = a.node, a.err
		}
		o.Error = one.Error()
		all = append(all, o)
	}
	if len(all) == 0 {
		all = []fact.Organ{{Name: c.organ, Detail: c.name}}
	}
	return all
}

// parts are the errors that were joined.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, parts(one)...)
	}
	return all
}

func etcdComplete(ctx context.Context, s *session.Session, c diagnose.Cluster) error {
	if err := c.Etcd.Healthy(ctx); err != nil {
		return err
	}
	members, err := c.Etcd.Members(ctx)
	if err != nil {
		return err
	}
	if want := len(s.Cluster.ControlPlanes()); len(members) != want {
		return fmt.Errorf("etcd has %d members, cluster.yaml has %d control planes", len(members), want)
	}
	return nil
}

func nodesReady(ctx context.Context, s *session.Session, c diagnose.Cluster) error {
	nodes, err := c.Kube.Nodes(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range s.Cluster.Members() {
		switch k := session.FindNode(nodes, n.Name); {
		case k == nil:
			errs = append(errs, ailing{n.Name, errors.New("no such Node")})
		case !k.Ready:
			errs = append(errs, ailing{n.Name, fmt.Errorf("not Ready: %s", k.Reason)})
		}
	}
	return errors.Join(errs...)
}

// podsReach has the probe of each node connect to every other probe, to the Service by its DNS name, and through the Service to each probe.
// The last is needed because after a failover of the virtual IP kube-proxy's watch is dead for about 30 s: meanwhile its stale endpoints
// get one connection in five.
func podsReach(ctx context.Context, s *session.Session, c diagnose.Cluster) error {
	pods, err := c.Kube.Pods(ctx, probeNamespace, "app=probe")
	if err != nil {
		return err
	}
	service, err := c.Kube.Service(ctx, probeNamespace, "probe")
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
			return ailing{n.Name, errors.New("its probe has no address yet")}
		}
		question.Add("target", net.JoinHostPort(p.IP, probePort))
		question.Add("pod", p.Name)
	}
	answers, err := session.FromEachNode(members, func(n config.Node) ([]string, error) {
		failures, err := askProbe(ctx, s, n.Name, byNode[n.Name].IP, question)
		if err != nil {
			err = ailing{n.Name, err}
		}
		return failures, err
	})
	return errors.Join(append([]error{err}, unreached(members, answers, owner)...)...)
}

// unreached says what the pods of the nodes could not reach. Of a way that is cut, the end that most of the cut ways share is ailing.
func unreached(nodes []config.Node, answers [][]string, owner map[string]string) (errs []error) {
	cut := map[string]int{}
	far := func(failure string) string { // the node that it names
		for ip, node := range owner {
			if strings.Contains(failure, net.JoinHostPort(ip, probePort)) {
				return node
			}
		}
		return ""
	}
	for i, n := range nodes {
		for _, failure := range answers[i] {
			cut[n.Name]++
			if to := far(failure); to != n.Name {
				cut[to]++
			}
		}
	}
	for i, n := range nodes {
		about := map[string][]string{}
		for _, failure := range answers[i] {
			at := n.Name
			switch to := far(failure); {
			case to == "" || to == n.Name || cut[to] < cut[at]:
			case cut[to] > cut[at]:
				at = to
			default: // it may be either end
				at = ""
			}
			about[at] = append(about[at], failure)
		}
		for _, at := range slices.Sorted(maps.Keys(about)) {
			err := fmt.Errorf("%s's pod cannot reach: %s", n.Name, strings.Join(about[at], "; "))
			if at != "" {
				err = ailing{at, err}
			}
			errs = append(errs, err)
		}
	}
	return errs
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
		return nil, fmt.Errorf("ask its probe: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	return kube.ProbeAnswer(resp.Body)
}
