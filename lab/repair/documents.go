package repair

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8slab/lab/diagnose"
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// early restores kubeadm's documents before anything is made of them. While no API server answers, that has time until it does.
func (r *repairRun) early(ctx context.Context) error {
	r.wrong, r.looked = nil, false
	if err := r.Admin.Kube.Ready(ctx); err != nil {
		return nil
	}
	if err := r.documents(ctx); err != nil {
		r.step.Progress("later: %v", err)
	}
	return nil
}

// documents has kubeadm make again what joins need in the cluster, and those of its documents that do not say what they must. The add-ons' are
// in their manifests.
func (r *repairRun) documents(ctx context.Context) error {
	needs, err := r.Admin.Kube.MissingForJoins(ctx)
	if err == nil {
		r.wrong, err = r.Admin.Kube.WrongDocuments(ctx, r.Documents())
	}
	if err != nil {
		return err
	}
	if left, err := r.upgraded(ctx); left || err != nil {
		r.looked = err == nil
		return err
	}
	if len(needs) > 0 && !r.DryRun {
		if _, err := r.RestoreJoins(ctx); err != nil {
			return err
		}
	}
	var phases []string
	for _, d := range r.wrong {
		if d.Phase == kube.PhaseBootstrapToken && !r.DryRun {
			err = r.Admin.Kube.DropClusterInfo(ctx)
		}
		if !slices.Contains(phases, d.Phase) && !strings.HasPrefix(d.Phase, "addon ") {
			phases = append(phases, d.Phase)
		}
	}
	if err == nil && len(phases) > 0 && !r.DryRun {
		err = r.MakeAgain(ctx, phases)
	}
	if err != nil {
		return err
	}
	r.looked = true
	r.madeAgain(needs)
	return nil
}

// upgraded tells whether somebody has upgraded the cluster: the lab's own configuration is not the cluster's then, and nothing is made of it.
func (r *repairRun) upgraded(ctx context.Context) (bool, error) {
	is, err := r.Admin.Kube.Version(ctx)
	want := r.Cluster.Kubernetes.Version
	if err != nil || is == want || len(r.wrong) == 0 {
		return false, err
	}
	r.add(Repaired{Symptom: string(diagnose.CauseOfDocument(r.wrong[0])), Evidence: r.wrong[0].String(),
		Left: fmt.Sprintf("the API server runs %s and cluster.yaml has %s, so its configuration is not the cluster's; on a control plane: "+
			"kubeadm init phase upload-config all --config FILE, with the cluster's own", is, want)})
	return true, nil
}

// madeAgain adds what kubeadm made again, by causes.
func (r *repairRun) madeAgain(needs []kube.JoinNeed) {
	var causes []symptom.ID
	what := map[symptom.ID][]string{}
	note := func(id symptom.ID, text string) {
		if what[id] = append(what[id], text); len(what[id]) == 1 {
			causes = append(causes, id)
		}
	}
	for _, n := range needs {
		id := symptom.JoinConfigMissing
		if needs[0].Right {
			id = symptom.BootstrapRBACForbidden
		}
		note(id, n.What)
	}
	for _, d := range r.wrong {
		if !strings.HasPrefix(d.Phase, "addon ") {
			note(diagnose.CauseOfDocument(d), d.String())
		}
	}
	for _, id := range causes {
		r.repaired(Repaired{Symptom: string(id), Evidence: strings.Join(what[id], ", ")},
			"have kubeadm make it again", "had kubeadm make it again")
	}
}

// isWrong tells whether the ConfigMap was found wrong in this pass.
func (r *repairRun) isWrong(name string) bool {
	return slices.ContainsFunc(r.wrong, func(d kube.WrongDocument) bool { return d.Name == name })
}
