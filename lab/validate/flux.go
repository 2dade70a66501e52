package validate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"k8slab/lab/wait"
)

// The parts of Flux's contract that are used here: fluxcd/source-controller and fluxcd/kustomize-controller api/v1, fluxcd/pkg apis/meta.
const (
	requestedAt = "reconcile.fluxcd.io/requestedAt"
	// buildFailed is the reason of a Kustomization whose revision cannot be built. Only another revision helps.
	buildFailed = "BuildFailed"
	fluxStalled = "Stalled" // the condition of what no retry cures
	fluxReady   = "Ready"
)

var (
	gitRepositories = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}
	kustomizations  = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
)

// fluxBudget bounds a reconciliation whose context has no end.
const fluxBudget = 15 * time.Minute

// ErrOtherRevision says that a GitRepository was reconciled on request and found another revision: somebody has pushed since, or it follows
// another branch. Waiting does not help.
var ErrOtherRevision = errors.New("the repository is at another revision")

// Ref names a Kustomization of Flux and the GitRepository that it applies, both in one namespace.
type Ref struct {
	Namespace     string
	Source        string
	Kustomization string
}

// fluxObject is the part of a GitRepository or a Kustomization that is read here.
type fluxObject struct {
	Kind     string            `json:"kind"`
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Suspend   bool `json:"suspend"`
		SourceRef struct {
			Kind      string `json:"kind"`
			Name      string `json:"name"`
			Namespace string `json:"namespace"` // the object's own when empty
		} `json:"sourceRef"`
		Decryption *struct {
			Provider string `json:"provider"`
		} `json:"decryption"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64              `json:"observedGeneration"`
		Conditions         []metav1.Condition `json:"conditions"`
		Artifact           struct {
			Revision       string      `json:"revision"` // "main@sha1:" and the commit
			LastUpdateTime metav1.Time `json:"lastUpdateTime"`
		} `json:"artifact"`
		LastAppliedRevision    string `json:"lastAppliedRevision"`
		LastAttemptedRevision  string `json:"lastAttemptedRevision"`
		LastHandledReconcileAt string `json:"lastHandledReconcileAt"`
		Inventory              struct {
			Entries []struct {
				ID string `json:"id"` // namespace_name_group_kind
			} `json:"entries"`
		} `json:"inventory"`
	} `json:"status"`
}

func (o fluxObject) String() string {
	return o.Kind + " " + o.Metadata.Namespace + "/" + o.Metadata.Name
}

// revision is the revision that the object has reconciled.
func (o fluxObject) revision() string {
	if o.Kind == "GitRepository" {
		return o.Status.Artifact.Revision
	}
	return o.Status.LastAppliedRevision
}

// unready says why the object's present specification is not reconciled, nil when it is.
func (o fluxObject) unready() error {
	c := meta.FindStatusCondition(o.Status.Conditions, fluxReady)
	switch {
	case c == nil:
		return errors.New("no Ready condition reported")
	case c.Status != metav1.ConditionTrue:
		return fmt.Errorf("condition Ready is %s: %s: %s", c.Status, c.Reason, c.Message)
	case o.Status.ObservedGeneration < o.Metadata.Generation:
		return fmt.Errorf("generation %d is not reconciled yet (at %d)", o.Metadata.Generation, o.Status.ObservedGeneration)
	case o.revision() == "":
		return errors.New("it is Ready without a revision")
	}
	return nil
}

// at says why the object is not reconciled at exactly the revision, and whether that is final, so that waiting is useless. With requested,
// the last request to reconcile must have been handled.
func (o fluxObject) at(revision string, requested bool) (final bool, err error) {
	handled := requested && o.handled()
	if o.Spec.Suspend {
		return true, errors.New("it is suspended: `flux resume` lets it go on")
	}
	if err := o.unready(); err != nil {
		return handled && o.hopeless(revision), err
	}
	if o.revision() != revision {
		err := fmt.Errorf("at %s, wanted %s", o.revision(), revision)
		if o.Kind == "GitRepository" && handled {
			// The request came after the push, and the fetch after the request, so another revision is final. A Kustomization may still
			// have an older artifact from its cache.
			return true, fmt.Errorf("%w: %w", ErrOtherRevision, err)
		}
		return false, err
	}
	if requested && !handled {
		return false, errors.New("the request to reconcile is not handled yet")
	}
	return false, nil
}

// handled reports whether the last request to reconcile has been handled, whoever made it.
func (o fluxObject) handled() bool {
	return o.Status.LastHandledReconcileAt == o.Metadata.Annotations[requestedAt]
}

// hopeless reports whether the object, which is not ready, can never become ready at the revision.
func (o fluxObject) hopeless(revision string) bool {
	c := meta.FindStatusCondition(o.Status.Conditions, fluxReady)
	return meta.IsStatusConditionTrue(o.Status.Conditions, fluxStalled) ||
		c != nil && c.Reason == buildFailed && o.Status.LastAttemptedRevision == revision
}

func toFlux(u *unstructured.Unstructured) (fluxObject, error) {
	var o fluxObject
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		return o, fmt.Errorf("read %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	return o, nil
}

// listFlux lists the objects of a resource in all namespaces; served is false when the cluster does not have the resource.
func (c *Cluster) listFlux(ctx context.Context, resource schema.GroupVersionResource) (objects []fluxObject, served bool, err error) {
	list, err := c.Dynamic.Resource(resource).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("list %s: %w", resource.Resource, err)
	}
	for i := range list.Items {
		o, err := toFlux(&list.Items[i])
		if err != nil {
			return nil, true, err
		}
		objects = append(objects, o)
	}
	return objects, true, nil
}

// Reconciled checks once whether Flux is reconciled at exactly the revision ("main@sha1:" and the commit). The error lists everything that
// is not.
func (c *Cluster) Reconciled(ctx context.Context, ref Ref, revision string) error {
	var errs []error
	for _, p := range c.parts(ref) {
		u, err := p.resource.Get(ctx, p.name, metav1.GetOptions{})
		if err == nil {
			_, err = judgeFlux(u, revision, false)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.what, err))
		}
	}
	return errors.Join(errs...)
}

// Reconcile asks Flux to fetch the repository and then to apply it, and waits until both are done at exactly the revision ("main@sha1:" and
// the commit). say, if not nil, is told of each state. The error has the last state. It comes at once when waiting is useless: an object
// that is suspended or stalled, a revision that cannot be built, and ErrOtherRevision.
func (c *Cluster) Reconcile(ctx context.Context, ref Ref, revision string, say func(string)) error {
	for _, p := range c.parts(ref) {
		if err := p.reconcile(ctx, revision, say); err != nil {
			return fmt.Errorf("reconcile %s at %s: %w", p.what, revision, err)
		}
	}
	return nil
}

// part is one of the two objects through which a revision gets into the cluster.
type part struct {
	what     string
	resource dynamic.ResourceInterface
	name     string
}

func (c *Cluster) parts(ref Ref) []part {
	return []part{
		{"GitRepository " + ref.Namespace + "/" + ref.Source, c.Dynamic.Resource(gitRepositories).Namespace(ref.Namespace), ref.Source},
		{"Kustomization " + ref.Namespace + "/" + ref.Kustomization, c.Dynamic.Resource(kustomizations).Namespace(ref.Namespace), ref.Kustomization},
	}
}

func judgeFlux(u *unstructured.Unstructured, revision string, requested bool) (final bool, err error) {
	o, err := toFlux(u)
	if err != nil {
		return true, err
	}
	return o.at(revision, requested)
}

func (p part) reconcile(ctx context.Context, revision string, say func(string)) error {
	stamp := time.Now().UTC().Format(time.RFC3339Nano)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{requestedAt: stamp}}})
	if err != nil {
		return err
	}
	if _, err := p.resource.Patch(ctx, p.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "labctl"}); err != nil {
		return fmt.Errorf("request it: %w", err)
	}
	var last error
	see := func(u *unstructured.Unstructured) (enough bool, err error) {
		final, err := judgeFlux(u, revision, true)
		if err != nil && say != nil && (last == nil || err.Error() != last.Error()) {
			say(p.what + ": " + err.Error())
		}
		last = err
		if final {
			err = wait.Hopeless(err)
		}
		return final || err == nil, err
	}
	err = wait.For(ctx, "wait", fluxBudget, time.Second, func(ctx context.Context) error { return p.follow(ctx, see) })
	if err != nil && ctx.Err() != nil && last != nil {
		return fmt.Errorf("%w; last seen: %w", context.Cause(ctx), last)
	}
	return err
}

// follow calls see with each state of the object, beginning with the present one, until see has seen enough, and returns see's last error.
// It is an error if the watch ends before, which happens to every watch: the caller follows again.
func (p part) follow(ctx context.Context, see func(*unstructured.Unstructured) (enough bool, err error)) error {
	now, err := p.resource.Get(ctx, p.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	enough, last := see(now)
	if enough {
		return last
	}
	only := metav1.SingleObject(metav1.ObjectMeta{Name: p.name, ResourceVersion: now.GetResourceVersion()})
	w, err := p.resource.Watch(ctx, only)
	if err != nil {
		return fmt.Errorf("watch it: %w", err)
	}
	defer w.Stop()
	for {
		var event watch.Event
		select {
		case <-ctx.Done():
			return last
		case event = <-w.ResultChan(): // the zero event when the watch has ended
		}
		u, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case event.Type == watch.Deleted:
			return wait.Hopeless(errors.New("it was deleted"))
		case !ok || event.Type == watch.Error:
			return last
		}
		if enough, last = see(u); enough {
			return last
		}
	}
}
