package bringup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"k8slab/config"
	"k8slab/lab/cluster"
	"k8slab/lab/join"
	"k8slab/lab/session"
)

// examine reads what every machine is, and refuses those that nobody but a person can judge. Where a control plane has joined and a machine
// does not answer, there is nothing to form: the proof says so.
func examine(ctx context.Context, s *session.Session, network PodNetwork) (*Forming, error) {
	f := &Forming{Session: s, network: network}
	members := s.Cluster.Members()
	var silent error
	f.facts, silent = s.Facts(ctx, members)
	joined := slices.DeleteFunc(slices.Clone(members), func(n config.Node) bool { return !f.facts[n.Name].Joined })
	f.exists = slices.ContainsFunc(joined, func(n config.Node) bool { return n.Role == config.ControlPlane })
	switch {
	case silent != nil && f.exists:
		return f, nil
	case silent != nil:
		return nil, fmt.Errorf("no control plane that answers is in a cluster, and not every machine answers: %w\n"+
			"labctl up forms a cluster only when all of them do, so that it never makes a second one beside a cluster that is there", silent)
	case !f.exists && len(joined) > 0:
		return nil, fmt.Errorf("%s: it is in a cluster already, and no control plane of cluster.yaml is; "+
			"next: correct cluster.yaml, or run kubeadm reset there", joined[0].Name)
	case !f.exists && s.Cluster.Kubernetes.Version == "":
		return nil, errors.New("cluster.yaml does not say which Kubernetes the new cluster is to have; next: add kubernetes.version")
	case !f.exists && s.Cluster.Network.Endpoint == "" && s.Cluster.Network.VirtualIP.IsValid():
		return nil, fmt.Errorf("network.virtual_ip: labctl sets up no virtual IP on machines that exist; next: have keepalived, kube-vip or a "+
			"load balancer bring %s to port 6443 of the control planes, and write network.endpoint: %[1]s:6443", s.Cluster.Network.VirtualIP)
	}
	if err := cluster.New(s, f.facts, nil).OneCluster(joined); err != nil {
		return nil, err
	}
	for _, n := range members {
		is := f.facts[n.Name]
		if is.Joined {
			continue
		}
		if is.Dirty && !is.Begun && !is.Running() {
			return nil, fmt.Errorf("%s: it has files of a kubeadm that labctl did not run, such as /etc/kubernetes/kubelet.conf or /var/lib/etcd, "+
				"and is in no cluster; next: see whether they are of use to anybody, and run kubeadm reset there", n.Name)
		}
		f.outside = append(f.outside, n)
	}
	return f, nil
}

// preflight is what labnode is asked of a machine that is to join or to be initialised.
func (f *Forming) preflight(n config.Node) []string {
	argv := []string{"preflight", "--node-name", n.Name}
	if n.Role == config.ControlPlane {
		argv = append(argv, "--control-plane")
	}
	if ignored := f.Cluster.Kubernetes.IgnorePreflightErrors; len(ignored) > 0 {
		argv = append(argv, "--ignore-preflight-errors", strings.Join(ignored, ","))
	}
	return argv
}

// check says what of the machines is in the way, all of it at once, and what will be repaired on each.
func (f *Forming) check(ctx context.Context) (repairs []string, err error) {
	step := f.Events.Start("", "machines", session.RepairBudget)
	found, err := session.FromEachNode(f.outside, func(n config.Node) (repairs []string, err error) {
		if f.facts[n.Name].Running() {
			return nil, nil // what kubeadm has done so far would only be in the way
		}
		checks, err := f.Checked(ctx, n.Name, session.RepairBudget, f.preflight(n)...)
		if err != nil {
			return nil, err
		}
		errs := []error{f.programs(n), f.resolves(ctx, n)}
		for _, c := range checks {
			switch c.Result {
			case join.Blocked:
				errs = append(errs, fmt.Errorf("%s: %s: %s; next: %s", n.Name, c.ID, c.Evidence, c.Hint))
			case join.Fixable:
				repairs = append(repairs, fmt.Sprintf("repair on %s: %s: %s", n.Name, c.ID, c.Evidence))
			}
		}
		return repairs, errors.Join(errs...)
	})
	if err != nil {
		err = fmt.Errorf("%w\nnothing was changed", err)
	}
	return slices.Concat(found...), step.End(err)
}

// programs refuses another minor version of kubeadm or kubelet than cluster.yaml has. One that is not installed the checks find.
func (f *Forming) programs(n config.Node) error {
	want := semver.MajorMinor(f.Cluster.Kubernetes.Version)
	if want == "" { // of a cluster that exists, cluster.yaml need not say it
		return nil
	}
	is := f.facts[n.Name]
	for program, text := range map[string]string{"kubeadm": is.KubeadmVersion, "kubelet": is.KubeletVersion} {
		if got := semver.MajorMinor(text); got != "" && got != want {
			return fmt.Errorf("%s: %s is %s, and cluster.yaml has Kubernetes %s; labctl installs nothing: next: install it there, or change kubernetes.version",
				n.Name, program, text, f.Cluster.Kubernetes.Version)
		}
	}
	return nil
}

// resolves refuses a machine that does not know the name of the API.
func (f *Forming) resolves(ctx context.Context, n config.Node) error {
	host, _, err := net.SplitHostPort(f.Endpoint())
	if _, notAddress := netip.ParseAddr(host); err != nil || notAddress == nil {
		return err
	}
	if _, err := f.Nodes[n.Name].Read(ctx, "getent", "ahostsv4", host); err != nil {
		return fmt.Errorf("%s: it does not know the name %s of network.endpoint; next: add it to the name servers or to /etc/hosts there", n.Name, host)
	}
	return nil
}

// describe lists the steps in their order.
func (f *Forming) describe(repairs []string) {
	f.Steps = append(f.Steps, repairs...)
	cps := f.Cluster.ControlPlanes()
	if !f.exists {
		first := cps[0]
		action := "initialise the cluster on " + first.Name + ": Kubernetes " + f.Cluster.Kubernetes.Version + ", API at " + f.Endpoint() + " (kubeadm init)"
		switch is := f.facts[first.Name]; {
		case is.Running():
			action = "follow the kubeadm that runs on " + first.Name + ", and then " + action
		case is.Dirty:
			f.Steps = append(f.Steps, "remove from "+first.Name+" what labctl's earlier kubeadm left (kubeadm reset)")
		}
		f.Steps = append(f.Steps, action)
		if cluster.FixedConntrack(f.facts) {
			f.Steps = append(f.Steps, "tell kube-proxy to use nftables, and not to set how many connections are tracked, which containers may not (mode, conntrack.maxPerCore)")
		}
		if f.Cluster.Network.Endpoint == "" && len(cps) > 1 {
			f.Steps = append(f.Steps, "warning: without network.endpoint the API has only the address of "+first.Name+", and is gone with it")
		}
	}
	switch {
	case len(f.network.Manifest) > 0:
		f.Steps = append(f.Steps, "apply the pod network of "+f.network.File+" (kubectl apply)")
	case !f.exists:
		f.Steps = append(f.Steps, "wait for a pod network: without --pod-network, up ends here unless the machines have one")
	}
	for _, n := range f.outside {
		if f.exists || n.Name != cps[0].Name {
			f.Steps = append(f.Steps, "join "+n.Name+" as "+strings.ReplaceAll(string(n.Role), "-", " ")+" (kubeadm join)")
		}
	}
	f.Steps = append(f.Steps, "prove the cluster healthy. Nothing is installed on a machine")
}
