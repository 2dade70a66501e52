package kube

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

const fieldManager = "labctl"

// Apply applies every object of a YAML manifest in its order, server-side and by force, recording the hash of each object's document on it.
// It stops at the first failure; applying again is safe.
func (c *Client) Apply(ctx context.Context, manifest []byte) error {
	objects, err := parseManifest(manifest)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := c.applyObject(ctx, o); err != nil {
			return fmt.Errorf("apply %s: %w", o, err)
		}
	}
	return nil
}

func (c *Client) applyObject(ctx context.Context, o object) error {
	resource, err := c.resourceOf(ctx, o)
	if err != nil {
		return err
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	_, err = resource.Apply(ctx, o.GetName(), o.annotated(), options)
	return err
}

// UpToDate reports whether every object of a manifest exists as last applied
// from that same document. It does not look for changes made since by others.
func (c *Client) UpToDate(ctx context.Context, manifest []byte) (bool, error) {
	objects, err := parseManifest(manifest)
	if err != nil {
		return false, err
	}
	for _, o := range objects {
		if same, err := c.objectUpToDate(ctx, o); err != nil {
			return false, fmt.Errorf("compare %s: %w", o, err)
		} else if !same {
			return false, nil
		}
	}
	return true, nil
}

func (c *Client) objectUpToDate(ctx context.Context, o object) (bool, error) {
	resource, err := c.resourceOf(ctx, o)
	if meta.IsNoMatchError(err) {
		return false, nil // a kind that is not served has no objects
	}
	if err != nil {
		return false, err
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	live, err := resource.Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return live.GetDeletionTimestamp() == nil && live.GetAnnotations()[hashAnnotation] == o.hash, nil
}

// resourceOf finds where an object lives, giving a namespaced one without a namespace the default one.
func (c *Client) resourceOf(ctx context.Context, o object) (dynamic.ResourceInterface, error) {
	gvk := o.GroupVersionKind()
	found, err := c.lookUpKind(ctx, gvk)
	if err != nil {
		return nil, err
	}
	resource := c.dynamic.Resource(gvk.GroupVersion().WithResource(found.Name))
	if !found.Namespaced {
		return resource, nil
	}
	if o.GetNamespace() == "" {
		o.SetNamespace(metav1.NamespaceDefault)
	}
	return resource.Namespace(o.GetNamespace()), nil
}

// lookUpKind finds the resource of a kind, fetching each group version once. client-go's discovery takes no context and asks about every
// group, where one broken aggregated API fails them all; this asks only for what is needed.
func (c *Client) lookUpKind(ctx context.Context, gvk schema.GroupVersionKind) (metav1.APIResource, error) {
	gv := gvk.GroupVersion()
	c.mu.Lock()
	resources := c.resources[gv]
	c.mu.Unlock()
	if r, ok := findKind(resources, gvk.Kind); ok {
		return r, nil
	}
	// Not known, or a kind added since: a definition earlier in the manifest.
	resources, err := c.fetchResources(ctx, gv)
	if err != nil {
		return metav1.APIResource{}, err
	}
	c.mu.Lock()
	c.resources[gv] = resources
	c.mu.Unlock()
	if r, ok := findKind(resources, gvk.Kind); ok {
		return r, nil
	}
	return metav1.APIResource{}, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gv.Version}}
}

func (c *Client) fetchResources(ctx context.Context, gv schema.GroupVersion) ([]metav1.APIResource, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	list := &metav1.APIResourceList{}
	err := c.set.Discovery().RESTClient().Get().AbsPath(path).Do(ctx).Into(list)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("list resources of %s: %w", gv, err)
	}
	return list.APIResources, nil
}

func findKind(resources []metav1.APIResource, kind string) (metav1.APIResource, bool) {
	for _, r := range resources {
		if subresource := strings.Contains(r.Name, "/"); r.Kind == kind && !subresource {
			return r, true
		}
	}
	return metav1.APIResource{}, false
}

// hashAnnotation records which document an object was last applied from.
const hashAnnotation = "k8slab/hash"

// object is one document of a manifest.
type object struct {
	*unstructured.Unstructured
	hash string
}

// String names the object in errors as kind namespace/name.
func (o object) String() string {
	if ns := o.GetNamespace(); ns != "" {
		return o.GetKind() + " " + ns + "/" + o.GetName()
	}
	return o.GetKind() + " " + o.GetName()
}

// parseManifest reads every document; lists are taken apart and documents that hold only comments are skipped.
func parseManifest(manifest []byte) ([]object, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	var objects []object
	for n := 1; ; n++ {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			objects, err = appendDocument(objects, doc)
		}
		if err != nil {
			return nil, fmt.Errorf("parse document %d of manifest: %w", n, err)
		}
	}
	if len(objects) == 0 {
		return nil, errors.New("parse manifest: it holds no objects")
	}
	return objects, nil
}

func appendDocument(objects []object, doc []byte) ([]object, error) {
	raw, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return nil, err
	}
	if string(bytes.TrimSpace(raw)) == "null" {
		return objects, nil
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	if !u.IsList() {
		return appendObject(objects, u)
	}
	err = u.EachListItem(func(item runtime.Object) error {
		objects, err = appendObject(objects, item.(*unstructured.Unstructured))
		return err
	})
	return objects, err
}

func appendObject(objects []object, u *unstructured.Unstructured) ([]object, error) {
	if u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "" {
		return nil, fmt.Errorf("object of kind %q and name %q must have apiVersion, kind and name", u.GetKind(), u.GetName())
	}
	hash, err := hashObject(u)
	if err != nil {
		return nil, fmt.Errorf("hash %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return append(objects, object{Unstructured: u, hash: hash}), nil
}

// hashObject hashes the content of a document, so that comments and the order of keys do not matter: JSON of a map has sorted keys.
func hashObject(u *unstructured.Unstructured) (string, error) {
	canonical, err := json.Marshal(u.Object)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// annotated is the object with its hash recorded on it.
func (o object) annotated() *unstructured.Unstructured {
	u := o.DeepCopy()
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[hashAnnotation] = o.hash
	u.SetAnnotations(annotations)
	return u
}
