package kube

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func waitingPod(name, node, reason, image string, policy corev1.PullPolicy) Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.Spec.NodeName = "default", name, node
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: image, ImagePullPolicy: policy}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "c", Image: image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}},
	}
	return toPod(p)
}

func TestImageWaits(t *testing.T) {
	deleted := waitingPod("bye", "w1", "ErrImagePull", "redis:8", "IfNotPresent")
	deleted.Deleting = true
	pods := []Pod{
		waitingPod("starts", "w1", "ContainerCreating", "redis:8", "IfNotPresent"), deleted,
		waitingPod("d", "w1", "ErrImagePull", "redis:8", "IfNotPresent"), waitingPod("a", "w2", "ImagePullBackOff", "redis:8", "IfNotPresent"),
		waitingPod("c", "w2", "ErrImageNeverPull", "redis:8", "Never"), waitingPod("b", "w1", "ErrImagePull", "redis:8", "IfNotPresent"),
		waitingPod("web", "w1", "ErrImagePull", "nginx", "Always"), waitingPod("crash", "w1", "CrashLoopBackOff", "redis:8", "Always"),
	}
	var got []string
	for _, w := range ImageWaits(pods) {
		got = append(got, w.String())
	}
	want := []string{
		"pod default/web on w1 cannot get the image nginx (imagePullPolicy: Always)",
		"pods default/a, default/b, default/c and 1 more on w1, w2 cannot get the image redis:8",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Messages of containerd 2 and CRI-O, as kubelet passes them on. Those of the faults of registries are of containerd v2.4.2.
func TestPullCause(t *testing.T) {
	const failed = `Back-off pulling image "r.example/a:1": ErrImagePull: failed to pull and unpack image "r.example/a:1": failed to resolve reference "r.example/a:1": `
	const fault = `Back-off pulling image "fault-registry.invalid/shop/web:1": ErrImagePull: failed to pull and unpack image "fault-registry.invalid/shop/web:1": ` +
		`failed to resolve image: `
	for message, want := range map[string]PullCause{
		"": PullUnknown, `Back-off pulling image "r.example/a:1"`: PullUnknown,
		failed + `failed to do request: Head "https://r.example/v2/a/manifests/1": dial tcp 192.0.2.1:443: connect: connection refused`:                              PullClosed,
		failed + `failed to do request: Head "https://r.example/v2/a/manifests/1": dial tcp 192.0.2.1:443: connect: no route to host`:                                PullUnreachable,
		failed + `failed to do request: Head "https://r.example/v2/a/manifests/1": proxyconnect tcp: dial tcp 192.0.2.9:3128: connect: connection refused`:           PullProxy,
		failed + `failed to do request: Head "https://r.example/v2/a/manifests/1": dial tcp: lookup r.example on [::1]:53: read: connection refused`:                 PullUnreachable,
		failed + `failed to do request: Head "https://r.example/v2/a/manifests/1": dial tcp: lookup r.example on 10.30.0.1:53: no such host`:                         PullUnreachable,
		failed + `failed to do request: Head "https://r.example/v2/a/manifests/1": tls: failed to verify certificate: x509: certificate signed by unknown authority`: PullUntrusted,
		failed + `failed to do request: Head "https://r.example/v2/a/manifests/1": http: server gave HTTP response to HTTPS client`:                                  PullPlain,
		failed + `pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials`:                       PullRefused,
		failed + `unexpected status from HEAD request to https://r.example/v2/a/manifests/1: 403 Forbidden`:                                                          PullRefused,
		failed + `unexpected status from HEAD request to https://r.example/v2/a/manifests/1: 429 Too Many Requests`:                                                  PullLimited,
		failed + `r.example/a:1: not found`: PullAbsent,

		fault + `failed to do request: Head "http://127.0.0.1:5959/v2/shop/web/manifests/1?ns=%5BREDACTED%5D": dial tcp 127.0.0.1:5959: connect: connection refused`:                              PullClosed,
		fault + `failed to do request: Head "https://127.0.0.1:5959/v2/shop/web/manifests/1?ns=%5BREDACTED%5D": tls: failed to verify certificate: x509: certificate signed by unknown authority`: PullUntrusted,
		fault + `unexpected status from HEAD request to http://127.0.0.1:5959/v2/shop/web/manifests/1?ns=fault-registry.invalid: 401 Unauthorized`:                                                PullRefused,
		fault + `unexpected status from HEAD request to http://127.0.0.1:5959/v2/shop/web/manifests/1?ns=fault-registry.invalid: 429 Too Many Requests`:                                           PullLimited,

		"reading manifest 1 in r.example/a: toomanyrequests: You have reached your pull rate limit": PullLimited,
		"pinging container registry r.example: received unexpected HTTP status: 500":                PullUnknown,
	} {
		if got := pullCause(message); got != want {
			t.Errorf("%q is %q, want %q", message, got, want)
		}
	}
}

// An init container waits as the others do, and an image that two containers wait for is told of once.
func TestMissingImages(t *testing.T) {
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
	p := &corev1.Pod{Status: corev1.PodStatus{
		InitContainerStatuses: []corev1.ContainerStatus{{Name: "i", Image: "tools:1", State: waiting}},
		ContainerStatuses:     []corev1.ContainerStatus{{Name: "a", Image: "app:1", State: waiting}, {Name: "b", Image: "app:1", State: waiting}},
	}}
	if got := toPod(p).Missing; !slices.Equal(got, []MissingImage{{Image: "tools:1"}, {Image: "app:1"}}) {
		t.Errorf("got %+v", got)
	}
}
