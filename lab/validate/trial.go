package validate

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"k8slab/lab/kube"
	"k8slab/lab/wait"
)

const (
	probeName = "probe" // of the Service
	// startBudget bounds the start of test pods, with a pull of their image.
	startBudget = time.Minute
	// settleBudget is how long routes may take to work once the pods are ready: until kube-proxy and CoreDNS know the Service.
	settleBudget = 15 * time.Second
	settlePace   = time.Second
	// askTimeout bounds one question through the API server; the pod itself gives up after 3 s.
	askTimeout = 10 * time.Second
	// mostAsked bounds the questions at one time.
	mostAsked = 16
)

// way is how a pod reaches others.
type way struct {
	id    string
	holds string // the check's name
	next  string
}

var ways = []way{
	{"pod", "pods reach pods of other Nodes", "see that the pod network's own traffic passes between the Nodes (VXLAN is UDP 8472 or 4789), and that its agent has a route to each"},
	{"service", "pods reach a Service's cluster address", "read kube-proxy's log on the Node: kubectl -n kube-system logs -l k8s-app=kube-proxy"},
	{"node-port", "pods reach a NodePort of each Node", "open the Nodes' ports 30000-32767 to each other, and read kube-proxy's log on the Node that does not answer"},
	{"name", "pods find a Service by its name", "look at CoreDNS and at the way there (UDP and TCP 53): kubectl -n kube-system logs -l k8s-app=kube-dns"},
}

// route is one way to try: from the pod on a Node to a HOST:PORT.
type route struct {
	way      string // an id of ways
	from, to string // Nodes; to is "" where any pod may answer
	target   string
	failure  string // what was seen last, "" when it worked
}

func (r *route) String() string {
	to := r.target
	if r.to != "" {
		to = fmt.Sprintf("%s (%s)", r.to, r.target)
	}
	return fmt.Sprintf("from %s to %s: %s", r.from, to, r.failure)
}

// trial is the result of the test pods.
type trial struct {
	skipped string // why nothing was tried
	failed  bool   // test pods could not be used
	node    string // that it was about, "" for all
	pods    map[string]*corev1.Pod
	bad     map[string]string // Node → why its pod did not start
	left    []string          // Nodes that are not Ready, and so were left out
	routes  []*route
	removed error // what went wrong with the test pods' removal
}

// try puts a test pod on each Node and has them reach each other.
func (c *Cluster) try(ctx context.Context, node string) (t trial, err error) {
	t.node = node
	if c.Image == "" {
		t.skipped = "not tried: no image of labnode for test pods is known"
		return t, nil
	}
	if _, err := c.tested(ctx, node); err != nil {
		return t, err
	}
	nodes, err := c.nodes(ctx)
	if err != nil {
		return t, err
	}
	var ready []corev1.Node
	for _, n := range nodes {
		switch err := kube.NodeReady(&n); {
		case err == nil:
			ready = append(ready, n)
		case n.Name == node:
			return t, err
		default:
			t.left = append(t.left, n.Name)
		}
	}
	err, t.removed = c.inNamespace(ctx, func(namespace string) error {
		service, err := c.probeService(ctx, namespace)
		if err != nil {
			return err
		}
		var pods []*corev1.Pod
		token := rand.Text()
		for _, n := range ready {
			pods = append(pods, c.probePod(n.Name, token))
		}
		if t.pods, t.bad, err = c.startPods(ctx, namespace, c.patient(startBudget), pods, kube.PodReady); err != nil {
			return err
		}
		t.routes = routes(node, ready, t.pods, service)
		return c.ask(ctx, namespace, token, t.routes)
	})
	return t, err
}

// probePod has its Node's name, which is a DNS subdomain as a pod's name is.
func (c *Cluster) probePod(node, token string) *corev1.Pod {
	p := c.testPod(node, node)
	p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: kube.ProbeTokenVariable, Value: token}}
	p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: kube.ProbePort}}
	p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		PeriodSeconds: 1, FailureThreshold: 3,
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(kube.ProbePort)}},
	}
	return p
}

// probeService is made before the pods: if its name were asked for too early, the negative answer might be cached.
func (c *Cluster) probeService(ctx context.Context, namespace string) (*corev1.Service, error) {
	services := c.Kube.CoreV1().Services(namespace)
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: probeName, Namespace: namespace}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": "probe"}, Ports: []corev1.ServicePort{{Port: kube.ProbePort}},
	}}
	made, err := services.Create(ctx, s, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		made, err = services.Get(ctx, s.Name, metav1.GetOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("create test service: %w", err)
	}
	return made, nil
}

// routes are the ways between the named Node and the others, or between all.
func routes(node string, nodes []corev1.Node, pods map[string]*corev1.Pod, s *corev1.Service) (all []*route) {
	add := func(way, from, to, host string, port int32) {
		all = append(all, &route{way: way, from: from, to: to, target: net.JoinHostPort(host, strconv.Itoa(int(port)))})
	}
	for _, from := range slices.Sorted(maps.Keys(pods)) {
		if node == "" || from == node {
			add("service", from, "", s.Spec.ClusterIP, kube.ProbePort)
			add("name", from, "", s.Name+"."+s.Namespace+".svc", kube.ProbePort)
		}
		for _, n := range nodes {
			if node != "" && from != node && n.Name != node {
				continue
			}
			if to := pods[n.Name]; to != nil && n.Name != from {
				add("pod", from, n.Name, to.Status.PodIP, kube.ProbePort)
			}
			if host := address(&n); host != "" {
				add("node-port", from, n.Name, host, s.Spec.Ports[0].NodePort)
			}
		}
	}
	return all
}

// ask has the pods try their routes until all work or the time to settle is over.
func (c *Cluster) ask(ctx context.Context, namespace, token string, routes []*route) error {
	open := routes
	err := wait.For(ctx, "routes", c.patient(settleBudget), settlePace, func(ctx context.Context) error {
		var group errgroup.Group
		group.SetLimit(mostAsked)
		for _, r := range open {
			group.Go(func() error {
				r.failure = c.askOne(ctx, namespace, token, r)
				return nil
			})
		}
		_ = group.Wait()
		open = slices.DeleteFunc(slices.Clone(open), func(r *route) bool { return r.failure == "" })
		if len(open) > 0 {
			return errors.New(open[0].failure)
		}
		return nil
	})
	if err != nil && ctx.Err() != nil {
		return err
	}
	return nil // what failed is in the routes
}

// askOne has the pod of the route's Node reach its target. The answer is a list of failures.
func (c *Cluster) askOne(ctx context.Context, namespace, token string, r *route) string {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	pods := c.Kube.CoreV1().Pods(namespace)
	body, err := pods.ProxyGet("http", r.from, strconv.Itoa(kube.ProbePort), kube.ProbePath, map[string]string{"target": r.target, "token": token}).DoRaw(ctx)
	if err != nil {
		return fmt.Sprintf("the API server cannot ask the pod on %s: %v", r.from, err)
	}
	failures, err := kube.ProbeAnswer(bytes.NewReader(body))
	if err != nil {
		return fmt.Sprintf("the pod on %s answered %.100q: is %s an image of labnode?", r.from, body, c.Image)
	}
	return strings.Join(failures, "; ")
}

// startNext is the next step where there is nobody to try a route.
const startNext = "first fix what keeps test pods from starting"

// started is the finding about the test pods themselves.
func (t trial) started() Finding {
	if t.skipped != "" {
		return warn(imageNext, "%s", t.skipped)
	}
	var all tally
	for _, node := range slices.Sorted(maps.Keys(t.bad)) {
		all.faults = append(all.faults, node+": "+t.bad[node])
	}
	if t.removed != nil {
		all.warnings = append(all.warnings, t.removed.Error())
	}
	all.good = []string{"ready on " + strings.Join(slices.Sorted(maps.Keys(t.pods)), ", ") + t.without()}
	return all.finding("look at the pod's last event and the kubelet's journal on its Node; if the image is missing, " + imageNext)
}

// without says which Nodes were not tried.
func (t trial) without() string {
	if len(t.left) == 0 {
		return ""
	}
	return fmt.Sprintf("; without %s, not Ready", strings.Join(t.left, ", "))
}

// finding is the result of all routes of one way.
func (t trial) finding(w way) Finding {
	if t.skipped != "" {
		return warn(imageNext, "%s", t.skipped)
	}
	if t.failed || t.bad[t.node] != "" {
		return fail(startNext, "not tried: no test pod runs on %s", where(t.node))
	}
	var all tally
	tried := 0
	for _, r := range t.routes {
		if r.way != w.id {
			continue
		}
		tried++
		if r.failure != "" {
			all.faults = append(all.faults, r.String())
		}
	}
	switch {
	case tried == 0 && len(t.bad) > 0:
		return fail(startNext, "not tried: too few test pods run")
	case tried == 0:
		return absent("there is one Node that is Ready, and no other to reach%s", t.without())
	}
	all.good = []string{fmt.Sprintf("all %d ways work%s", tried, t.without())}
	return all.finding(w.next)
}
