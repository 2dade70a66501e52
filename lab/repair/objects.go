package repair

import (
	"context"
	_ "embed"
	"strings"

	"k8slab/lab/health"
	"k8slab/lab/kube"
	"k8slab/lab/session"
	"k8slab/lab/symptom"
)

// known are the objects that kubeadm's phases for joins make.
//
//go:embed objects.yaml
var known []byte

// objects restores the objects that kubeadm made in the cluster and that somebody deleted or edited: its add-ons, and what joins need. It
// looks only where something fails or could not join, so that a healthy cluster keeps what its administrator set.
func (r *repairRun) objects(ctx context.Context) error {
	if err := r.joinObjects(ctx); err != nil {
		return err
	}
	if len(failures(r.before, nil)) == 0 && len(health.Healthy(ctx, r.Session, r.Admin)) == 0 {
		return nil
	}
	for _, a := range []struct {
		name   string
		cause  symptom.ID
		except []string // what an administrator may set
	}{
		{"kube-proxy", symptom.KubeProxyCrash, nil},
		{"coredns", symptom.DNSResolutionFailure, []string{"spec.replicas", "data.Corefile"}},
	} {
		manifest, err := r.kubeadm(ctx, r.Admin.From, true, "init", "phase", "addon", a.name, "--print-manifest")
		if err != nil {
			return err
		}
		if a.name == "coredns" && !r.dnsRuns(ctx) {
			a.except = nil
		}
		lacking, err := r.Admin.Kube.Lacking(ctx, []byte(manifest), a.except...)
		if err != nil {
			return err
		}
		if len(lacking) == 0 {
			continue
		}
		if !r.DryRun {
			if err := r.Admin.Kube.Apply(ctx, []byte(manifest)); err != nil {
				return err
			}
		}
		r.repaired(Repaired{Symptom: string(a.cause), Evidence: a.name + " is not as kubeadm makes it: " + strings.Join(lacking, ", ")},
			"apply kubeadm's manifest", "applied kubeadm's manifest")
	}
	return nil
}

// dnsRuns tells whether CoreDNS has pods that are ready.
func (r *repairRun) dnsRuns(ctx context.Context) bool {
	ready, want, err := r.Admin.Kube.Deployment(ctx, "kube-system", "coredns")
	return err == nil && want > 0 && ready == want
}

// joinObjects has kubeadm make again what a join needs in the cluster.
func (r *repairRun) joinObjects(ctx context.Context) error {
	lacking, err := r.Admin.Kube.Lacking(ctx, known)
	if err != nil {
		return err
	}
	info, authority := "", ""
	if len(lacking) == 0 {
		if info, err = r.configMap(ctx, "kube-public", "cluster-info", "kubeconfig"); err != nil {
			return err
		}
		if authority, err = r.Nodes[r.Admin.From.Name].Read(ctx, "cat", pkiDir+"ca.crt"); err != nil {
			return err
		}
		wrong := wrongCluster(info, authority, r.servers())
		if wrong == nil {
			return nil
		}
		lacking = []string{"ConfigMap kube-public/cluster-info: " + wrong.Error()}
	}
	if !r.DryRun {
		if err := r.makeJoinObjects(ctx, info != ""); err != nil {
			return err
		}
	}
	r.repaired(Repaired{Symptom: string(symptom.BootstrapRBACForbidden), Evidence: "joins need what the cluster lacks: " + strings.Join(lacking, ", ")},
		"have kubeadm make it: kubeadm init phase upload-config all; kubeadm init phase bootstrap-token",
		"had kubeadm make it: kubeadm init phase upload-config all; kubeadm init phase bootstrap-token")
	return nil
}

// makeJoinObjects runs kubeadm's phases. The token that one of them makes is deleted with the lab's others, when the repair has ended.
func (r *repairRun) makeJoinObjects(ctx context.Context, forget bool) error {
	from := r.Admin.From
	if forget { // kubeadm leaves one that is there as it is
		err := session.Do(ctx, r.Nodes[from.Name], "kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "--namespace", "kube-public", "delete", "configmap", "cluster-info")
		if err != nil {
			return err
		}
	}
	if _, err := r.kubeadm(ctx, from, false, "init", "phase", "upload-config", "all"); err != nil {
		return err
	}
	id, secret := kube.NewToken()
	text, err := r.configuration(ctx, from, id+"."+secret)
	if err != nil {
		return err
	}
	_, err = session.Hand(ctx, r.Nodes[from.Name], false, text, "sh", "-c", kubeadmScript, "sh", "init", "phase", "bootstrap-token", "--skip-token-print")
	return err
}
