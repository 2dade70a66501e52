package validate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	namespacePrefix = "k8slab-validate-"
	// ownerLabel marks test namespaces, and has their owner.
	ownerLabel = "k8slab.dev/validate"
	// removeBudget bounds the removal of a test namespace and its volumes. The namespace controller retries only after some seconds.
	removeBudget = time.Minute
)

// Leftover is a test namespace that is still there.
type Leftover struct {
	Namespace string    `json:"namespace"`
	Owner     string    `json:"owner"`
	Created   time.Time `json:"created"`
}

// Leftovers lists the test namespaces of every owner. While no validation runs, they are left of a killed one.
func (c *Cluster) Leftovers(ctx context.Context) ([]Leftover, error) {
	list, err := c.Kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: ownerLabel})
	if err != nil {
		return nil, fmt.Errorf("list test namespaces: %w", err)
	}
	var left []Leftover
	for _, ns := range list.Items {
		if strings.HasPrefix(ns.Name, namespacePrefix) { // a label alone would be a poor reason to delete
			left = append(left, Leftover{ns.Name, ns.Labels[ownerLabel], ns.CreationTimestamp.Time})
		}
	}
	return left, nil
}

// RemoveLeftovers removes the owner's test namespaces with everything in them, and waits until they are gone. No validation of the owner
// may run.
func (c *Cluster) RemoveLeftovers(ctx context.Context, owner string) error {
	left, err := c.Leftovers(ctx)
	if err != nil {
		return err
	}
	errs := make([]error, len(left))
	var wg sync.WaitGroup
	for i, l := range left {
		if l.Owner == owner {
			wg.Go(func() {
				if errs[i] = c.remove(ctx, l.Namespace); errs[i] == nil {
					errs[i] = c.awaitGone(ctx, l.Namespace)
				}
			})
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// inNamespace calls use with a new namespace, and then removes it with everything in it, even when ctx has ended. removed is the error of
// the removal. When it returns, pods, claims and volumes are gone. The empty namespace takes some seconds more, because its controller
// checks every kind of object of the cluster.
func (c *Cluster) inNamespace(ctx context.Context, use func(namespace string) error) (used, removed error) {
	owner := c.Owner
	if owner == "" {
		owner = "labctl"
	}
	name := namespacePrefix + strings.ToLower(rand.Text()[:6])
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{ownerLabel: owner}}}
	// The creation may have succeeded although its answer was lost.
	defer func() { removed = c.remove(context.WithoutCancel(ctx), name) }()
	// A repeated request finds the namespace that it made before: nobody else uses this name.
	if _, err := c.Kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create test namespace: %w", err), nil
	}
	// Pods are refused until the namespace has its service account.
	accounts := c.Kube.CoreV1().ServiceAccounts(name)
	err := until(ctx, accounts.Watch, metav1.ListOptions{}, func(ctx context.Context) (bool, error) {
		return found(accounts.Get(ctx, "default", metav1.GetOptions{}))
	})
	if err != nil {
		return fmt.Errorf("wait for the service account of namespace %s, which kube-controller-manager makes: %w", name, err), nil
	}
	return use(name), nil
}

// remove deletes a test namespace, and waits until the pods, claims and volumes in it are gone.
func (c *Cluster) remove(ctx context.Context, name string) error {
	budget := c.patient(removeBudget)
	ctx, cancel := context.WithTimeoutCause(ctx, budget, fmt.Errorf("the %s budget ran out", budget))
	defer cancel()
	volumes, err := c.releaseVolumes(ctx, name)
	if err != nil {
		return fmt.Errorf("look for volumes of namespace %s: %w; remove it with: kubectl delete namespace %s", name, err, name)
	}
	// If something is not gone at once, such as a claim that a pod still uses, the namespace controller returns to it only after 8 s.
	if err := c.empty(ctx, name); err != nil {
		return fmt.Errorf("wait until the pods and claims of test namespace %s are gone: %w; remove it with: kubectl delete namespace %s", name, err, name)
	}
	namespaces := c.Kube.CoreV1().Namespaces()
	if err := namespaces.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete test namespace: %w; remove it with: kubectl delete namespace %s", err, name)
	}
	for _, volume := range volumes {
		if err := c.volumeGone(ctx, volume); err != nil {
			return err
		}
	}
	return nil
}

// awaitGone waits until a namespace that was deleted is gone.
func (c *Cluster) awaitGone(ctx context.Context, name string) error {
	budget := c.patient(removeBudget)
	ctx, cancel := context.WithTimeoutCause(ctx, budget, fmt.Errorf("the %s budget ran out", budget))
	defer cancel()
	namespaces := c.Kube.CoreV1().Namespaces()
	last := ""
	err := until(ctx, namespaces.Watch, metav1.SingleObject(metav1.ObjectMeta{Name: name}), func(ctx context.Context) (bool, error) {
		ns, err := namespaces.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			last = remains(ns)
		}
		return gone(ns, err)
	})
	if err != nil {
		return fmt.Errorf("wait until test namespace %s is gone: %w%s", name, err, last)
	}
	return nil
}

// empty deletes the namespace's pods and then its claims, which are kept as long as a pod uses them.
func (c *Cluster) empty(ctx context.Context, namespace string) error {
	pods, claims := c.Kube.CoreV1().Pods(namespace), c.Kube.CoreV1().PersistentVolumeClaims(namespace)
	err := emptied(ctx, pods.Watch, pods.Delete, func(ctx context.Context) (names []string, err error) {
		list, err := pods.List(ctx, metav1.ListOptions{})
		for _, p := range list.Items {
			names = append(names, p.Name)
		}
		return names, err
	})
	if err != nil {
		return err
	}
	return emptied(ctx, claims.Watch, claims.Delete, func(ctx context.Context) (names []string, err error) {
		list, err := claims.List(ctx, metav1.ListOptions{})
		for _, p := range list.Items {
			names = append(names, p.Name)
		}
		return names, err
	})
}

// emptied deletes what is listed and waits until nothing is.
func emptied(ctx context.Context, begin watchFunc, remove func(context.Context, string, metav1.DeleteOptions) error, list func(context.Context) ([]string, error)) error {
	names, err := list(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := remove(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return until(ctx, begin, metav1.ListOptions{}, func(ctx context.Context) (bool, error) {
		names, err := list(ctx)
		return err == nil && len(names) == 0, err
	})
}

// remains says what keeps a namespace.
func remains(ns *corev1.Namespace) string {
	for _, cond := range ns.Status.Conditions {
		if cond.Status == corev1.ConditionTrue {
			return "; " + cond.Message
		}
	}
	return ""
}

// releaseVolumes makes the namespace's volumes be deleted together with their claims, whatever their class says, and returns their names.
func (c *Cluster) releaseVolumes(ctx context.Context, namespace string) ([]string, error) {
	volumes := c.Kube.CoreV1().PersistentVolumes()
	list, err := volumes.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, v := range list.Items {
		if v.Spec.ClaimRef == nil || v.Spec.ClaimRef.Namespace != namespace {
			continue
		}
		names = append(names, v.Name)
		if v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			continue
		}
		patch := []byte(`{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
		if _, err := volumes.Patch(ctx, v.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return nil, fmt.Errorf("set volume %s to be deleted with its claim: %w", v.Name, err)
		}
	}
	return names, nil
}

func (c *Cluster) volumeGone(ctx context.Context, name string) error {
	volumes := c.Kube.CoreV1().PersistentVolumes()
	last := ""
	err := until(ctx, volumes.Watch, metav1.SingleObject(metav1.ObjectMeta{Name: name}), func(ctx context.Context) (bool, error) {
		v, err := volumes.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			last = fmt.Sprintf("; it is %s %s", v.Status.Phase, v.Status.Message)
		}
		return gone(v, err)
	})
	if err != nil {
		return fmt.Errorf("wait until volume %s is deleted, which its provisioner does: %w%s", name, err, last)
	}
	return nil
}
