package kube

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Lacking are the objects of a manifest, by kind and name, that the cluster does not have, or of which it lacks a value. What others have
// added to an object does not matter, and neither do values at the paths, such as spec.replicas.
func (c *Client) Lacking(ctx context.Context, manifest []byte, except ...string) (names []string, err error) {
	except = append(slices.Clone(ofServer), except...)
	objects, err := parseManifest(manifest)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		resource, err := c.resourceOf(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("compare %s: %w", o, err)
		}
		one, cancel := c.bound(ctx)
		live, err := resource.Get(one, o.GetName(), metav1.GetOptions{})
		cancel()
		switch {
		case apierrors.IsNotFound(err):
			names = append(names, o.String()+" is missing")
		case err != nil:
			return nil, fmt.Errorf("compare %s: %w", o, err)
		default:
			if at := lacks(live.Object, o.Object, "", except); at != "" {
				names = append(names, o.String()+" differs at "+at)
			}
		}
	}
	return names, nil
}

// ofServer are the paths whose values the API server sets. kubeadm's manifests have some of them.
var ofServer = []string{"status", "metadata.resourceVersion", "metadata.uid", "metadata.generation", "metadata.creationTimestamp"}

// lacks is the path of the first value that is not as wanted, "" if none is. An empty wanted value says nothing.
func lacks(is, want any, at string, except []string) string {
	if slices.Contains(except, at) {
		return ""
	}
	switch w := want.(type) {
	case nil:
		return ""
	case map[string]any:
		m, _ := is.(map[string]any)
		for key, value := range w {
			below := key
			if at != "" {
				below = at + "." + key
			}
			if missing := lacks(m[key], value, below, except); missing != "" {
				return missing
			}
		}
		return ""
	case []any:
		l, _ := is.([]any)
		if len(l) != len(w) {
			return at
		}
		for i := range w {
			if missing := lacks(l[i], w[i], at, except); missing != "" {
				return missing
			}
		}
		return ""
	}
	if reflect.DeepEqual(is, want) || is == nil && reflect.ValueOf(want).IsZero() {
		return ""
	}
	if number(is) == number(want) && number(is) != "" {
		return ""
	}
	return at
}

// number is a number's text, whatever its type: a manifest's are int64 or float64.
func number(v any) string {
	switch v.(type) {
	case int64, float64, int:
		return fmt.Sprint(v)
	}
	return ""
}
