package upgrade

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/image"
	"k8slab/lab/kube"
	"k8slab/lab/provision"
	"k8slab/lab/session"
	"k8slab/lab/wait"
)

// leastBefore37 is what etcd's guide asks of every member before one of them is 3.7; via37 takes them there. kubeadm looks for neither: 1.36.3
// has etcd 3.6.8, and 1.37.2 has 3.7.0.
// https://etcd.io/docs/v3.7/upgrades/upgrade_3_7/
const (
	leastBefore37 = "v3.6.11"
	via37         = "v3.6.16"
)

// etcdBudget is what a member may take to stop, start in its new version, and be healthy.
const etcdBudget = 3 * time.Minute

// viaEtcd is the version that the members need first, "" if they can go to the release's as they are.
func viaEtcd(statuses []etcd.Status, to string) string {
	old := slices.ContainsFunc(statuses, func(s etcd.Status) bool { return s.Version != "" && semver.Compare("v"+s.Version, leastBefore37) < 0 })
	if old && semver.Compare(to, "v3.7.0") >= 0 {
		return via37
	}
	return ""
}

// etcdPath takes the members one after another to the version that they need first.
func (u *upgrade) etcdPath(ctx context.Context) error {
	statuses, err := u.Admin.Etcd.Status(ctx)
	if err != nil {
		return err
	}
	version := viaEtcd(statuses, u.release.Etcd)
	if version == "" {
		return nil
	}
	reference, file, err := image.EtcdImage(ctx, version, u.Events)
	if err != nil {
		return err
	}
	cps := u.Cluster.ControlPlanes()
	err = session.ForEachNode(cps, func(n config.Node) error {
		step := u.Events.Start(n.Name, "etcd image", provision.ImportBudget)
		return step.End(provision.LoadKept(ctx, u.Session, n.Name, file, step))
	})
	if err != nil {
		return err
	}
	for _, n := range cps {
		if err := u.explain(n, u.moveEtcd(ctx, n, version, reference)); err != nil {
			return err
		}
	}
	return nil
}

// moveEtcd has the node's member run in the version, if it is older.
func (u *upgrade) moveEtcd(ctx context.Context, n config.Node, version, reference string) error {
	runs := func(ctx context.Context) (string, error) {
		statuses, err := u.Admin.Etcd.Status(ctx)
		i := slices.IndexFunc(statuses, func(s etcd.Status) bool { return session.OwnsPeer(n, s.Member) })
		if err != nil || i < 0 {
			return "", errors.Join(err, fmt.Errorf("etcd has no member of %s", n.Name))
		}
		return "v" + statuses[i].Version, statuses[i].Err
	}
	if is, err := runs(ctx); err == nil && semver.Compare(is, version) >= 0 {
		return nil
	}
	step := u.Events.Start(n.Name, "etcd "+version, etcdBudget)
	err := u.handOver(ctx, n, step)
	if err == nil {
		err = u.setEtcdImage(ctx, n, reference)
	}
	if err == nil {
		err = wait.For(ctx, "etcd "+version+" on "+n.Name, etcdBudget*time.Duration(u.TimeScale()), u.Pace(), session.ShowWaiting(step, func(ctx context.Context) error {
			is, err := runs(ctx)
			if err == nil && is != version {
				err = fmt.Errorf("%s still runs %s", n.Name, is)
			}
			if err == nil {
				err = u.Admin.Etcd.Healthy(ctx)
			}
			return err
		}))
	}
	return step.End(err)
}

// setEtcdImage changes nothing of etcd's manifest but its image.
func (u *upgrade) setEtcdImage(ctx context.Context, n config.Node, reference string) error {
	file := manifests + "etcd.yaml"
	text, err := u.Nodes[n.Name].Read(ctx, "cat", file)
	if err != nil {
		return err
	}
	pod, err := kube.ReadStaticPod([]byte(text))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	was := "image: " + pod.Containers[0].Image
	if strings.Count(text, was) != 1 {
		return fmt.Errorf("%s does not have %q once", file, was)
	}
	return u.ReplaceManifest(ctx, n, "etcd", strings.Replace(text, was, "image: "+reference, 1))
}
