package diagnose

import (
	"strings"

	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

func ofUserPod(f symptom.Finding) bool { return strings.HasPrefix(f.Detail, symptom.UserPod) }

// pullTexts say why a pod's image does not come, and what to do about it.
var pullTexts = map[kube.PullCause]struct{ meaning, hint string }{
	kube.PullUnknown: {"A pod waits for an image that its node does not have and cannot pull.",
		"`kubectl describe pod NAME` says what the registry answers. Mirrors, authorities and logins: registries in cluster.yaml."},
	kube.PullUnreachable: {"A pod waits for an image: the registry, or its mirror, does not answer the node.",
		"`crictl pull IMAGE` on the node shows which address it asks."},
	kube.PullClosed: {"A pod waits for an image: nothing listens at the address of the registry, or of its mirror.",
		"Start what should listen there (`crictl pull IMAGE` on the node shows the address), or name another mirror: mirrors of the registry in " +
			"cluster.yaml, or /etc/containerd/certs.d/REGISTRY/hosts.toml."},
	kube.PullUntrusted: {"A pod waits for an image: the node does not believe the registry's certificate.",
		"Name the authority that signed it: ca_file of the registry in cluster.yaml, or ca in /etc/containerd/certs.d/REGISTRY/hosts.toml."},
	kube.PullPlain: {"A pod waits for an image: the registry speaks HTTP, and the node asks it in TLS.",
		"Name it as its own mirror with http://: mirrors of the registry in cluster.yaml, or /etc/containerd/certs.d/REGISTRY/hosts.toml."},
	kube.PullRefused: {"A pod waits for an image: the registry refuses the login, or wants one.",
		"Give the right one: credentials_file of the registry in cluster.yaml, or an imagePullSecret of the pod."},
	kube.PullLimited: {"A pod waits for an image: the registry has had too many requests from this address.",
		"Wait, log in (the limit of a login is higher), or name a mirror of the registry in cluster.yaml."},
	kube.PullProxy: {"A pod waits for an image: the proxy that its node asks does not answer.",
		"Start the proxy, or name another: network.proxy in cluster.yaml; `systemctl show containerd --property=Environment` on the node shows it."},
	kube.PullAbsent: {"A pod waits for an image that the registry does not have.", "Look at the name and tag of the image."},
}

// loadImage is the way out that needs no registry.
const loadImage = "On a computer that has the image: `docker save IMAGE >image.tar`; here: `labctl image load image.tar`. " +
	"The pod's imagePullPolicy must not be Always, which is the default for the tag latest and for no tag."
