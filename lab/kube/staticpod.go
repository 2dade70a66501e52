package kube

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// StaticPod is what a manifest in kubelet's directory asks for.
type StaticPod struct {
	Name       string
	Namespace  string
	Containers []StaticContainer
}

// StaticContainer is one container of a StaticPod.
type StaticContainer struct {
	Name    string
	Image   string
	Command []string // with its arguments; none is the image's own
}

// ReadStaticPod reads a manifest as kubelet does. Its error says why kubelet would not run it.
func ReadStaticPod(manifest []byte) (StaticPod, error) {
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(manifest, &pod); err != nil {
		return StaticPod{}, err
	}
	if pod.Kind != "Pod" || pod.APIVersion != "v1" {
		return StaticPod{}, fmt.Errorf("it is %q of %q and not a Pod of v1", pod.Kind, pod.APIVersion)
	}
	if pod.Name == "" || len(pod.Spec.Containers) == 0 {
		return StaticPod{}, fmt.Errorf("it has no name or no container")
	}
	p := StaticPod{Name: pod.Name, Namespace: pod.Namespace}
	for _, c := range pod.Spec.Containers {
		if c.Image == "" {
			return StaticPod{}, fmt.Errorf("container %q has no image", c.Name)
		}
		p.Containers = append(p.Containers, StaticContainer{c.Name, c.Image, append(c.Command, c.Args...)})
	}
	return p, nil
}
