package repair

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/cluster"
	"k8slab/lab/join"
	"k8slab/lab/session"
	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

// staticPod is a component whose manifest kubeadm makes from the cluster's configuration alone. etcd is not one: its manifest also depends
// on the members.
type staticPod struct {
	name  string       // of the container and the manifest
	phase string       // kubeadm's
	check join.CheckID // fails when the component does not work
}

var staticPods = []staticPod{
	{"kube-apiserver", "apiserver", join.CheckAPIServer},
	{"kube-controller-manager", "controller-manager", join.CheckControllerManager},
	{"kube-scheduler", "scheduler", join.CheckScheduler},
}

// manifests repairs static pods that crash again and again and whose manifest differs from kubeadm's: it writes the one that kubeadm makes.
// It skips control planes whose kubelet or etcd does not work, because that is the nearer cause.
func (r *repairRun) manifests(ctx context.Context) error {
	return session.ForEachNode(r.Cluster.ControlPlanes(), func(n config.Node) error {
		if f := r.Fact(n); !f.Joined || f.Running() || r.has(n.Name) {
			return nil
		}
		checks, err := r.Validate(ctx, n.Name)
		if err != nil {
			return fmt.Errorf("%s: labnode does not answer: %w", n.Name, err)
		}
		if !passes(checks, join.CheckKubelet) || !passes(checks, join.CheckEtcdMember) {
			return nil
		}
		var errs []error
		for _, p := range staticPods {
			if !passes(checks, p.check) {
				errs = append(errs, r.manifest(ctx, n, p))
			}
		}
		if err := errors.Join(errs...); err != nil || r.DryRun || !r.has(n.Name) {
			return err
		}
		return r.awaitManifests(ctx, n)
	})
}

// manifestTime bounds the start of static pods with new manifests.
const manifestTime = 2 * time.Minute

// awaitManifests waits until the control plane works. Its kubelet talks only to the node's own API server. It is restarted, because
// otherwise it would retry only when its back-off ends.
func (r *repairRun) awaitManifests(ctx context.Context, n config.Node) error {
	step := r.Events.Start(n.Name, "static pods", manifestTime)
	await := func(what string, ids ...join.CheckID) error {
		return wait.For(ctx, what+" of "+n.Name, manifestTime, r.Pace(), func(ctx context.Context) error {
			checks, err := r.Validate(ctx, n.Name)
			if err != nil {
				return err
			}
			for _, id := range ids {
				if !passes(checks, id) {
					return fmt.Errorf("%s does not work yet", id)
				}
			}
			return nil
		})
	}
	err := await("the static pods", join.CheckAPIServer, join.CheckControllerManager, join.CheckScheduler)
	if err == nil {
		err = session.Do(ctx, r.Nodes[n.Name], "systemctl", "restart", "kubelet")
	}
	if err == nil {
		err = await("the Node", join.CheckKubelet, join.CheckNode)
	}
	return step.End(err)
}

// passes tells whether a member passes the check.
func passes(checks []join.Check, id join.CheckID) bool {
	for _, c := range checks {
		if c.ID == id {
			return c.Result == join.OK
		}
	}
	return false
}

func (r *repairRun) manifest(ctx context.Context, n config.Node, p staticPod) error {
	on := r.Nodes[n.Name]
	if crashes, err := crashing(ctx, on, p.name, time.Now()); err != nil || !crashes {
		return err
	}
	known, err := r.Nodes[r.Admin.From.Name].Read(ctx, "kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "--namespace", "kube-system",
		"get", "configmap", "kubeadm-config", "--output", "jsonpath={.data.ClusterConfiguration}")
	if err != nil {
		return err
	}
	own, err := cluster.ManifestConfiguration(r.Session, n)
	if err != nil {
		return err
	}
	kept, changed, err := remake(ctx, on, p, own+"---\n"+known, r.DryRun)
	if err != nil || !changed {
		return err
	}
	r.repaired(Repaired{Node: n.Name, Symptom: string(symptom.ControlPlaneCrashloop),
		Evidence: p.name + " ends again and again, and its manifest is not what kubeadm makes of the cluster's configuration"},
		"write the manifest that kubeadm makes; the one before is kept in "+kept,
		"wrote the manifest that kubeadm makes; the one before is kept in "+kept)
	return nil
}

// youth is how long a restarted container may run before it counts as stable.
const youth = time.Minute

// crashing tells whether the newest container of the name has exited, or was restarted within the last minute.
func crashing(ctx context.Context, n session.Reader, name string, now time.Time) (bool, error) {
	out, err := n.Read(ctx, "crictl", "ps", "--all", "--latest", "--name", "^"+name+"$", "--output", "json")
	if err != nil {
		return false, err
	}
	var list struct {
		Containers []struct {
			Metadata  struct{ Attempt int }
			State     string
			CreatedAt string
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return false, fmt.Errorf("containers of %s: %w", name, err)
	}
	for _, c := range list.Containers {
		created, _ := strconv.ParseInt(c.CreatedAt, 10, 64) // nanoseconds; an unreadable time counts as old
		young := c.Metadata.Attempt > 0 && now.Sub(time.Unix(0, created)) < youth
		return c.State == "CONTAINER_EXITED" || young, nil
	}
	return false, nil
}

const (
	remakeConfig = "/run/k8slab/control-plane.yaml"
	remakeDir    = "/run/k8slab/manifests"
)

// remake has kubeadm make the manifest. If the present one differs, it is replaced and kept outside of kubelet's manifest directory.
func remake(ctx context.Context, n session.Shell, p staticPod, configuration string, dryRun bool) (kept string, changed bool, err error) {
	if err := n.Copy(ctx, remakeConfig, 0o600, strings.NewReader(configuration)); err != nil {
		return "", false, err
	}
	defer func() {
		err = errors.Join(err, session.Do(context.WithoutCancel(ctx), n, "rm", "-rf", remakeConfig, remakeDir))
	}()
	if err := session.Do(ctx, n, "mkdir", "-p", remakeDir); err != nil {
		return "", false, err
	}
	err = session.Do(ctx, n, "env", "KUBEADM_INIT_DRYRUN_DIR="+remakeDir, "kubeadm", "init", "phase", "control-plane", p.phase, "--config", remakeConfig, "--dry-run")
	if err != nil {
		return "", false, err
	}
	made, place := path.Join(remakeDir, p.name+".yaml"), path.Join(session.ManifestDir, p.name+".yaml")
	want, err := n.Read(ctx, "cat", made)
	if err != nil {
		return "", false, err
	}
	is, err := n.Read(ctx, "cat", place)
	if err != nil || is == want {
		return "", false, err
	}
	kept = path.Join(path.Dir(session.ManifestDir), p.name+".yaml.k8slab-saved")
	if dryRun {
		return kept, true, nil
	}
	if err := session.Do(ctx, n, "cp", "-f", place, kept); err != nil {
		return "", false, err
	}
	return kept, true, session.Do(ctx, n, "cp", "-f", made, place)
}
