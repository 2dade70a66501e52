package join

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// checkImages looks for the images that came with the machine's image, and for those that its first pods need. One of the latter is only
// a warning, because kubeadm pulls it, unless it was told never to pull.
func checkImages(ctx context.Context, p *preflight) Check {
	facts, err := p.cri(ctx)
	if err != nil {
		return unmade(errRuntime)
	}
	if facts.imagesErr != nil {
		return unmade(fmt.Errorf("list images: %w", facts.imagesErr))
	}
	if lost, err := p.m.lostImages(facts.images); err == nil && len(lost) > 0 {
		return fixable(symptom.ImagePullFailure, "labnode repair imports them from the node's own copy",
			"containerd no longer has %s, which came with the node's image and no registry has", imageNames(lost))
	}
	sandbox := ""
	if runtimeAt(facts.socket).unit == "containerd" {
		sandbox = configuredSandbox(p.m)
	}
	if sandbox != "" && !slices.Contains(facts.images, sandbox) && len(matching(facts.images, "pause", "")) > 0 {
		return warn(symptom.SandboxImageMisconfigured, "set the sandbox image in "+containerdConfig+" to one that is here; systemctl restart containerd",
			"%s names the sandbox image %s, which is not here; here is %s", containerdConfig, sandbox, strings.Join(matching(facts.images, "pause", ""), ", "))
	}
	config, configErr := p.clusterConfig(ctx) // a zero one leaves the version open
	missing := missingImages(p.t, facts.images, config)
	if len(missing) == 0 {
		if configErr != nil {
			return ok("there, of unknown version: the cluster's is not known")
		}
		return ok("there, %s", config.KubernetesVersion)
	}
	c := warn(symptom.ImagePullFailure, "kubeadm pulls them, which needs a way to the registry; else: kubeadm config images pull, or ctr -n k8s.io images import",
		"not here: %s", strings.Join(missing, ", "))
	if strings.EqualFold(p.t.ImagePullPolicy, "Never") {
		c.Result, c.Hint = Blocked, "import them: ctr -n k8s.io images import FILE"
		c.Evidence += "; and imagePullPolicy is Never"
	}
	return c
}

// missingImages names what is not in images. Any pause and etcd image will do: their versions follow kubeadm's and not the cluster's.
func missingImages(t Target, images []string, config kube.ClusterConfiguration) []string {
	needed := map[string]string{"pause": "", "kube-proxy": config.KubernetesVersion}
	if t.ControlPlane {
		needed["etcd"] = ""
		for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
			needed[component] = config.KubernetesVersion
		}
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		if len(matching(images, name, needed[name])) == 0 {
			missing = append(missing, strings.TrimSuffix(name+":"+needed[name], ":"))
		}
	}
	return missing
}

// matching are the images of that name, in any repository, with the tag unless it is empty.
func matching(images []string, name, tag string) []string {
	return slices.DeleteFunc(slices.Clone(images), func(image string) bool {
		colon := strings.LastIndexByte(image, ':')
		if colon < 0 {
			return true
		}
		path := image[:colon]
		return path[strings.LastIndexByte(path, '/')+1:] != name || tag != "" && image[colon+1:] != tag
	})
}
