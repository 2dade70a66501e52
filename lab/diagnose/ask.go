package diagnose

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/etcd"
	"k8slab/lab/kube"
)

// ownNamespaces have the pods that a cluster is made of, and the lab's probe.
var ownNamespaces = []string{"kube-system", "kube-flannel", "k8slab", "calico-system", "calico-apiserver", "tigera-operator", "cilium"}

// ownDaemonSets are those without which pods of a lab have no network.
var ownDaemonSets = [][2]string{{"kube-flannel", "flannel"}, kubeProxy}

var kubeProxy = [2]string{"kube-system", "kube-proxy"}

// newestEvents is how many warnings are kept.
const newestEvents = 200

// askAPI asks the API server everything at once. Without want nothing is known of what the cluster must have. In one that labctl did not make
// less must be there, and more may be meant.
func askAPI(ctx context.Context, k *kube.Client, want *kube.Want, existing bool, out *fact.API) {
	if err := k.Answers(ctx); err != nil {
		out.Error = errorText(err)
		return
	}
	out.DaemonSets, out.Errors = map[string]fact.DaemonSet{}, map[string]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	ask := func(what string, question func() error) {
		wg.Go(func() {
			if err := question(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				out.Errors[what] = errorText(err)
			}
		})
	}
	ask("readiness", func() error { out.Ready = errorText(k.Ready(ctx)); return nil })
	ask("nodes", func() (err error) {
		if out.Nodes, err = k.Nodes(ctx); kube.Denied(err) {
			out.Denied = errorText(err)
		}
		return err
	})
	ask("certificate requests", func() (err error) { out.CSRs, err = k.CSRs(ctx); return err })
	ask("leases", func() (err error) { out.Leases, err = k.LeaseRenewals(ctx); return err })
	ask("bootstrap tokens", func() (err error) { out.Tokens, err = k.TokenLives(ctx); return err })
	ask("events", func() (err error) { out.Events, err = k.Warnings(ctx, newestEvents); return err })
	ask("admission", func() error { return askAdmission(ctx, k, out) })
	out.Leaders = map[string]fact.Leader{}
	for _, component := range []string{kube.ControllerManager, kube.Scheduler} {
		ask("leaders", func() error {
			holder, renewed, err := k.Leader(ctx, component)
			mu.Lock()
			defer mu.Unlock()
			out.Leaders[component] = fact.Leader{Holder: holder, Renewed: renewed}
			return err
		})
	}
	ask("pods", func() error {
		pods, err := k.Pods(ctx, "", "")
		out.Pods, out.Servers = pods, map[string]string{}
		for _, p := range pods {
			if p.Namespace == "kube-system" && p.Name == "kube-apiserver-"+p.Node {
				out.Servers[p.Node] = p.Version
			}
		}
		return err
	})
	if want != nil {
		ask("what joins need", func() (err error) { out.Needs, err = k.MissingForJoins(ctx); return err })
		ask("rights", func() (err error) { out.Rights, err = k.LostRights(ctx); return err })
		ask("documents", func() (err error) { out.Documents, err = k.WrongDocuments(ctx, *want); return err })
		daemonSets := ownDaemonSets
		if existing {
			daemonSets = [][2]string{kubeProxy} // its pod network is anybody's
		}
		for _, name := range daemonSets {
			wg.Go(func() {
				ready, want, err := k.DaemonSet(ctx, name[0], name[1])
				mu.Lock()
				defer mu.Unlock()
				out.DaemonSets[name[0]+"/"+name[1]] = fact.DaemonSet{Ready: ready, Want: want, Missing: kube.NotFound(err), Error: errorText(err)}
			})
		}
	}
	wg.Wait()
	if want == nil || existing {
		allow(out)
	}
	if existing {
		withoutChosen(out)
	}
	out.Pods = worthKeeping(out.Pods, out.Nodes)
}

// allow leaves out what may be meant in a cluster that somebody else runs: policies that refuse what is tried here, users' own networks, and
// pods that have failed, which their controllers have replaced.
func allow(out *fact.API) {
	out.Rejections = slices.DeleteFunc(out.Rejections, func(r kube.Rejection) bool { return !r.Silent })
	out.Pods = slices.DeleteFunc(out.Pods, func(p kube.Pod) bool { return !Own(p) || p.Phase == "Failed" })
}

// withoutChosen leaves out kube-proxy and CoreDNS where somebody runs the cluster without them: both the document and what it is for are
// not there.
func withoutChosen(out *fact.API) {
	lacks := func(name string) bool {
		return slices.ContainsFunc(out.Documents, func(d kube.WrongDocument) bool { return d.Name == name && d.Missing })
	}
	proxy := kubeProxy[0] + "/" + kubeProxy[1]
	chosen := map[string]bool{
		"kube-proxy": lacks("kube-proxy") && out.DaemonSets[proxy].Missing,
		"coredns": lacks("coredns") && !slices.ContainsFunc(out.Pods, func(p kube.Pod) bool {
			return p.Namespace == "kube-system" && strings.HasPrefix(p.Name, "coredns-")
		}),
	}
	if chosen["kube-proxy"] {
		delete(out.DaemonSets, proxy)
	}
	out.Documents = slices.DeleteFunc(out.Documents, func(d kube.WrongDocument) bool { return d.Missing && chosen[d.Name] })
	out.Rights = slices.DeleteFunc(out.Rights, func(r kube.LostRight) bool { return chosen[r.Addon] })
}

// strangeNode is the name of a Node that no cluster has: for the dry run of a registration.
const strangeNode = "k8slab-dry-run"

// askAdmission asks with dry runs what admission rejects. A webhook that takes no dry runs proves nothing.
func askAdmission(ctx context.Context, k *kube.Client, out *fact.API) error {
	node, nodeErr := k.RejectsNode(ctx, strangeNode)
	pod, podErr := k.RejectsPod(ctx, "none")
	for _, r := range []*kube.Rejection{node, pod} {
		if r != nil {
			out.Rejections = append(out.Rejections, *r)
		}
	}
	return errors.Join(nodeErr, podErr)
}

// worthKeeping are the pods that say anything about the cluster, and some of those that wait for an image.
func worthKeeping(pods []kube.Pod, nodes []kube.Node) []kube.Pod {
	waiting := 0
	return slices.DeleteFunc(pods, func(p kube.Pod) bool {
		switch {
		case telling(p, nodes):
			return false
		case len(p.Missing) == 0:
			return true
		}
		waiting++
		return waiting > mostWaiting
	})
}

// mostWaiting is how many users' pods without an image are kept.
const mostWaiting = 100

// telling reports whether a pod says anything about the cluster: one of its own that is not ready, or one whose address is of no network of
// its node.
func telling(p kube.Pod, nodes []kube.Node) bool {
	unready := !p.Ready && p.Phase != "Succeeded" && Own(p)
	return unready || slices.ContainsFunc(nodes, p.Misaddressed)
}

// Own reports whether the pod is one of those that the cluster is made of, or the lab's probe.
func Own(p kube.Pod) bool { return slices.Contains(ownNamespaces, p.Namespace) }

// learnerPause is the time between the two looks that tell how fast a learner catches up.
const learnerPause = time.Second

// askEtcd asks etcd of its members, and learners twice.
func askEtcd(ctx context.Context, e *etcd.Client, out *fact.Etcd) {
	// A list by quorum fails only at its time-out, so the list that one member remembers is fetched at the same time.
	var early, local etcd.Sample
	var err, localErr error
	var wg sync.WaitGroup
	wg.Go(func() { early, err = sampled(ctx, e.Status) })
	wg.Go(func() { local, localErr = sampled(ctx, e.LocalStatus) })
	wg.Wait()
	late := early
	switch {
	case err != nil && localErr != nil:
		out.Error = errorText(err)
		return
	case err != nil:
		out.Quorum, early, late = errorText(err), local, local
	case slices.ContainsFunc(early.Statuses, func(s etcd.Status) bool { return s.Member.Learner && s.Healthy }):
		select {
		case <-ctx.Done():
		case <-time.After(learnerPause):
			if again, err := sampled(ctx, e.Status); err == nil {
				late = again
			}
		}
	}
	progress := map[uint64]etcd.Progress{}
	for _, p := range etcd.Learners(early, late) {
		progress[p.Member.ID] = p
	}
	for _, s := range late.Statuses {
		p := progress[s.Member.ID]
		out.Members = append(out.Members, fact.Member{
			ID: s.Member.ID, Name: s.Member.Name, PeerURLs: s.Member.PeerURLs, ClientURLs: s.Member.ClientURLs, Learner: s.Member.Learner,
			Started: s.Member.Started, State: s.State, Healthy: s.Healthy, Leader: s.Leader, LeaderID: s.LeaderID, RaftIndex: s.RaftIndex, Rate: p.Rate,
			Ready: p.Ready(), DBSize: s.DBSize, Version: s.Version, Alarms: s.Alarms, Error: errorText(s.Err),
		})
	}
}

func sampled(ctx context.Context, look func(context.Context) ([]etcd.Status, error)) (etcd.Sample, error) {
	statuses, err := look(ctx)
	return etcd.Sample{At: time.Now(), Statuses: statuses}, err
}
