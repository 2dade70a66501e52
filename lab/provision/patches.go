package provision

import (
	"context"
	"maps"
	"strings"

	"sigs.k8s.io/yaml"

	"k8slab/config"
	"k8slab/lab/image"
	"k8slab/lab/session"
)

// PatchesDir is the node's directory with kubeadm's patches, a part of the node's own files. lab/join looks for it there.
const PatchesDir = "/usr/share/k8slab/patches"

// Patches are what kubeadm patches on the node: by names of files in PatchesDir, without .yaml. None stands for a node without patches of
// its own.
func Patches(s *session.Session, n config.Node) map[string]any {
	patches := map[string]any{}
	if kubelet := s.Cluster.OptionsOf(n).Kubelet; len(kubelet) > 0 {
		patches["kubeletconfiguration+merge"] = kubelet
	}
	if n.Role == config.ControlPlane {
		maps.Copy(patches, s.Cluster.Kubernetes.Kubeadm.Patches)
	}
	return patches
}

// patchFiles are the node's files of Patches. kubeadm takes one directory, so an emulated control plane has the image's patches there too.
func patchFiles(s *session.Session, n config.Node) (map[string]seedFile, error) {
	files := map[string]seedFile{}
	add := func(name, text string) {
		files[strings.TrimPrefix(PatchesDir, "/")+"/"+name+".yaml"] = seedFile{0o600, text}
	}
	patches := Patches(s, n)
	if len(patches) > 0 && s.Emulated() && n.Role == config.ControlPlane {
		slow, err := image.SlowProbesPatches()
		if err != nil {
			return nil, err
		}
		for target, text := range slow {
			add(target+"0k8slab", text) // kubeadm applies the names in their order, and the file's may come after
		}
	}
	for name, patch := range patches {
		text, err := yaml.Marshal(patch)
		if err != nil {
			return nil, err
		}
		add(name, string(text))
	}
	return files, nil
}

// WritePatches gives a machine that runs the patches of its node.
func WritePatches(ctx context.Context, s *session.Session, n config.Node) error {
	files, err := patchFiles(s, n)
	if err != nil {
		return err
	}
	on := s.Nodes[n.Name]
	if err := session.Do(ctx, on, "rm", "-rf", PatchesDir); err != nil {
		return err
	}
	for name, f := range files {
		if err := on.Copy(ctx, "/"+name, f.mode, strings.NewReader(f.text)); err != nil {
			return err
		}
	}
	return nil
}
