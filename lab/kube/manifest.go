package kube

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

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
