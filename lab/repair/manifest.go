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

// staticPod is a part of a control plane that kubeadm makes the manifest of out of the cluster's configuration alone. etcd's is made of its
// members too, and is not among them.
type staticPod struct {
	name  string       // its container's and its manifest's
	phase string       // kubeadm's
	check join.CheckID // of a member, which says that it does not work
}

var staticPods = []staticPod{
	{"kube-apiserver", "apiserver", join.CheckAPIServer},
	{"kube-controller-manager", "controller-manager", join.CheckControllerManager},
	{"kube-scheduler", "scheduler", join.CheckScheduler},
}

// manifests writes the manifest that kubeadm makes for a static pod that ends again and again, where it is another one. Only the API server of
// another control plane can tell what kubeadm makes, and a control plane whose etcd is ill has nearer trouble.
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

// awaitManifests waits until the control plane works. Its kubelet knows no other API server than the node's own, and looks at it again at
// once after a restart, instead of when its back-off ends.
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

// youth is the age until which a container that was started again may be one that is about to end again.
const youth = time.Minute

// crashing tells whether the newest container of the name has ended, or is a young successor of one that did.
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
		created, _ := strconv.ParseInt(c.CreatedAt, 10, 64) // nanoseconds; what is no number is old
		young := c.Metadata.Attempt > 0 && now.Sub(time.Unix(0, created)) < youth
		return c.State == "CONTAINER_EXITED" || young, nil
	}
	return false, nil
}

const (
	remakeConfig = "/run/k8slab/control-plane.yaml"
	remakeDir    = "/run/k8slab/manifests"
)

// remake has kubeadm make the manifest and puts it into the place of one that differs, which is kept outside of kubelet's sight.
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
