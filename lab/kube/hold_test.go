package kube

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// leaseStore is an API server's one Lease, with resource versions.
type leaseStore struct {
	mu      sync.Mutex
	is      *coordinationv1.Lease
	version int
	fail    error // of every request
	lose    int   // so many answers to writes are lost
}

func (s *leaseStore) put(l *coordinationv1.Lease) *coordinationv1.Lease {
	s.version++
	s.is = l.DeepCopy()
	s.is.ResourceVersion, s.is.UID = strconv.Itoa(s.version), "u"
	return s.is.DeepCopy()
}

func (s *leaseStore) react(a clienttesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := coordinationv1.Resource("leases")
	if s.fail != nil {
		return true, nil, s.fail
	}
	if a.GetVerb() != "create" && s.is == nil {
		return true, nil, apierrors.NewNotFound(kind, leaseName)
	}
	switch a := a.(type) {
	case clienttesting.CreateAction:
		l := a.GetObject().(*coordinationv1.Lease)
		if a.GetVerb() == "create" && s.is != nil {
			return true, nil, apierrors.NewAlreadyExists(kind, leaseName)
		}
		if a.GetVerb() == "update" && l.ResourceVersion != s.is.ResourceVersion {
			return true, nil, apierrors.NewConflict(kind, leaseName, errors.New("changed"))
		}
		written := s.put(l)
		if s.lose > 0 { // the repeated request meets what the first one wrote
			s.lose--
			if a.GetVerb() == "create" {
				return true, nil, apierrors.NewAlreadyExists(kind, leaseName)
			}
			return true, nil, apierrors.NewConflict(kind, leaseName, errors.New("changed"))
		}
		return true, written, nil
	case clienttesting.DeleteActionImpl:
		if p := a.DeleteOptions.Preconditions; p == nil || *p.ResourceVersion != s.is.ResourceVersion || *p.UID != s.is.UID {
			return true, nil, apierrors.NewConflict(kind, leaseName, errors.New("changed"))
		}
		s.is = nil
		return true, nil, nil
	}
	return true, s.is.DeepCopy(), nil
}

func (s *leaseStore) client() *Client {
	set := fake.NewClientset()
	set.PrependReactor("*", "leases", s.react)
	return Of(set)
}

// as changes the store as another client does.
func (s *leaseStore) as(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func leaseOf(holder string, renewed time.Time) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName, Namespace: metav1.NamespaceSystem}}
	seconds := int32(60)
	l.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: micro(renewed), RenewTime: micro(renewed)}
	return l
}

const us, ours = "ann@desk: labctl repair", "6f1c"

func TestHoldLease(t *testing.T) {
	tests := map[string]struct {
		found   func(s *leaseStore) // before
		holder  string              // who has it then, if it is refused
		waits   bool
		refused func(error) bool
	}{
		"absent":                {found: func(*leaseStore) {}},
		"absent, answer lost":   {found: func(s *leaseStore) { s.lose = 1 }},
		"released":              {found: func(s *leaseStore) { s.put(leaseOf("", time.Now())) }},
		"held":                  {found: func(s *leaseStore) { s.put(leaseOf("bob@lap: labctl up", time.Now().Add(-50*time.Second))) }, holder: "bob@lap: labctl up"},
		"held by the same user": {found: func(s *leaseStore) { s.put(leaseOf(us, time.Now().Add(-time.Second))) }, holder: us},
		"held by a command of ours that was killed": {found: func(s *leaseStore) {
			l := leaseOf("ann@desk: labctl up", time.Now().Add(-time.Second))
			l.Annotations = map[string]string{ownerMark: ours}
			s.put(l)
		}},
		"run out": {found: func(s *leaseStore) { s.put(leaseOf("bob@lap: labctl up", time.Now().Add(-61*time.Second))) }, waits: true},
		"a clock is behind": {found: func(s *leaseStore) {
			l := s.put(leaseOf("bob@lap: labctl up", time.Now().Add(-time.Hour)))
			time.AfterFunc(12*time.Second, func() { s.as(func() { s.put(l) }) })
		}, holder: "bob@lap: labctl up", waits: true},
		"released while it is watched": {found: func(s *leaseStore) {
			s.put(leaseOf("bob@lap: labctl up", time.Now().Add(-time.Hour)))
			time.AfterFunc(time.Second, func() { s.as(func() { s.is = nil }) })
		}, waits: true},
		"no answer": {found: func(s *leaseStore) { s.fail = errors.New("connection refused") }, refused: Unanswered},
		"no quorum": {found: func(s *leaseStore) { s.fail = apierrors.NewInternalError(errors.New("etcdserver: no leader")) }, refused: Unanswered},
		"no rights": {found: func(s *leaseStore) {
			s.fail = apierrors.NewForbidden(coordinationv1.Resource("leases"), leaseName, nil)
		}, refused: func(err error) bool { return !Unanswered(err) }},
		"old client": {found: func(s *leaseStore) { s.fail = apierrors.NewUnauthorized("expired") }, refused: Unanswered},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &leaseStore{}
				tt.found(s)
				begin := time.Now()
				held, release, err := s.client().HoldLease(t.Context(), us, ours)
				if waited := time.Since(begin) > 0; waited != tt.waits {
					t.Errorf("it took %s", time.Since(begin))
				}
				if tt.holder != "" {
					other, is := errors.AsType[*HeldError](err)
					if !is || other.Holder != tt.holder || Unanswered(err) || !strings.Contains(err.Error(), "next: wait") || !strings.Contains(err.Error(), tt.holder+" changes") {
						t.Errorf("got %v", err)
					}
					return
				}
				if tt.refused != nil {
					if err == nil || !tt.refused(err) {
						t.Errorf("got %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Minute) // it is renewed
				s.as(func() {
					if *s.is.Spec.HolderIdentity != us || free(s.is) || time.Since(s.is.Spec.RenewTime.Time) > leaseRenewal {
						t.Errorf("after 5 minutes: %+v", s.is.Spec)
					}
				})
				if held.Err() != nil {
					t.Error(context.Cause(held))
				}
				if err := release(t.Context()); err != nil || s.is != nil || held.Err() == nil {
					t.Errorf("%v, left %+v", err, s.is)
				}
				if err := release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A holder stops when the Lease is another's, at once, or cannot be renewed, when it has run out. It deletes no other's.
func TestLeaseIsLost(t *testing.T) {
	tests := map[string]struct {
		change func(s *leaseStore)
		after  time.Duration // 0: it is kept
		says   string
	}{
		"taken":     {func(s *leaseStore) { s.put(leaseOf("bob@lap: labctl up", time.Now())) }, leaseRenewal, "bob@lap: labctl up changes the cluster"},
		"deleted":   {func(s *leaseStore) { s.is = nil }, leaseRenewal, "somebody deleted it"},
		"no answer": {func(s *leaseStore) { s.fail = errors.New("connection refused") }, leaseDuration, "connection refused"},
		"forbidden": {func(s *leaseStore) {
			s.fail = apierrors.NewForbidden(coordinationv1.Resource("leases"), leaseName, nil)
		}, leaseRenewal, "forbidden"},
		"an answer was lost": {func(s *leaseStore) { s.lose = 1 }, 0, ""},
		"a short silence": {func(s *leaseStore) {
			s.fail = errors.New("connection refused")
			time.AfterFunc(50*time.Second, func() { s.as(func() { s.fail = nil }) })
		}, 0, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &leaseStore{}
				begin := time.Now()
				held, release, err := s.client().HoldLease(t.Context(), us, ours)
				if err != nil {
					t.Fatal(err)
				}
				s.as(func() { tt.change(s) })
				limit := time.NewTimer(10 * time.Minute)
				select {
				case <-held.Done():
				case <-limit.C:
				}
				cause := context.Cause(held)
				if tt.after == 0 {
					if cause != nil {
						t.Error(cause)
					}
				} else if cause == nil || !strings.Contains(cause.Error(), tt.says) || time.Since(begin) != tt.after {
					t.Errorf("after %s: %v", time.Since(begin), cause)
				}
				var left *coordinationv1.Lease
				s.as(func() { left = s.is })
				err = release(t.Context())
				if name == "taken" && s.is != left {
					t.Error("it deleted another's")
				}
				if (err != nil) != (s.fail != nil) {
					t.Error(err)
				}
			})
		})
	}
}

// The Lease's own writes are changes like all others.
func TestLeaseIsReported(t *testing.T) {
	const path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
	f := newFakeAPI(t)
	f.on("GET "+path+"/k8slab", 404, notFound())
	lease := fields{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": fields{"name": "k8slab", "uid": "u", "resourceVersion": "1"}, "spec": fields{"holderIdentity": us}}
	f.on("POST "+path, 201, lease)
	f.on("DELETE "+path+"/k8slab", 200, fields{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	c, rec := f.client()
	_, release, err := c.HoldLease(t.Context(), us, ours)
	if err != nil {
		t.Fatal(err)
	}
	f.on("GET "+path+"/k8slab", 200, lease)
	if err := release(t.Context()); err != nil {
		t.Error(err)
	}
	rec.want(t, "kube POST "+path, "kube DELETE "+path+"/k8slab")
}
