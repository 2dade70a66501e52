package health

import (
	"cmp"
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

	"k8slab/config"
	"k8slab/lab/diagnose"
	"k8slab/lab/diagnose/fact"
	"k8slab/lab/etcd"
	"k8slab/lab/kube"
	"k8slab/lab/session"
)

// probe is the DaemonSet and Service of the pods that prove the pod network.
const (
	probeNamespace = "k8slab"
	probePort      = "8080"
	probeName      = "probe.k8slab.svc.cluster.local"
	probeService   = probeName + ":" + probePort
)

// conditions define a healthy cluster. Each depends on those before it, and Prove waits for them in this order. A cluster that labctl did not
// make has no probe, and its pod network and DNS may be anything.
func conditions(s *session.Session, c diagnose.Cluster) []diagnose.Condition {
	all := []diagnose.Condition{
		{Organ: "API server", Name: "API server ready", Check: c.Kube.Ready},
		{Organ: "etcd", Name: "every etcd member a started, healthy voter", Check: func(ctx context.Context) error { return etcdComplete(ctx, s, c) }},
		{Organ: "node", Name: "every node Ready", Check: func(ctx context.Context) error { return nodesReady(ctx, s, c) }},
	}
	if s.Cluster.OverSSH() {
		return append(all, []diagnose.Condition{
			{Organ: "pod network", Name: "kube-proxy running, if it is installed", Check: func(ctx context.Context) error {
				return installed(c.Kube.DaemonSetReady(ctx, "kube-system", "kube-proxy"))
			}},
			{Organ: "CoreDNS", Name: "CoreDNS running, if it is installed", Check: func(ctx context.Context) error {
				return installed(c.Kube.DeploymentReady(ctx, "kube-system", "coredns"))
			}},
		}...)
	}
	return append(all, []diagnose.Condition{
		{Organ: "pod network", Name: "pod network, kube-proxy and probe deployed", Check: func(ctx context.Context) error {
			return errors.Join(c.Kube.DaemonSetReady(ctx, FlannelNamespace, "flannel"), c.Kube.DaemonSetReady(ctx, "kube-system", "kube-proxy"),
				c.Kube.DaemonSetReady(ctx, probeNamespace, "probe"))
		}},
		{Organ: "CoreDNS", Name: "CoreDNS running", Check: func(ctx context.Context) error { return c.Kube.DeploymentReady(ctx, "kube-system", "coredns") }},
		{Organ: "pod network", Name: "pods reach pods and a Service by name across all nodes",
			Check: func(ctx context.Context) error { return podsReach(ctx, s, c) }},
	}...)
}

// installed is no error for what is not there.
func installed(err error) error {
	if kube.NotFound(err) {
		return nil
	}
	return err
}

// measure checks all conditions once, concurrently. On emulated machines it checks one after another: at once, every answer would come too
// late.
func measure(ctx context.Context, s *session.Session, c diagnose.Cluster) []fact.Organ {
	atOnce := -1
	if s.Emulated() {
		atOnce = 1
	}
	return diagnose.Measure(ctx, conditions(s, c), atOnce)
}

func etcdComplete(ctx context.Context, s *session.Session, c diagnose.Cluster) error {
	if err := c.Etcd.Healthy(ctx); err != nil {
		return err
	}
	members, err := c.Etcd.Members(ctx)
	if err != nil {
		return err
	}
	cps := s.Cluster.ControlPlanes()
	own := func(m etcd.Member) bool {
		return slices.ContainsFunc(cps, func(n config.Node) bool { return session.OwnsPeer(n, m) })
	}
	if s.Cluster.OverSSH() && !slices.ContainsFunc(members, own) { // etcd is not the control planes' own
		return nil
	}
	if want := len(cps); len(members) != want {
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
			errs = append(errs, diagnose.Ailing{Node: n.Name, Err: errors.New("no such Node")})
		case !k.Ready:
			errs = append(errs, diagnose.Ailing{Node: n.Name, Err: fmt.Errorf("not Ready: %s", k.Reason)})
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
			return diagnose.Ailing{Node: n.Name, Err: errors.New("its probe has no address yet")}
		}
		question.Add("target", net.JoinHostPort(p.IP, probePort))
		question.Add("pod", p.Name)
	}
	answers, err := session.FromEachNode(members, func(n config.Node) ([]string, error) {
		failures, err := askProbe(ctx, s, n.Name, byNode[n.Name].IP, question)
		if err != nil {
			err = diagnose.Ailing{Node: n.Name, Err: err}
		}
		return failures, err
	})
	return errors.Join(append([]error{err}, unreached(members, answers, byNode)...)...)
}

// unreached says what the pods of the nodes could not reach. Of a way that is cut, the end that most of the cut ways share is ailing.
func unreached(nodes []config.Node, answers [][]string, probes map[string]kube.Pod) (errs []error) {
	cut := map[string]int{}
	far := func(failure string) (named []string) { // the nodes whose probes it names
		for _, n := range nodes {
			p := probes[n.Name]
			if strings.Contains(failure, net.JoinHostPort(p.IP, probePort)) || strings.Contains(failure, p.Name) {
				named = append(named, n.Name)
			}
		}
		return named
	}
	for i, n := range nodes {
		for _, failure := range answers[i] {
			cut[n.Name]++
			for _, to := range far(failure) {
				if to != n.Name {
					cut[to]++
				}
			}
		}
	}
	for i, n := range nodes {
		about := map[diagnose.Ailing][]string{} // without their errors
		for _, failure := range answers[i] {
			at, ends := n.Name, far(failure)
			switch {
			case len(ends) == 0, len(ends) == 1 && (ends[0] == n.Name || cut[ends[0]] < cut[at]):
			case len(ends) == 1 && cut[ends[0]] > cut[at]:
				at = ends[0]
			default: // it may be any of them
				at = ""
			}
			what := diagnose.Ailing{Node: at}
			if strings.Contains(failure, "lookup "+probeName) {
				what.Organ = fact.OrganDNS
			}
			about[what] = append(about[what], failure)
		}
		for _, what := range slices.SortedFunc(maps.Keys(about), func(a, b diagnose.Ailing) int {
			return cmp.Compare(a.Node+" "+a.Organ, b.Node+" "+b.Organ)
		}) {
			failures := about[what]
			what.Err = fmt.Errorf("%s's pod cannot reach: %s", n.Name, strings.Join(failures, "; "))
			errs = append(errs, what)
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
