package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// Damage of the cluster's objects. One is written RESOURCE/NAMESPACE/NAME; the namespace of a cluster's own object is empty.

const webhook = "validatingwebhookconfiguration"

// edits are patches that leave an object in place and take away its effect: the kind of the patch, and the patch. That of a ConfigMap
// depends on what is in it.
var edits = map[string][2]string{
	"clusterrole":        {"merge", `{"rules":[]}`},
	"role":               {"merge", `{"rules":[]}`},
	"clusterrolebinding": {"merge", `{"subjects":[]}`},
	"rolebinding":        {"merge", `{"subjects":[]}`},
	"configmap":          {"merge", ""},
	"daemonset":          {"json", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"localhost/damaged:none"}]`},
	"deployment":         {"json", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"localhost/damaged:none"}]`},
	"service":            {"merge", `{"spec":{"selector":{"damaged":"yes"}}}`},
	"lease":              {"merge", `{"spec":{"holderIdentity":"damaged"}}`},
}

var objectGroups = func() (all []group) {
	for _, resource := range slices.Sorted(maps.Keys(edits)) {
		all = append(all, group{resource, []string{"delete", "edit"}})
	}
	return append(all, group{webhook, []string{"add"}})
}()

// systemNamespaces hold what kubeadm and the pod network bring.
var systemNamespaces = []string{"kube-system", "kube-public", "kube-node-lease", "kube-flannel"}

func listObjects(ctx context.Context, t Target, resource, _ string) ([]string, error) {
	if resource == webhook {
		return []string{webhook + "//fault-pods", webhook + "//fault-nodes"}, nil
	}
	out, err := t.kubectl(ctx, "get", resource, "--all-namespaces",
		"--output=jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}{\"\\n\"}{end}")
	var objects []string
	for _, line := range nonEmptyLines(out) {
		namespace, name, _ := strings.Cut(line, "/")
		ofSystem := slices.Contains(systemNamespaces, namespace)
		if namespace == "" {
			ofSystem = strings.HasPrefix(name, "system:") || strings.HasPrefix(name, "kubeadm:")
		}
		if ofSystem {
			objects = append(objects, resource+"/"+line)
		}
	}
	return objects, err
}

// named are the arguments of kubectl that name the object.
func (d Damage) named() []string {
	part := strings.SplitN(d.What, "/", 3)
	args := []string{part[0], part[2]}
	if part[1] != "" {
		args = append(args, "--namespace="+part[1])
	}
	return args
}

// keepObject keeps the object without what the API server fills in.
func keepObject(ctx context.Context, t Target, d *Damage) error {
	if d.How == "add" {
		return nil
	}
	out, err := t.kubectl(ctx, append([]string{"get", "--output=json"}, d.named()...)...)
	var object map[string]any
	if err == nil {
		err = json.Unmarshal([]byte(out), &object)
	}
	if err != nil {
		return err
	}
	delete(object, "status")
	if metadata, ok := object["metadata"].(map[string]any); ok {
		for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "ownerReferences"} {
			delete(metadata, field)
		}
	}
	kept, err := json.Marshal(object)
	d.Before = string(kept)
	return err
}

func makeObject(ctx context.Context, t Target, d Damage) error {
	resource, _, _ := strings.Cut(d.What, "/")
	switch d.How {
	case "add":
		return t.writeObject(ctx, rejects(strings.TrimPrefix(d.What, webhook+"//")))
	case "delete":
		_, err := t.kubectl(ctx, append([]string{"delete", "--wait=false"}, d.named()...)...)
		return err
	}
	patch := edits[resource]
	if resource == "configmap" {
		var err error
		if patch[1], err = d.configMapPatch(); err != nil {
			return err
		}
	}
	_, err := t.kubectl(ctx, append([]string{"patch", "--type=" + patch[0], "--patch=" + patch[1]}, d.named()...)...)
	return err
}

// configMapPatch replaces the first of the ConfigMap's values.
func (d Damage) configMapPatch() (string, error) {
	var object struct{ Data map[string]string }
	if err := json.Unmarshal([]byte(d.Before), &object); err != nil {
		return "", err
	}
	if len(object.Data) == 0 {
		return "", fmt.Errorf("%w: the ConfigMap is empty", errNotApplicable)
	}
	first := slices.Sorted(maps.Keys(object.Data))[0]
	patch, err := json.Marshal(map[string]any{"data": map[string]string{first: "damaged"}})
	return string(patch), err
}

// rejects is a webhook that nothing answers for, and that must be asked before pods are made or nodes change.
func rejects(name string) string {
	resource := strings.TrimPrefix(name, "fault-")
	operations, resources := `["CREATE"]`, `["pods"]`
	if resource == "nodes" {
		operations, resources = `["CREATE", "UPDATE"]`, `["nodes", "nodes/status"]`
	}
	return fmt.Sprintf(`{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": %q}, "webhooks": [{
		"name": "%s.damage.invalid", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": 2,
		"clientConfig": {"url": "https://127.0.0.1:9/"},
		"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": %s, "resources": %s}]}]}`, name, resource, operations, resources)
}

// undoObject writes the object as it was. A lease is left to those who hold it: they make it again, and an old one would cost them the
// lead.
func undoObject(ctx context.Context, t Target, d Damage, _ bool) error {
	switch {
	case d.How == "add":
		return t.admin(ctx, append([]string{"delete", "--ignore-not-found"}, d.named()...)...)
	case strings.HasPrefix(d.What, "lease/"):
		return nil
	}
	return t.writeObject(ctx, d.Before)
}

// writeObject replaces an object, or makes it if it is gone.
func (t Target) writeObject(ctx context.Context, object string) error {
	file, err := os.CreateTemp("", "object-*.json")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, writeErr := file.WriteString(object)
	if err := errors.Join(writeErr, file.Close()); err != nil {
		return err
	}
	_, replaceErr := t.kubectl(ctx, "replace", "--filename="+file.Name())
	if replaceErr == nil {
		return nil
	}
	_, err = t.kubectl(ctx, "create", "--filename="+file.Name())
	if err == nil {
		return nil
	}
	err = errors.Join(replaceErr, err)
	for _, verb := range []string{"replace", "create"} {
		rescueErr := t.superAdmin(ctx, `printf %s "$1" | kubectl --kubeconfig "$0" "$2" --filename=-`, object, verb)
		if rescueErr == nil {
			return nil
		}
		err = errors.Join(err, rescueErr)
	}
	return err
}

// admin runs kubectl as the administrator, who may have lost the rights.
func (t Target) admin(ctx context.Context, args ...string) error {
	_, err := t.kubectl(ctx, args...)
	if err == nil {
		return nil
	}
	rescueErr := t.superAdmin(ctx, `kubectl --kubeconfig "$0" "$@"`, args...)
	if rescueErr == nil {
		return nil
	}
	return errors.Join(err, rescueErr)
}

// superAdmin runs a script on the control plane that has the credentials which need no RBAC. They are its $0.
func (t Target) superAdmin(ctx context.Context, script string, args ...string) error {
	const file = "/etc/kubernetes/super-admin.conf"
	err := fmt.Errorf("no control plane has %s", file)
	for _, m := range t.controlPlanes() {
		if _, none := t.Run(ctx, m.Name, "test", "-e", file); none != nil {
			continue
		}
		if _, err = t.Run(ctx, m.Name, append([]string{"sh", "-ec", script, file}, args...)...); err == nil {
			return nil
		}
	}
	return err
}
