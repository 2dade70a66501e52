package validate

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watchPause is the time before a watch that has ended is begun again.
const watchPause = 200 * time.Millisecond

type watchFunc = func(context.Context, metav1.ListOptions) (watch.Interface, error)

// until calls look until it has seen enough: first when the watch has begun, so that nothing is missed, and then whenever something
// happens. If the context ends, the error is its cause.
func until(ctx context.Context, begin watchFunc, of metav1.ListOptions, look func(context.Context) (enough bool, err error)) error {
	for {
		enough, err := lookOn(ctx, begin, of, look)
		switch {
		case enough:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		}
		timer := time.NewTimer(watchPause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// lookOn is one watch of until. It returns nothing when the server ended the watch, which happens to every watch.
func lookOn(ctx context.Context, begin watchFunc, of metav1.ListOptions, look func(context.Context) (bool, error)) (enough bool, err error) {
	w, err := begin(ctx, of)
	if err != nil {
		return false, err
	}
	defer w.Stop()
	for {
		if enough, err := look(ctx); enough || err != nil {
			return enough, err
		}
		select {
		case <-ctx.Done():
			return false, nil
		case e, ok := <-w.ResultChan():
			if !ok || e.Type == watch.Error {
				return false, nil
			}
		}
	}
}

// found reports whether what was asked for is there.
func found(_ any, err error) (bool, error) {
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// gone is the opposite of found.
func gone(what any, err error) (bool, error) {
	is, err := found(what, err)
	return !is && err == nil, err
}
