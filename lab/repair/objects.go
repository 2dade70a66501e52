package repair

import (
	"context"
	"fmt"
	"strings"

	"k8slab/lab/session"
	"k8slab/lab/symptom"
)

// objects restores the objects that kubeadm made in the cluster and that somebody deleted or edited: its add-ons, and what joins need. It
// looks only where something fails or could not join, so that a healthy cluster keeps what its administrator set.
func (r *repairRun) objects(ctx context.Context) error {
	if err := r.joinObjects(ctx); err != nil {
		return err
	}
	if len(failures(r.before, nil)) == 0 {
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
	needs, err := r.Admin.Kube.MissingForJoins(ctx)
	if err != nil {
		return err
	}
	var lacking []string
	for _, n := range needs {
		lacking = append(lacking, n.What)
	}
	misled := error(nil)
	if len(needs) == 0 {
		if misled, err = r.misled(ctx); err != nil || misled == nil {
			return err
		}
		lacking = []string{misled.Error()}
	}
	if !r.DryRun {
		if misled != nil { // kubeadm leaves one that is there as it is
			err = session.Do(ctx, r.Nodes[r.Admin.From.Name], "kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "--namespace", "kube-public",
				"delete", "configmap", "cluster-info")
		}
		if err == nil {
			_, err = r.RestoreJoins(ctx)
		}
		if err != nil {
			return err
		}
	}
	id := symptom.JoinConfigMissing
	if len(needs) > 0 && needs[0].Right {
		id = symptom.BootstrapRBACForbidden
	}
	r.repaired(Repaired{Symptom: string(id), Evidence: "joins need what the cluster lacks: " + strings.Join(lacking, ", ")},
		"have kubeadm make it again", "had kubeadm make it again")
	return nil
}

// misled says what is wrong with the cluster-info that there is: joins would be led to another cluster, or to none.
func (r *repairRun) misled(ctx context.Context) (wrong, err error) {
	info, err := r.configMap(ctx, "kube-public", "cluster-info", "kubeconfig")
	if err != nil {
		return nil, err
	}
	authority, err := r.Nodes[r.Admin.From.Name].Read(ctx, "cat", pkiDir+"ca.crt")
	if err != nil {
		return nil, err
	}
	if wrong = wrongCluster(info, authority, r.servers()); wrong != nil {
		wrong = fmt.Errorf("ConfigMap kube-public/cluster-info: %w", wrong)
	}
	return wrong, nil
}
