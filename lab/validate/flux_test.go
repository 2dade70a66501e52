package validate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

const (
	oldRevision = "main@sha1:0000000000000000000000000000000000000001"
	newRevision = "main@sha1:0000000000000000000000000000000000000002"
)

var fleet = Ref{Namespace: "flux-system", Source: "fleet", Kustomization: "nodes"}

type fields = map[string]any

// state changes an object as a controller does.
type state = func(o fields)

// fluxDocument is a GitRepository or Kustomization of generation 1 in flux-system, as the states leave it.
func fluxDocument(kind, name string, states ...state) *unstructured.Unstructured {
	group := "source.toolkit.fluxcd.io/v1"
	spec := fields{}
	if kind == "Kustomization" {
		group = "kustomize.toolkit.fluxcd.io/v1"
		spec["sourceRef"] = fields{"kind": "GitRepository", "name": "fleet"}
	}
	o := fields{
		"apiVersion": group, "kind": kind, "spec": spec, "status": fields{},
		"metadata": fields{"namespace": "flux-system", "name": name, "generation": int64(1)},
	}
	for _, s := range states {
		s(o)
	}
	return &unstructured.Unstructured{Object: o}
}

func condition(kind, status, reason, message string) state {
	return func(o fields) {
		status := fields{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}
		conditions, _, _ := unstructured.NestedSlice(o, "status", "conditions")
		_ = unstructured.SetNestedSlice(o, append(conditions, status), "status", "conditions")
	}
}

func set(value any, path ...string) state {
	return func(o fields) { _ = unstructured.SetNestedField(o, value, path...) }
}

// at is an object that is Ready at a revision.
func at(revision string) state {
	return func(o fields) {
		condition("Ready", "True", "Succeeded", "done")(o)
		set(int64(1), "status", "observedGeneration")(o)
		set(revision, "status", "artifact", "revision")(o)
		set("2026-01-01T00:00:00Z", "status", "artifact", "lastUpdateTime")(o)
		set(revision, "status", "lastAppliedRevision")(o)
	}
}

// handled is an object whose present request was handled.
func handled(o fields) {
	stamp, _, _ := unstructured.NestedString(o, "metadata", "annotations", requestedAt)
	set(stamp, "status", "lastHandledReconcileAt")(o)
}

func anew(o fields) { o["status"] = fields{} }

func suspended(o fields) { set(true, "spec", "suspend")(o) }

// dynamicWorld holds the objects. A resource of which it has none is served when it is listed in served.
func dynamicWorld(t *testing.T, served []schema.GroupVersionResource, objects ...*unstructured.Unstructured) *dynamicfake.FakeDynamicClient {
	t.Helper()
	kinds := map[schema.GroupVersionResource]string{
		gitRepositories: "GitRepositoryList", kustomizations: "KustomizationList", longhornVolumes: "VolumeList", nodeMetrics: "NodeMetricsList",
	}
	d := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	for _, o := range objects {
		for resource, list := range kinds {
			if o.GetKind()+"List" != list {
				continue
			}
			served = append(served, resource)
			if _, err := d.Resource(resource).Namespace(o.GetNamespace()).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		for _, s := range served {
			if s == a.GetResource() {
				return false, nil, nil
			}
		}
		return true, nil, notServed(a.GetResource())
	})
	d.ClearActions()
	return d
}

// play has the first watch of a resource show one state after another, and then end.
func play(d *dynamicfake.FakeDynamicClient, resource schema.GroupVersionResource, name string, states ...state) {
	d.PrependWatchReactor(resource.Resource, func(clienttesting.Action) (bool, watch.Interface, error) {
		w := watch.NewFakeWithChanSize(len(states)+1, false)
		if len(states) == 0 {
			return true, w, nil // silent
		}
		o, err := d.Tracker().Get(resource, "flux-system", name)
		if err != nil {
			return true, nil, err
		}
		u := o.(*unstructured.Unstructured).DeepCopy()
		for _, s := range states {
			s(u.Object)
			w.Modify(u.DeepCopy())
		}
		states = nil
		// What was shown also stays.
		_ = d.Tracker().Update(resource, u, "flux-system")
		w.Stop()
		return true, w, nil
	})
}

func TestReconcile(t *testing.T) {
	failed := func(reason string) []state {
		return []state{anew, condition("Ready", "False", reason, "no such file"), set(newRevision, "status", "lastAttemptedRevision"), handled}
	}
	tests := []struct {
		name             string
		source, applied  []state // as they are before
		fetched, applies []state // what is seen afterwards
		took             time.Duration
		err              string // "" for none
		is               error
	}{
		{
			name: "both follow", source: []state{at(oldRevision)}, applied: []state{at(oldRevision)},
			fetched: []state{anew, at(newRevision), handled}, applies: []state{anew, at(newRevision), handled},
		},
		{
			name: "what is at the revision must still have handled the request", source: []state{at(newRevision)}, applied: []state{at(newRevision)},
			fetched: []state{handled}, took: 10 * time.Minute,
			err: "reconcile Kustomization flux-system/nodes at " + newRevision + ": the time is over; last seen: the request to reconcile is not handled yet",
		},
		{
			name: "the branch has moved on", source: []state{at(oldRevision)}, applied: []state{at(oldRevision)},
			fetched: []state{handled}, err: "wanted " + newRevision, is: ErrOtherRevision,
		},
		{
			name: "suspended", source: []state{suspended, at(oldRevision)}, err: "GitRepository flux-system/fleet at " + newRevision + ": wait: it is suspended",
		},
		{
			name: "stalled", source: []state{at(oldRevision)},
			fetched: []state{anew, condition("Ready", "False", "InvalidURL", "bad"), condition("Stalled", "True", "InvalidURL", "bad"), handled},
			err:     "condition Ready is False: InvalidURL: bad",
		},
		{
			name: "cannot be built", source: []state{at(oldRevision)}, applied: []state{at(oldRevision)},
			fetched: []state{anew, at(newRevision), handled}, applies: failed("BuildFailed"),
			err: "Kustomization flux-system/nodes at " + newRevision + ": wait: condition Ready is False: BuildFailed: no such file",
		},
		{
			name: "a fault that may heal is waited for", source: []state{at(oldRevision)}, applied: []state{at(oldRevision)},
			fetched: []state{anew, at(newRevision), handled}, applies: failed("HealthCheckFailed"), took: 10 * time.Minute,
			err: "the time is over; last seen: condition Ready is False: HealthCheckFailed: no such file",
		},
		{
			name: "the older artifact was still in the cache", source: []state{at(oldRevision)}, applied: []state{at(oldRevision)},
			fetched: []state{anew, at(newRevision), handled}, applies: []state{handled, anew, at(newRevision), handled},
		},
		{
			name: "its generation is not observed", source: []state{at(oldRevision)},
			fetched: []state{anew, set(int64(2), "metadata", "generation"), at(newRevision), handled}, took: 10 * time.Minute,
			err: "generation 2 is not reconciled yet (at 1)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := dynamicWorld(t, nil, fluxDocument("GitRepository", "fleet", tt.source...), fluxDocument("Kustomization", "nodes", tt.applied...))
				play(d, gitRepositories, "fleet", tt.fetched...)
				play(d, kustomizations, "nodes", tt.applies...)
				ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Minute, errors.New("the time is over"))
				defer cancel()
				begun := time.Now()
				var said []string
				err := (&Cluster{Dynamic: d}).Reconcile(ctx, fleet, newRevision, func(s string) { said = append(said, s) })
				checkText(t, err, tt.err)
				if tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("%v is not %v", err, tt.is)
				}
				if took := time.Since(begun).Truncate(time.Minute); took != tt.took {
					t.Errorf("it took %s, wanted %s", took, tt.took)
				}
				if len(said) == 0 || !strings.HasPrefix(said[0], "GitRepository flux-system/fleet: ") {
					t.Errorf("said %q", said)
				}
				if o, err := d.Tracker().Get(gitRepositories, "flux-system", "fleet"); err != nil || o.(*unstructured.Unstructured).GetAnnotations()[requestedAt] == "" {
					t.Errorf("nothing was requested of the GitRepository: %v", err)
				}
			})
		})
	}
}

// checkText wants an error with the text, none for "".
func checkText(t *testing.T, err error, text string) {
	t.Helper()
	if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, wanted %q", err, text)
	}
}

func TestReconcileOfNothing(t *testing.T) {
	d := dynamicWorld(t, nil)
	checkText(t, (&Cluster{Dynamic: d}).Reconcile(t.Context(), fleet, newRevision, nil), `request it: gitrepositories.source.toolkit.fluxcd.io "fleet" not found`)
}

func TestReconcileOfDeleted(t *testing.T) {
	d := dynamicWorld(t, nil, fluxDocument("GitRepository", "fleet", at(oldRevision)))
	d.PrependWatchReactor("gitrepositories", func(clienttesting.Action) (bool, watch.Interface, error) {
		w := watch.NewFakeWithChanSize(1, false)
		w.Delete(fluxDocument("GitRepository", "fleet", at(oldRevision)))
		return true, w, nil
	})
	checkText(t, (&Cluster{Dynamic: d}).Reconcile(t.Context(), fleet, newRevision, nil), "it was deleted")
}

func TestReconciled(t *testing.T) {
	tests := []struct {
		name            string
		source, applied []state
		err             string
	}{
		{"both", []state{at(newRevision)}, []state{at(newRevision)}, ""},
		{"both behind", []state{at(oldRevision)}, []state{at(oldRevision)}, "GitRepository flux-system/fleet: at " + oldRevision + ", wanted " + newRevision +
			"\nKustomization flux-system/nodes: at " + oldRevision},
		{"not Ready", []state{at(newRevision)}, []state{condition("Ready", "Unknown", "Progressing", "building")}, "condition Ready is Unknown: Progressing: building"},
		{"suspended", []state{at(newRevision)}, []state{at(newRevision), suspended}, "Kustomization flux-system/nodes: it is suspended"},
		{"nothing reported", []state{at(newRevision)}, nil, "no Ready condition reported"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := dynamicWorld(t, nil, fluxDocument("GitRepository", "fleet", tt.source...), fluxDocument("Kustomization", "nodes", tt.applied...))
			checkText(t, (&Cluster{Dynamic: d}).Reconciled(t.Context(), fleet, newRevision), tt.err)
			for _, a := range d.Actions() {
				if a.GetVerb() != "get" {
					t.Errorf("it does %s", a.GetVerb())
				}
			}
		})
	}
}
