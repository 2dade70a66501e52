package repair

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

// rightsTime bounds the wait until API servers know roles that were restored.
const rightsTime = 30 * time.Second

// administrators gives kubeadm's administrators their rights back, with the credentials that the run was opened with: those of admin.conf have
// none then. What the diagnosis before could not see, another sees.
func (r *repairRun) administrators(ctx context.Context) error {
	may, err := r.Admin.Kube.AdministratorsMay(ctx)
	if err != nil || may { // who needs the API server says that it does not answer
		return nil
	}
	if !r.DryRun {
		if err := r.Admin.Kube.RestoreAdministrators(ctx); err != nil {
			return err
		}
		err := wait.For(ctx, "the administrator's rights", rightsTime*time.Duration(r.TimeScale()), r.Pace(), func(ctx context.Context) error {
			may, err := r.Admin.Kube.AdministratorsMay(ctx)
			if err == nil && !may {
				err = errors.New("API servers do not know of them yet")
			}
			return err
		})
		if err != nil {
			return err
		}
		r.before = r.diagnose(ctx)
	}
	r.repaired(Repaired{Symptom: string(symptom.RBACChanged), Evidence: "kubeadm's administrators have no rights: ClusterRoleBinding " + kube.Administrators +
		" or ClusterRole cluster-admin is missing or changed"}, "make both again", "made both again")
	return nil
}

// rights restores the roles and bindings that API servers make when they start: one of them is restarted. Those of add-ons are in their
// manifests.
func (r *repairRun) rights(ctx context.Context) error {
	lost, err := r.lostDefaults(ctx)
	if err != nil || len(lost) == 0 {
		return err
	}
	evidence := strings.Join(lost, ", ")
	nodes := slices.DeleteFunc(r.JoinedControlPlanes(), func(n config.Node) bool { return r.Fact(n).Running() })
	if len(nodes) == 0 {
		return nil // kubeadm is at work on each
	}
	on := nodes[len(nodes)-1] // others know nodes by the first
	if !r.DryRun {
		if err = restartPods(ctx, r.Nodes[on.Name], "kube-apiserver"); err == nil {
			err = r.awaitManifests(ctx, on, "kube-apiserver")
		}
		if err == nil {
			err = wait.For(ctx, "the roles that API servers make", rightsTime*time.Duration(r.TimeScale()), r.Pace(), func(ctx context.Context) error {
				lost, err := r.lostDefaults(ctx)
				if err == nil && len(lost) > 0 {
					err = errors.New(strings.Join(lost, ", "))
				}
				return err
			})
		}
		if err != nil {
			return err
		}
	}
	r.repaired(Repaired{Symptom: string(symptom.RBACChanged), Evidence: evidence}, "restart the API server of "+on.Name+", which makes them again",
		"restarted the API server of "+on.Name+", which made them again")
	return nil
}

// lostDefaults are the rights that API servers make when they start.
func (r *repairRun) lostDefaults(ctx context.Context) (words []string, err error) {
	lost, err := r.Admin.Kube.LostRights(ctx)
	for _, l := range lost {
		if l.Addon == "" {
			words = append(words, l.What)
		}
	}
	return words, err
}
