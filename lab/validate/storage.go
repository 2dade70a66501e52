package validate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StorageChecks check whether the cluster's storage systems use the named Node, or all with "", and have capacity there. They also check
// that a claim of the default class is bound, written there and read back.
func (c *Cluster) StorageChecks(node string) []Check {
	on := func(look func(ctx context.Context, node string) (Finding, error)) func(context.Context) (Finding, error) {
		return func(ctx context.Context) (Finding, error) { return look(ctx, node) }
	}
	return []Check{
		check(AreaStorage, "CSI drivers are registered on "+where(node), on(c.csiRegistered)),
		check(AreaStorage, "Longhorn has the disks of "+where(node), on(c.longhornReady)),
		check(AreaStorage, "local-path-provisioner serves "+where(node), on(c.localPathReady)),
		try(AreaStorage, "a claim is written and read on "+where(node), on(c.claimWorks)),
	}
}

const (
	localPath = "local-path-provisioner"
	// localPathRest stands in its configuration for the Nodes that are not listed.
	localPathRest = "DEFAULT_PATH_FOR_NON_LISTED_NODES"
)

// localPathConfig is config.json of local-path-provisioner's ConfigMap.
type localPathConfig struct {
	NodePathMap []struct {
		Node  string   `json:"node"`
		Paths []string `json:"paths"`
	} `json:"nodePathMap"`
	SharedPath string `json:"sharedFileSystemPath"`
}

// pathOn is the directory for volumes on the Node, "" when it gets none.
func (p localPathConfig) pathOn(node string) string {
	rest := p.SharedPath
	for _, entry := range p.NodePathMap {
		path := ""
		if len(entry.Paths) > 0 {
			path = entry.Paths[0]
		}
		switch entry.Node {
		case node:
			return path // an entry without paths keeps volumes away
		case localPathRest:
			rest = path
		}
	}
	return rest
}

func (c *Cluster) localPathReady(ctx context.Context, node string) (Finding, error) {
	nodes, err := c.tested(ctx, node)
	if err != nil {
		return Finding{}, err
	}
	list, err := c.Kube.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return Finding{}, fmt.Errorf("list deployments: %w", err)
	}
	i := slices.IndexFunc(list.Items, func(d appsv1.Deployment) bool { return d.Name == localPath })
	if i < 0 {
		return absent("no namespace has a Deployment %s", localPath), nil
	}
	d := &list.Items[i]
	next := fmt.Sprintf("see kubectl -n %s logs deploy/%s, and the paths in config.json of its ConfigMap", d.Namespace, d.Name)
	if line, ready := replicas(d); !ready {
		return fail(next, "%s", line), nil
	}
	config, err := c.localPathConfig(ctx, d)
	if err != nil {
		return Finding{}, err
	}
	var t tally
	for _, n := range nodes {
		size := n.Status.Allocatable[corev1.ResourceEphemeralStorage]
		switch path := config.pathOn(n.Name); {
		case path == "":
			t.faults = append(t.faults, n.Name+": its ConfigMap has no path for volumes of the Node")
		case size.IsZero():
			t.faults = append(t.faults, n.Name+": the kubelet reports no ephemeral-storage that could be allocated")
		default:
			t.good = append(t.good, fmt.Sprintf("%s: %s, on a disk with %s", n.Name, path, gib(size.Value())))
		}
	}
	return t.finding(next), nil
}

func (c *Cluster) localPathConfig(ctx context.Context, d *appsv1.Deployment) (config localPathConfig, err error) {
	name := "local-path-config"
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.ConfigMap != nil {
			name = v.ConfigMap.Name
		}
	}
	m, err := c.Kube.CoreV1().ConfigMaps(d.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		err = json.Unmarshal([]byte(m.Data["config.json"]), &config)
	}
	if err != nil {
		err = fmt.Errorf("read config.json of configmap %s/%s: %w", d.Namespace, name, err)
	}
	return config, err
}

func gib(bytes int64) string { return resource.NewQuantity(bytes>>30<<30, resource.BinarySI).String() }
