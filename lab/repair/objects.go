package repair

import (
	"context"
	"slices"
	"strings"

	"k8slab/lab/session"
	"k8slab/lab/symptom"
)

// addon is one of kubeadm's.
type addon struct {
	name string
	// cause that a wrong object is found as
	cause symptom.ID
	// free are the paths that an administrator may set, as long as it works
	free []string
	// workload reads the ConfigMap when it starts, "" when it notices a change
	workload string
}

var (
	kubeProxy = addon{"kube-proxy", symptom.KubeProxyCrash, []string{"data.config.conf"}, "daemonset/kube-proxy"}
	coreDNS   = addon{"coredns", symptom.DNSResolutionFailure, []string{"spec.replicas", "data.Corefile"}, ""}
)

// objects restores the objects that kubeadm made in the cluster and that somebody deleted or edited: its add-ons, and what joins need. It
// looks only where something fails or could not join, so that a healthy cluster keeps what its administrator set.
func (r *repairRun) objects(ctx context.Context) error {
	if !r.looked {
		if err := r.documents(ctx); err != nil {
			return err
		}
	}
	if len(failures(r.before, nil)) == 0 {
		return nil
	}
	for _, a := range []addon{kubeProxy, coreDNS} {
		if err := r.addon(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// addon restores the objects of one of kubeadm's add-ons.
func (r *repairRun) addon(ctx context.Context, a addon) error {
	manifest, err := r.kubeadm(ctx, r.Admin.From, true, "init", "phase", "addon", a.name, "--print-manifest")
	if err != nil {
		return err
	}
	free := a.free
	if r.isWrong(a.name) || !r.addonRuns(ctx, a) {
		free = nil
	}
	lacking, err := r.Admin.Kube.Lacking(ctx, []byte(manifest), free...)
	if err != nil || len(lacking) == 0 {
		return err
	}
	if !r.DryRun {
		err = r.apply(ctx, a, manifest, r.isWrong(a.name)) // its pods have started with what was there
	}
	r.repaired(Repaired{Symptom: string(a.cause), Evidence: a.name + " is not as kubeadm makes it: " + strings.Join(lacking, ", ")},
		"apply kubeadm's manifest", "applied kubeadm's manifest")
	return err
}

// apply gives an add-on its objects, and with restart has its pods read them.
func (r *repairRun) apply(ctx context.Context, a addon, manifest string, restart bool) error {
	err := r.Admin.Kube.Apply(ctx, []byte(manifest))
	if err == nil && restart && a.workload != "" {
		err = session.Do(ctx, r.Nodes[r.Admin.From.Name], "kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "--namespace", "kube-system",
			"rollout", "restart", a.workload)
	}
	return err
}

// addonRuns tells whether nothing is known to be wrong with the add-on.
func (r *repairRun) addonRuns(ctx context.Context, a addon) bool {
	if a.cause == symptom.DNSResolutionFailure {
		return r.dnsRuns(ctx)
	}
	return !slices.ContainsFunc(r.before, func(f symptom.Finding) bool { return f.Symptom == a.cause && f.Level == symptom.Fail })
}

// dnsRuns tells whether CoreDNS has pods that are ready.
func (r *repairRun) dnsRuns(ctx context.Context) bool {
	ready, want, err := r.Admin.Kube.Deployment(ctx, "kube-system", "coredns")
	return err == nil && want > 0 && ready == want
}
