package upgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"k8slab/config"
	"k8slab/lab/health"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/session"
	"k8slab/lab/symptom"
)

// BlockedError is an upgrade that did not begin, because of what was found before it.
type BlockedError struct {
	Version  string
	Findings []symptom.Finding
}

func (e *BlockedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the cluster cannot be upgraded to %s as it is; nothing was changed:", e.Version)
	for _, f := range e.Findings {
		if f.Level == symptom.Fail {
			fmt.Fprintf(&b, "\n  %s%s: %s\n    %s", f.Symptom, on(f.Node), f.Evidence[0].Text, f.Hint)
		}
	}
	b.WriteString("\nnext: mend what is named, then labctl upgrade " + e.Version)
	return b.String()
}

func on(node string) string {
	if node == "" {
		return ""
	}
	return " on " + node
}

// found is a finding of what would stop the upgrade, or with Warn may.
func found(id symptom.ID, level symptom.Level, node, source, format string, args ...any) symptom.Finding {
	s, _ := symptom.Lookup(id)
	return symptom.Finding{
		Symptom: id, Level: level, Node: node, Meaning: s.Meaning, Hint: s.Hint,
		Evidence: []symptom.Evidence{{Source: source, Text: fmt.Sprintf(format, args...)}},
	}
}

// preflight looks for what would stop the upgrade half-way, or would break because of it. It changes nothing. An upgrade that has begun is
// not asked whether the cluster is healthy: the end of the upgrade may be what makes it so.
func (u *upgrade) preflight(ctx context.Context) ([]symptom.Finding, error) {
	checks := []func(context.Context) ([]symptom.Finding, error){u.skew, u.arguments, u.removedAPIs, u.budgets, u.room}
	if len(u.record.Done) == 0 {
		checks = append(checks, u.healthy)
	}
	all, errs := make([][]symptom.Finding, len(checks)), make([]error, len(checks))
	var wg sync.WaitGroup
	for i, check := range checks {
		wg.Go(func() { all[i], errs[i] = check(ctx) })
	}
	wg.Wait()
	findings := slices.Concat(all...)
	for i := range findings {
		if slices.Contains(u.options.Ignore, string(findings[i].Symptom)) {
			findings[i].Level = symptom.Warn
		}
	}
	slices.SortStableFunc(findings, func(a, b symptom.Finding) int { // failures first
		return cmp.Compare(a.Level, b.Level)
	})
	return findings, errors.Join(errs...)
}

// healthy is what a diagnosis finds.
func (u *upgrade) healthy(ctx context.Context) ([]symptom.Finding, error) {
	report, err := health.Diagnose(ctx, u.Session, health.DiagnoseOptions{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(report.Findings, func(f symptom.Finding) bool { return f.Level != symptom.Fail }), nil
}

// skew is about kubelets that the new API servers would not serve: at most three minor versions older, and none newer.
// https://kubernetes.io/releases/version-skew-policy
func (u *upgrade) skew(ctx context.Context) (all []symptom.Finding, err error) {
	nodes, err := u.Admin.Kube.Nodes(ctx)
	for _, n := range nodes {
		is, to := minor(n.KubeletVersion), minor(u.options.Version)
		switch {
		case is > to:
			all = append(all, found(symptom.VersionSkew, symptom.Fail, n.Name, "Node", "its kubelet is %s, newer than %s", n.KubeletVersion, u.options.Version))
		case is < to-3:
			all = append(all, found(symptom.VersionSkew, symptom.Fail, n.Name, "Node",
				"its kubelet is %s; an API server of %s serves kubelets of 1.%d and newer", n.KubeletVersion, u.options.Version, to-3))
		}
	}
	return all, err
}

// removedAPIs are those that somebody still asks for and the version does not serve. Each API server counts for itself. The diagnosis
// names one that does not answer.
func (u *upgrade) removedAPIs(ctx context.Context) (all []symptom.Finding, _ error) {
	apis, _ := session.FromEachNode(u.Cluster.ControlPlanes(), func(n config.Node) ([]kube.DeprecatedAPI, error) { return u.deprecatedAPIs(ctx, n) })
	asked := slices.Concat(apis...)
	slices.SortFunc(asked, func(a, b kube.DeprecatedAPI) int { return cmp.Compare(a.Resource, b.Resource) })
	for _, a := range slices.Compact(asked) {
		if a.Removed != "" && minor("v"+a.Removed+".0") <= minor(u.options.Version) {
			all = append(all, found(symptom.APIRemoved, symptom.Fail, "", "metric apiserver_requested_deprecated_apis",
				"somebody has asked for %s since the API server started, and Kubernetes %s no longer serves it", a.Resource, a.Removed))
		}
	}
	return all, nil
}

// deprecatedAPIs are those that the node's own API server was asked for.
func (u *upgrade) deprecatedAPIs(ctx context.Context, n config.Node) ([]kube.DeprecatedAPI, error) {
	server, err := u.OwnAPI(u.Admin.Config, n)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	return server.DeprecatedAPIs(ctx)
}

// budgets are those that keep a node from being drained: for ever, or until more pods are healthy.
func (u *upgrade) budgets(ctx context.Context) (all []symptom.Finding, err error) {
	blocked, err := u.Admin.Kube.BlockedEvictions(ctx)
	for _, b := range blocked {
		level, how := symptom.Warn, "now"
		if b.Never {
			level, how = symptom.Fail, "ever"
		}
		all = append(all, found(symptom.EvictionBlocked, level, "", "PodDisruptionBudget "+b.Name, "%s allows no eviction %s: %s", b.Name, how, b.Why))
	}
	return all, err
}

// neededMiB is the room that a node must have for the images and the programs of a version, and restMiB for what comes after them: etcd's data,
// which kubeadm copies, and what kubelet writes.
const (
	neededMiB = 2048
	restMiB   = 200
)

// room is about nodes whose disk would be full in the middle.
func (u *upgrade) room(ctx context.Context) ([]symptom.Finding, error) {
	return u.ofEach(u.Cluster.Members(), func(n config.Node) ([]symptom.Finding, error) {
		needs := map[string]int{"/": neededMiB, "/var/lib/containerd": neededMiB, "/var/lib/kubelet": restMiB, "/var/lib/etcd": restMiB, "/etc/kubernetes/tmp": restMiB}
		if u.done(stepPrograms + n.Name) {
			needs["/"], needs["/var/lib/containerd"] = restMiB, restMiB
		}
		df := []string{"sh", "-c", `df --output=file,avail --block-size=1M "$@" 2>/dev/null || true`, "sh"} // a worker has no directory of etcd
		out, err := u.Nodes[n.Name].Read(ctx, append(df, slices.Sorted(maps.Keys(needs))...)...)
		var short []string
		for line := range strings.Lines(out) {
			var file string
			var free int
			if _, unread := fmt.Sscan(line, &file, &free); unread == nil && free < needs[file] {
				short = append(short, fmt.Sprintf("%d MiB are free in %s, and the upgrade takes up to %d", free, file, needs[file]))
			}
		}
		if err != nil || len(short) == 0 {
			return nil, err
		}
		return []symptom.Finding{found(symptom.DiskFull, symptom.Fail, n.Name, "df", "%s", strings.Join(short, "; "))}, nil
	})
}

func (u *upgrade) ofEach(nodes []config.Node, look func(config.Node) ([]symptom.Finding, error)) ([]symptom.Finding, error) {
	all, err := session.FromEachNode(nodes, look)
	return slices.Concat(all...), err
}

// Where a node has the arguments of Kubernetes' programs.
const (
	manifests     = "/etc/kubernetes/manifests/"
	kubeletFlags  = "/var/lib/kubelet/kubeadm-flags.env"
	kubeletConfig = "/var/lib/kubelet/config.yaml"
)

var components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// arguments has the new programs read what a node starts the old ones with: flags and feature gates that are gone.
func (u *upgrade) arguments(ctx context.Context) ([]symptom.Finding, error) {
	return u.ofEach(u.Cluster.Members(), func(n config.Node) ([]symptom.Finding, error) {
		all, err := u.kubeletArguments(ctx, n)
		for _, program := range components {
			if err != nil || n.Role != config.ControlPlane {
				break
			}
			var f *symptom.Finding
			if f, err = u.componentArguments(ctx, n, program); f != nil {
				all = append(all, *f)
			}
		}
		return all, err
	})
}

// componentArguments is about a component of the control plane, nil if its new version takes what the manifest has.
func (u *upgrade) componentArguments(ctx context.Context, n config.Node, program string) (*symptom.Finding, error) {
	file := manifests + program + ".yaml"
	text, err := u.Nodes[n.Name].Read(ctx, "cat", file)
	if err != nil {
		return nil, err
	}
	pod, err := kube.ReadStaticPod([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", n.Name, file, err)
	}
	command := pod.Containers[0].Command
	complaint := u.image.CheckArguments(ctx, program, command[min(1, len(command)):]...)
	if complaint == nil {
		return nil, nil
	}
	f := found(symptom.FlagRemoved, symptom.Fail, n.Name, file, "%s of %s does not take it: %v", program, u.options.Version, complaint)
	return &f, nil
}

func (u *upgrade) kubeletArguments(ctx context.Context, n config.Node) (all []symptom.Finding, err error) {
	text, err := u.Nodes[n.Name].Read(ctx, "sh", "-c", `cat "$@" 2>/dev/null || true`, "sh", kubeletFlags, "/etc/default/kubelet", "/etc/sysconfig/kubelet")
	if err != nil {
		return nil, err
	}
	configuration, err := u.Nodes[n.Name].Read(ctx, "cat", kubeletConfig)
	if err != nil {
		return nil, err
	}
	var has struct {
		FeatureGates map[string]bool `json:"featureGates"`
	}
	if err := yaml.Unmarshal([]byte(configuration), &has); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", n.Name, kubeletConfig, err)
	}
	var gates []string
	for _, name := range slices.Sorted(maps.Keys(has.FeatureGates)) {
		gates = append(gates, fmt.Sprintf("%s=%v", name, has.FeatureGates[name]))
	}
	for source, argv := range map[string][]string{kubeletFlags: join.KubeletArguments(text), kubeletConfig: {"--feature-gates=" + strings.Join(gates, ",")}} {
		if complaint := u.image.CheckArguments(ctx, "kubelet", argv...); complaint != nil {
			all = append(all, found(symptom.KubeletFlagRemoved, symptom.Fail, n.Name, source, "kubelet of %s does not take it: %v", u.options.Version, complaint))
		}
	}
	return all, nil
}
