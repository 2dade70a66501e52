package scenarios

import (
	"context"
	"errors"
)

// object is an object of the cluster that a fault changes or deletes.
type object struct {
	namespace string // "" for one of the whole cluster
	name      string // with its kind, as kubectl wants it
	how       string // sed program that changes its YAML; "" deletes it
}

// ofObject begins each script about an object. $1 is its namespace, $2 its name, $3 the sed program.
const ofObject = asAdmin + `
	kept=` + keptFiles + `/objects/$(printf %s "$2" | tr / -).yaml
`

// make changes the object, and keeps it on the control plane as it was.
func (o object) make(ctx context.Context, t Target) error {
	return t.shell(ctx, t.ControlPlane, ofObject+`
		umask 077
		mkdir -p "${kept%/*}"
		kubectl --namespace "$1" get "$2" --output yaml |
			sed '/^  \(resourceVersion\|uid\|creationTimestamp\|generation\): /d' >"$kept"
		test -s "$kept"
		if test -z "$3"; then
			kubectl --namespace "$1" delete "$2" --cascade=foreground --timeout=60s
		else
			sed "$3" "$kept" | kubectl replace --filename -
		fi`, o.namespace, o.name, o.how)
}

// undo makes the object as it was. One that the fault deleted and a recovery made again is left alone.
func (o object) undo(ctx context.Context, t Target) error {
	return t.shell(ctx, t.ControlPlane, ofObject+`
		if ! test -s "$kept"; then
			: nothing was changed
		elif test -n "$3"; then
			kubectl replace --filename "$kept"
		elif test -z "$(kubectl --namespace "$1" get "$2" --ignore-not-found --output name)"; then
			kubectl create --filename "$kept"
		fi
		rm -f "$kept"`+tidy, o.namespace, o.name, o.how)
}

// after does one after the other.
func after(steps ...func(context.Context, Target) error) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		for _, step := range steps {
			if err := step(ctx, t); err != nil {
				return err
			}
		}
		return nil
	}
}

// each does all of them, also when one fails.
func each(steps ...func(context.Context, Target) error) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		var errs []error
		for _, step := range steps {
			errs = append(errs, step(ctx, t))
		}
		return errors.Join(errs...)
	}
}

// renewPods deletes the pods of a workload on the node, so that new ones start.
func renewPods(namespace, selector string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		return t.shell(ctx, t.ControlPlane, asAdmin+`kubectl --namespace "$1" delete pod --selector "$2" "$3" --wait=false`,
			namespace, selector, t.onNode())
	}
}
