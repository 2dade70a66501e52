package image

import "path/filepath"

// Spec says which image.
type Spec struct {
	KubernetesVersion string // vMAJOR.MINOR.PATCH
	KubernetesSource  string // as config.Kubernetes has it
	Labnode           string // path of the labnode binary, which is part of the image
}

// builder collects the parts of one image. Each is cached on its own, so a change of one leaves the others.
type builder struct {
	cache
	dirs     map[string]string // component → directory of its programs
	inputs   []string          // of all the parts
	debian   string
	netTools string
	images   []string // what kubeadm asks for
}

func (b *builder) bin(component, program string) string {
	return filepath.Join(b.dirs[component], program)
}
