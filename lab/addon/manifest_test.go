package addon

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// otherGroups are API groups whose types are in no module of ours. Of their objects only the head is read.
var otherGroups = []string{"apiregistration.k8s.io", "apiextensions.k8s.io", "source.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io", "metallb.io"}

// parse reads the manifest as the API server would with --validate=strict: an unknown or doubled field is an error.
func parse(t *testing.T, manifest []byte) []runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, storagev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	var objects []runtime.Object
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		var head metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(document, &head); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if slices.Contains(otherGroups, head.GroupVersionKind().Group) {
			objects = append(objects, &head)
			continue
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		objects = append(objects, object)
	}
}

func manifestOf(t *testing.T, a Addon) []byte {
	t.Helper()
	text, err := a.Manifest(Values{})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// podOf is the pod template of a workload, and which workload it is.
func podOf(object runtime.Object) (*corev1.PodSpec, Workload) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template.Spec, Workload{Deployment, o.Namespace, o.Name}
	case *appsv1.DaemonSet:
		return &o.Spec.Template.Spec, Workload{DaemonSet, o.Namespace, o.Name}
	}
	return nil, Workload{}
}

// helperPod is the pod that local-path-provisioner makes out of its configuration.
func helperPod(t *testing.T, object runtime.Object) *corev1.PodSpec {
	t.Helper()
	config, ok := object.(*corev1.ConfigMap)
	if !ok || config.Data["helperPod.yaml"] == "" {
		return nil
	}
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(config.Data["helperPod.yaml"]), &pod); err != nil {
		t.Fatal(err)
	}
	return &pod.Spec
}

func TestManifestsNameTheirImagesAndWorkloads(t *testing.T) {
	for _, a := range All() {
		t.Run(a.Name, func(t *testing.T) {
			var images []string
			var workloads []Workload
			for _, object := range parse(t, manifestOf(t, a)) {
				pod, workload := podOf(object)
				if pod != nil {
					workloads = append(workloads, workload)
				} else if pod = helperPod(t, object); pod == nil {
					continue
				}
				for _, c := range append(pod.InitContainers, pod.Containers...) {
					images = append(images, c.Image)
					if c.ImagePullPolicy != corev1.PullNever {
						t.Errorf("%s: pull policy %q: no registry has its image", c.Name, c.ImagePullPolicy)
					}
				}
			}
			slices.Sort(images)
			want := slices.Sorted(slices.Values(a.Images))
			if images = slices.Compact(images); !slices.Equal(images, want) {
				t.Errorf("the manifest names %q, the add-on %q", images, want)
			}
			if !slices.Equal(workloads, a.Workloads) {
				t.Errorf("the manifest has the workloads %v, the add-on %v", workloads, a.Workloads)
			}
		})
	}
}

// Every container gives up what it does not need, and every namespace says what its pods may have.
func TestManifestsAreRestrained(t *testing.T) {
	for _, a := range All() {
		t.Run(a.Name, func(t *testing.T) {
			for _, object := range parse(t, manifestOf(t, a)) {
				if ns, ok := object.(*corev1.Namespace); ok && ns.Labels["pod-security.kubernetes.io/enforce"] == "" {
					t.Errorf("namespace %s has no pod-security level", ns.Name)
				}
				if role, ok := object.(*rbacv1.ClusterRole); ok {
					restrained(t, role)
				}
				pod, workload := podOf(object)
				if pod == nil {
					continue
				}
				if pod.SecurityContext == nil || pod.SecurityContext.RunAsNonRoot == nil || pod.SecurityContext.SeccompProfile == nil {
					t.Errorf("%s may run as root, or without a seccomp profile", workload)
				}
				for _, c := range pod.Containers {
					s := c.SecurityContext
					if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil ||
						s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL") {
						t.Errorf("%s: container %s keeps privileges", workload, c.Name)
					}
				}
			}
		})
	}
}

func restrained(t *testing.T, role *rbacv1.ClusterRole) {
	t.Helper()
	for _, r := range role.Rules {
		if slices.Contains(r.Verbs, "*") || slices.Contains(r.Resources, "*") || slices.Contains(r.Resources, "secrets") {
			t.Errorf("ClusterRole %s may %v %v", role.Name, r.Verbs, r.Resources)
		}
	}
}

// An object is in one manifest: two versions of it would replace each other for ever.
func TestManifestsShareNoObject(t *testing.T) {
	owner := map[string]string{}
	for _, a := range All() {
		for _, object := range parse(t, manifestOf(t, a)) {
			meta := object.(metav1.Object)
			key := object.GetObjectKind().GroupVersionKind().Kind + " " + meta.GetNamespace() + "/" + meta.GetName()
			if owner[key] != "" {
				t.Errorf("%s and %s both have %s", owner[key], a.Name, key)
			}
			owner[key] = a.Name
		}
	}
}

// Prometheus' own {{ }} must come through as they are.
func TestPrometheusRules(t *testing.T) {
	i := slices.IndexFunc(All(), func(a Addon) bool { return a.Name == "prometheus" })
	for _, object := range parse(t, manifestOf(t, All()[i])) {
		config, ok := object.(*corev1.ConfigMap)
		if !ok {
			continue
		}
		var rules struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr string
					Annotations map[string]string
				}
			}
		}
		if err := yaml.Unmarshal([]byte(config.Data["rules.yml"]), &rules); err != nil {
			t.Fatal(err)
		}
		documented, err := os.ReadFile("../../docs/metrics.md")
		if err != nil {
			t.Fatal(err)
		}
		var alerts []string
		for _, r := range rules.Groups[0].Rules {
			alerts = append(alerts, r.Alert)
			if r.Alert == "NodeJoinFailed" && !strings.Contains(string(documented), "\n  expr: "+r.Expr+"\n") {
				t.Errorf("docs/metrics.md has not the rule of %s: %s", r.Alert, r.Expr)
			}
			if !strings.HasPrefix(r.Annotations["summary"], "{{ $labels.node }}: ") {
				t.Errorf("%s: summary %q does not begin with its node", r.Alert, r.Annotations["summary"])
			}
		}
		if !slices.Equal(alerts, []string{"NodeJoinFailed", "NodeExporterDown"}) {
			t.Errorf("alerts %q", alerts)
		}
		return
	}
	t.Error("no ConfigMap")
}
