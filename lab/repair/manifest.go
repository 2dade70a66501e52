package repair

import (
	"context"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"k8slab/config"
	"k8slab/lab/join"
	"k8slab/lab/session"
	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

// staticPod is a component of a control plane whose manifest kubeadm makes.
type staticPod struct {
	name  string       // of the container and the manifest
	check join.CheckID // fails when the component does not work
	cause symptom.ID   // that its failure is found as
	other []symptom.ID // that other nodes have when it works and is not configured as kubeadm does it
}

var staticPods = []staticPod{
	{etcdPod, join.CheckEtcdMember, symptom.EtcdUnreachable, nil}, // what the others need
	{"kube-apiserver", join.CheckAPIServer, symptom.ControlPlaneCrashloop, nil},
	{"kube-controller-manager", join.CheckControllerManager, symptom.ControlPlaneCrashloop,
		[]symptom.ID{symptom.PodCIDRNotAssigned, symptom.CSRNotApproved}},
	{"kube-scheduler", join.CheckScheduler, symptom.ControlPlaneCrashloop, nil},
}

const etcdPod = "etcd"

func (p staticPod) file() string { return path.Join(session.ManifestDir, p.name+".yaml") }

// manifests restores static pods' manifests: those that are missing or cannot be read, and where something fails on the control plane or
// because of it, those that are not what kubeadm makes. One control plane after another: their etcd may restart.
func (r *repairRun) manifests(ctx context.Context) error {
	members := slices.DeleteFunc(r.Cluster.ControlPlanes(), func(n config.Node) bool { f := r.Fact(n); return !f.Joined || f.Running() })
	all, err := session.FromEachNode(members, func(n config.Node) (suspects, error) { return r.suspectsOf(ctx, n) })
	errs, wrote := []error{err}, false
	for i, n := range members {
		if len(all[i].pods) == 0 || ctx.Err() != nil {
			continue
		}
		if wrote { // what failed here may have failed because of the one before
			if all[i], err = r.suspectsOf(ctx, n); err != nil || len(all[i].pods) == 0 {
				errs = append(errs, err)
				continue
			}
		}
		one, err := r.manifestsOf(ctx, n, all[i])
		wrote, errs = wrote || one, append(errs, err)
	}
	return errors.Join(errs...)
}

// suspects are the static pods of a control plane whose manifests are compared with what kubeadm makes.
type suspects struct {
	pods   []staticPod
	is     map[string]string // the manifests, by file
	checks []join.Check
}

func (r *repairRun) suspectsOf(ctx context.Context, n config.Node) (s suspects, err error) {
	var files []string
	for _, p := range staticPods {
		files = append(files, p.file())
	}
	if s.is, err = readFiles(ctx, r.Nodes[n.Name], files...); err != nil {
		return s, err
	}
	if s.checks, err = r.Validate(ctx, n.Name); err != nil {
		return s, fmt.Errorf("%s: labnode does not answer: %w", n.Name, err)
	}
	s.pods = slices.DeleteFunc(slices.Clone(staticPods), func(p staticPod) bool {
		works := passes(s.checks, p.check) && !r.fails(n.Name) && !r.failsWith(p.other)
		return readable(s.is[p.file()]) && (works || r.has(n.Name)) || p.name == etcdPod && !r.Fact(n).EtcdData
	})
	return s, nil
}

// manifestsOf writes the manifests that are not what kubeadm makes, and tells whether it did.
func (r *repairRun) manifestsOf(ctx context.Context, n config.Node, s suspects) (wrote bool, err error) {
	made, err := r.made(ctx, n, "etcd local", "control-plane all")
	if err != nil {
		return false, err
	}
	newEtcd := false
	for _, p := range s.pods {
		want := made[p.name+".yaml"]
		if !readable(want) || sameManifest(s.is[p.file()], want) {
			continue
		}
		if err := r.manifest(ctx, n, p, s.is[p.file()], want); err != nil {
			return wrote, err
		}
		wrote, newEtcd = !r.DryRun, newEtcd || p.name == etcdPod
	}
	if !wrote || !passes(s.checks, join.CheckKubelet) {
		return wrote, nil
	}
	if newEtcd { // see leaves
		if err := restartPods(ctx, r.Nodes[n.Name], "kube-apiserver"); err != nil {
			return wrote, err
		}
	}
	return wrote, r.awaitManifests(ctx, n, "kube-apiserver", "kube-controller-manager", "kube-scheduler")
}

// manifest writes a manifest. The one before is kept outside of kubelet's directory.
func (r *repairRun) manifest(ctx context.Context, n config.Node, p staticPod, is, want string) error {
	evidence := p.name + "'s manifest is not what kubeadm makes of the cluster's configuration"
	also := ""
	switch {
	case is == "":
		evidence = p.file() + " is missing or empty, so kubelet does not run " + p.name
	case !readable(is):
		evidence = p.file() + " is no manifest of a pod, so kubelet does not run " + p.name
	}
	if is != "" {
		also = "; the one before is kept in " + p.kept()
	}
	if !r.DryRun {
		if err := p.write(ctx, r.Nodes[n.Name], is, want); err != nil {
			return err
		}
	}
	r.repaired(Repaired{Node: n.Name, Symptom: string(p.cause), Evidence: evidence},
		"write the manifest that kubeadm makes"+also, "wrote the manifest that kubeadm makes"+also)
	return nil
}

// kept is where the manifest before is kept.
func (p staticPod) kept() string {
	return path.Join(path.Dir(session.ManifestDir), p.name+".yaml.k8slab-saved")
}

// write writes the manifest, and keeps the one before, is.
func (p staticPod) write(ctx context.Context, on session.Node, is, want string) error {
	if is != "" {
		if err := session.Do(ctx, on, "cp", "-f", p.file(), p.kept()); err != nil {
			return err
		}
	}
	return on.Copy(ctx, p.file(), 0o600, strings.NewReader(p.whole(want)))
}

// whole is the manifest as it is written. etcd's must never begin a cluster of its own, should its data be gone when it starts.
func (p staticPod) whole(want string) string {
	if p.name != etcdPod || strings.Contains(want, "--initial-cluster-state=") {
		return want
	}
	first, rest, _ := strings.Cut(want, "    - --initial-cluster=")
	return first + "    - --initial-cluster-state=existing\n    - --initial-cluster=" + rest
}

// readable tells whether the text is a pod's manifest.
func readable(text string) bool {
	var pod struct {
		Kind string
		Spec struct{ Containers []any }
	}
	return yaml.Unmarshal([]byte(text), &pod) == nil && pod.Kind == "Pod" && len(pod.Spec.Containers) > 0
}

// sameManifest compares what two manifests say, but for etcd's list of the members that were there when it joined.
func sameManifest(a, b string) bool {
	one, other := said(a), said(b)
	return one != nil && reflect.DeepEqual(one, other)
}

func said(manifest string) (pod map[string]any) {
	var lines []string
	for line := range strings.Lines(manifest) {
		if !strings.HasPrefix(strings.TrimSpace(line), "- --initial-cluster") {
			lines = append(lines, line)
		}
	}
	if yaml.Unmarshal([]byte(strings.Join(lines, "")), &pod) != nil {
		return nil
	}
	return pod
}

// manifestTime bounds the start of static pods with new manifests.
const manifestTime = 2 * time.Minute

// awaitManifests waits until the named static pods of the control plane work: another may lack what a later repair restores. Its kubelet
// talks only to the node's own API server. It is restarted, because otherwise it would retry only when its back-off ends.
func (r *repairRun) awaitManifests(ctx context.Context, n config.Node, pods ...string) error {
	var works []join.CheckID
	for _, p := range staticPods {
		if slices.Contains(pods, p.name) {
			works = append(works, p.check)
		}
	}
	step := r.Events.Start(n.Name, "static pods", manifestTime)
	await := func(what string, ids ...join.CheckID) error {
		return wait.For(ctx, what+" of "+n.Name, manifestTime, r.Pace(), func(ctx context.Context) error {
			checks, err := r.Validate(ctx, n.Name)
			if err != nil {
				return err
			}
			for _, id := range ids {
				if !passes(checks, id) { // no Node is told to be Ready while etcd takes no writes
					return errors.Join(fmt.Errorf("%s does not work yet", id), r.space(ctx))
				}
			}
			return nil
		})
	}
	err := await("the static pods", works...)
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
