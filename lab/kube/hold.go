package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8slab/lab/wait"
)

// The Lease that keeps two administrators apart, and its times. Who finds one that seems to have run out looks again for leaseDoubt, because
// the clocks of two computers may differ: a holder that lives renews it in that time.
const (
	leaseName     = "k8slab"
	leaseDuration = 60 * time.Second
	leaseRenewal  = 15 * time.Second
	leaseRetry    = 4 * time.Second // after a renewal that failed
	leaseDoubt    = leaseRenewal + 5*time.Second
)

// HeldError says that somebody else changes the cluster.
type HeldError struct {
	Holder         string // USER@HOST and the verb
	Since, Renewed time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s changes the cluster since %s, last seen at %s; nothing was changed; next: wait for its end, and run this again; "+
		"if that computer is gone, its Lease runs out %s after it was last seen, or delete it: kubectl -n %s delete lease %s", e.Holder,
		e.Since.Local().Format(time.DateTime), e.Renewed.Local().Format(time.TimeOnly), leaseDuration, metav1.NamespaceSystem, leaseName)
}

// errLeaseDeleted says that the Lease went away under its holder, as HeldError's advice has it.
var errLeaseDeleted = errors.New("somebody deleted it")

// Unanswered tells whether an error of HoldLease says that no API server could answer, as opposed to one that said no. A cluster in that
// state needs its repairs, so its caller goes on, with a warning.
func Unanswered(err error) bool {
	if _, held := errors.AsType[*HeldError](err); held || err == nil || errors.Is(err, errLeaseDeleted) {
		return false
	}
	status, answered := errors.AsType[*apierrors.StatusError](err)
	if !answered {
		return true
	}
	code := status.ErrStatus.Code // a client certificate that has run out is refused, and is to be repaired
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || code == http.StatusUnauthorized
}

// ownerMark is the Lease's annotation with the owner of HoldLease.
const ownerMark = "k8slab/state"

// HoldLease takes the Lease kube-system/k8slab, and renews it until release, which deletes it. holder is USER@HOST and the verb. owner marks
// whoever may have one command at a time, by a lock of its own: a Lease with that mark is of a command that was killed, and is taken. Changes are
// made with the context that is returned: it ends, with the reason as its cause, when the Lease is another's, or could not be renewed for as
// long as it lasts. If another has the Lease the error is a *HeldError.
func (c *Client) HoldLease(ctx context.Context, holder, owner string) (held context.Context, release func(context.Context) error, err error) {
	h := &leaseHold{c: c, holder: holder, owner: owner}
	if err := h.take(ctx); err != nil {
		return nil, nil, fmt.Errorf("take the Lease %s/%s: %w", metav1.NamespaceSystem, leaseName, err)
	}
	held, lose := context.WithCancelCause(ctx)
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx)) // an interrupted verb still cleans up
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := h.keep(renewing); err != nil {
			lose(fmt.Errorf("the Lease %s/%s is lost, so that another may change the cluster: %w; next: run this again",
				metav1.NamespaceSystem, leaseName, err))
		}
	}()
	return held, func(ctx context.Context) error {
		stop()
		<-ended
		lose(nil)
		return h.end(ctx)
	}, nil
}

// leaseHold is one hold of the Lease.
type leaseHold struct {
	c             *Client
	holder, owner string
	lease         *coordinationv1.Lease // as last written
	renewed       time.Time             // when that was
}

// write creates or updates the Lease, and understands a repeated request whose first answer was lost.
func (h *leaseHold) write(ctx context.Context, lease *coordinationv1.Lease) error {
	now := time.Now()
	lease.Spec.RenewTime = micro(now)
	bounded, cancel := h.c.bound(ctx)
	defer cancel()
	leases := h.c.set.CoordinationV1().Leases(metav1.NamespaceSystem)
	do := func() (*coordinationv1.Lease, error) {
		if lease.ResourceVersion == "" {
			return leases.Create(bounded, lease, metav1.CreateOptions{FieldManager: fieldManager})
		}
		return leases.Update(bounded, lease, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	written, err := do()
	if err == nil {
		h.lease, h.renewed = written, now
		return nil
	}
	if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return err
	}
	is, getErr := h.read(ctx)
	switch {
	case getErr != nil:
		return getErr
	case is == nil:
		return errLeaseDeleted
	case !h.mine(is, lease):
		return heldBy(is)
	}
	h.lease, h.renewed = is, now
	return nil
}

// micro is the time as a Lease has it: without what it loses there, so that it can be compared.
func micro(t time.Time) *metav1.MicroTime {
	m := metav1.NewMicroTime(t.Truncate(time.Microsecond))
	return &m
}

// read is the Lease, nil when there is none.
func (h *leaseHold) read(ctx context.Context) (*coordinationv1.Lease, error) {
	ctx, cancel := h.c.bound(ctx)
	defer cancel()
	is, err := h.c.set.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, leaseName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return is, err
}

// mine tells whether the Lease is the one that this hold wrote: two of one user's commands have the same holder.
func (h *leaseHold) mine(is, wrote *coordinationv1.Lease) bool {
	return is.Spec.HolderIdentity != nil && *is.Spec.HolderIdentity == h.holder && is.Spec.AcquireTime.Equal(wrote.Spec.AcquireTime)
}

func heldBy(l *coordinationv1.Lease) error {
	e := &HeldError{Holder: "somebody"}
	if s := l.Spec; s.HolderIdentity != nil && *s.HolderIdentity != "" {
		e.Holder = *s.HolderIdentity
	}
	if t := l.Spec.AcquireTime; t != nil {
		e.Since = t.Time
	}
	if t := l.Spec.RenewTime; t != nil {
		e.Renewed = t.Time
	}
	return e
}

// free tells whether nobody claims the Lease, by this computer's clock.
func free(l *coordinationv1.Lease) bool {
	s := l.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity == "" || s.RenewTime == nil {
		return true
	}
	lasts := leaseDuration
	if s.LeaseDurationSeconds != nil {
		lasts = time.Duration(*s.LeaseDurationSeconds) * time.Second
	}
	return time.Since(s.RenewTime.Time) > lasts
}

func (h *leaseHold) take(ctx context.Context) error {
	is, err := h.read(ctx)
	if err != nil {
		return err
	}
	if is != nil && is.Annotations[ownerMark] != h.owner {
		if !free(is) {
			return heldBy(is)
		}
		if is.Spec.HolderIdentity != nil && *is.Spec.HolderIdentity != "" {
			if is, err = h.doubt(ctx, is); err != nil {
				return err
			}
		}
	}
	if is == nil {
		is = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName, Namespace: metav1.NamespaceSystem}}
	}
	metav1.SetMetaDataAnnotation(&is.ObjectMeta, ownerMark, h.owner)
	seconds := int32(leaseDuration / time.Second)
	is.Spec = coordinationv1.LeaseSpec{HolderIdentity: &h.holder, LeaseDurationSeconds: &seconds, AcquireTime: micro(time.Now())}
	return h.write(ctx, is)
}

// doubt watches a Lease that seems to have run out. It returns what is there in the end.
func (h *leaseHold) doubt(ctx context.Context, seen *coordinationv1.Lease) (is *coordinationv1.Lease, err error) {
	begin, what := time.Now(), "the Lease of "+*seen.Spec.HolderIdentity+" to run out"
	err = wait.For(ctx, what, leaseDoubt+h.c.timeout, leaseDoubt/4, func(ctx context.Context) error {
		if is, err = h.read(ctx); err != nil {
			return wait.Hopeless(err)
		}
		switch {
		case is == nil || is.Spec.HolderIdentity == nil || *is.Spec.HolderIdentity == "": // its holder ended
			return nil
		case is.ResourceVersion != seen.ResourceVersion:
			return wait.Hopeless(heldBy(is))
		case time.Since(begin) < leaseDoubt:
			return errors.New("it may be that the clock of its holder is behind")
		}
		return nil
	})
	return is, err
}

// keep renews the Lease until ctx ends, which is no error, or the Lease is lost.
func (h *leaseHold) keep(ctx context.Context) error {
	tick := time.NewTicker(leaseRenewal)
	defer tick.Stop()
	var last error
	for {
		limited, cancel := context.WithDeadline(ctx, h.renewed.Add(leaseDuration))
		select {
		case <-limited.Done():
		case <-tick.C:
			tick.Reset(leaseRenewal)
			if last = h.write(limited, h.lease.DeepCopy()); last != nil {
				tick.Reset(leaseRetry)
			}
		}
		late := limited.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case last != nil && (late || !Unanswered(last)):
			return last
		case late:
			return fmt.Errorf("it was not renewed for %s", leaseDuration)
		}
	}
}

// end deletes the Lease, unless it is another's by now.
func (h *leaseHold) end(ctx context.Context) error {
	is, err := h.read(ctx)
	if err == nil && (is == nil || !h.mine(is, h.lease)) {
		return nil
	}
	if err == nil {
		bounded, cancel := h.c.bound(ctx)
		defer cancel()
		only := &metav1.Preconditions{UID: &is.UID, ResourceVersion: &is.ResourceVersion}
		err = h.c.set.CoordinationV1().Leases(metav1.NamespaceSystem).Delete(bounded, leaseName, metav1.DeleteOptions{Preconditions: only})
	}
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("release the Lease %s/%s, which runs out in %s: %w", metav1.NamespaceSystem, leaseName, leaseDuration, err)
}
