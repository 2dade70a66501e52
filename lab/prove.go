package lab

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
	"k8slab/lab/wait"
)

// proofBudget bounds the time from the last join to a proven cluster. Emulated virtual machines pull everything through one kernel thread.
const proofBudget = 6 * time.Minute

// probe is the DaemonSet and Service of the pods that prove the pod network.
const (
	probeNamespace = "k8slab"
	probePort      = "8080"
	probeService   = "probe.k8slab.svc.cluster.local:" + probePort
)

// condition is one thing that holds in a healthy cluster.
type condition struct {
	name  string
	check func(context.Context) error
}

// conditions are what healthy means, in the order in which they depend on each other. A later one is not judged before the earlier hold.
func (l *Lab) conditions(v *view) []condition {
	return []condition{
		{"API server ready", v.kube.Ready},
		{"every etcd member a started, healthy voter", func(ctx context.Context) error { return l.etcdComplete(ctx, v) }},
		{"every node Ready", func(ctx context.Context) error { return l.nodesReady(ctx, v) }},
		{"pod network and probe deployed", func(ctx context.Context) error {
			return errors.Join(v.kube.DaemonSetReady(ctx, flannelNamespace, "flannel"), v.kube.DaemonSetReady(ctx, probeNamespace, "probe"))
		}},
		{"CoreDNS running", func(ctx context.Context) error { return v.kube.DeploymentReady(ctx, "kube-system", "coredns") }},
		{"pods reach pods and a Service by name across all nodes", func(ctx context.Context) error { return l.podsReach(ctx, v) }},
	}
}

// prove waits until every condition holds.
func (l *Lab) prove(ctx context.Context, v *view) error {
	step := l.events.Start("", "proof", proofBudget)
	return step.End(l.await(ctx, v, step))
}

func (l *Lab) await(ctx context.Context, v *view, step *event.Step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, proofBudget, fmt.Errorf("the proof's %s budget ran out", proofBudget))
	defer cancel()
	for _, c := range l.conditions(v) {
		step.Progress("%s", c.name)
		if err := wait.For(ctx, c.name, proofBudget, l.pace(), telling(step, c.check)); err != nil {
			return err
		}
	}
	// Each held at some moment; healthy is when all do at the same time.
	return wait.For(ctx, "everything at once", proofBudget, l.pace(), telling(step, func(ctx context.Context) error {
		return errors.Join(l.healthy(ctx, v)...)
	}))
}

// telling has the step say why the check has not succeeded yet.
func telling(step *event.Step, check func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := check(ctx)
		if err != nil {
			step.Waiting(err)
		}
		return err
	}
}

// healthy checks every condition once, at the same time, and returns all that do not hold. Emulated machines are asked one thing after
// another: all at once, each answer would come too late.
func (l *Lab) healthy(ctx context.Context, v *view) []error {
	conditions := l.conditions(v)
	errs := make([]error, len(conditions))
	var g errgroup.Group
	if l.emulated() {
		g.SetLimit(1)
	}
	for i, c := range conditions {
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

func (l *Lab) etcdComplete(ctx context.Context, v *view) error {
	if err := v.etcd.Healthy(ctx); err != nil {
		return err
	}
	members, err := v.etcd.Members(ctx)
	if err != nil {
		return err
	}
	if want := len(l.cluster.ControlPlanes()); len(members) != want {
		return fmt.Errorf("etcd has %d members, cluster.yaml has %d control planes", len(members), want)
	}
	return nil
}

func (l *Lab) nodesReady(ctx context.Context, v *view) error {
	nodes, err := v.kube.Nodes(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range l.cluster.Members() {
		i := slices.IndexFunc(nodes, func(k kube.Node) bool { return k.Name == n.Name })
		switch {
		case i < 0:
			errs = append(errs, fmt.Errorf("%s: no such Node", n.Name))
		case !nodes[i].Ready:
			errs = append(errs, fmt.Errorf("%s: not Ready: %s", n.Name, nodes[i].Reason))
		}
	}
	return errors.Join(errs...)
}

// podsReach has the probe of each node reach every other node's, the Service by its DNS name and each of them by way of the Service, all at
// once. A kube-proxy whose connection broke without a word, as those to a virtual address do that has moved, hears of nothing for half a
// minute: it sends one connection in five to where a pod was.
func (l *Lab) podsReach(ctx context.Context, v *view) error {
	pods, err := v.kube.Pods(ctx, probeNamespace, "app=probe")
	if err != nil {
		return err
	}
	service, err := v.kube.Service(ctx, probeNamespace, "probe")
	if err != nil {
		return err
	}
	question := url.Values{"token": {l.probeToken()}, "target": {probeService}, "service": {net.JoinHostPort(service, probePort)}}
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
	members := l.cluster.Members()
	for _, n := range members {
		p, known := byNode[n.Name]
		if !known {
			return fmt.Errorf("%s: its probe has no address yet", n.Name)
		}
		question.Add("target", net.JoinHostPort(p.IP, probePort))
		question.Add("pod", p.Name)
	}
	return together(members, func(n config.Node) error {
		failures, err := l.askProbe(ctx, n.Name, byNode[n.Name].IP, question)
		if err == nil && len(failures) > 0 {
			err = fmt.Errorf("%s: its pod cannot reach: %s", n.Name, strings.Join(failures, "; "))
		}
		return err
	})
}

// askProbe asks the probe at the address, through its node, what of the question it cannot reach.
func (l *Lab) askProbe(ctx context.Context, node, ip string, question url.Values) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: l.nodes[node].Dial}}
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
