package kube

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// MissingImage is an image that a container waits for in vain.
type MissingImage struct {
	Image  string
	Always bool // its imagePullPolicy is Always, so that an image that the node has does not help
}

// missingImages are those that the pod's containers cannot get: the pull failed, or is not allowed.
func missingImages(p *corev1.Pod) []MissingImage {
	var missing []MissingImage
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		w := s.State.Waiting
		if w == nil || !slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull"}, w.Reason) {
			continue
		}
		m := MissingImage{Image: s.Image, Always: slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c corev1.Container) bool {
			return c.Name == s.Name && c.ImagePullPolicy == corev1.PullAlways
		})}
		if !slices.Contains(missing, m) {
			missing = append(missing, m)
		}
	}
	return missing
}

// ImageWait is an image with the pods that cannot get it.
type ImageWait struct {
	MissingImage
	Pods []Pod
}

// ImageWaits groups the pods that cannot get an image by that image.
func ImageWaits(pods []Pod) []ImageWait {
	var all []ImageWait
	for _, p := range pods {
		if p.Deleting {
			continue
		}
		for _, m := range p.Missing {
			i := slices.IndexFunc(all, func(w ImageWait) bool { return w.MissingImage == m })
			if i < 0 {
				i = len(all)
				all = append(all, ImageWait{MissingImage: m})
			}
			all[i].Pods = append(all[i].Pods, p)
		}
	}
	slices.SortStableFunc(all, func(a, b ImageWait) int { return cmp.Compare(a.Image, b.Image) })
	return all
}

// podsNamed is how many pods a sentence names.
const podsNamed = 3

// String says which pods, on which nodes, cannot get which image.
func (w ImageWait) String() string {
	var names, nodes []string
	for _, p := range w.Pods {
		names = append(names, p.Namespace+"/"+p.Name)
		if !slices.Contains(nodes, p.Node) {
			nodes = append(nodes, p.Node)
		}
	}
	slices.Sort(names)
	slices.Sort(nodes)
	kind, more := "pods", ""
	if len(names) == 1 {
		kind = "pod"
	}
	if n := len(names) - podsNamed; n > 0 {
		names, more = names[:podsNamed], fmt.Sprintf(" and %d more", n)
	}
	text := fmt.Sprintf("%s %s%s on %s cannot get the image %s", kind, strings.Join(names, ", "), more, strings.Join(nodes, ", "), w.Image)
	if w.Always {
		text += " (imagePullPolicy: Always)"
	}
	return text
}
