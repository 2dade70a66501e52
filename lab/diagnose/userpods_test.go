package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	joining "k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

func waits(f *[]kube.Pod, namespace, name, node, image string) {
	*f = append(*f, kube.Pod{Namespace: namespace, Name: name, Node: node, Phase: "Pending", Missing: []kube.MissingImage{{Image: image}}})
}

func TestUserPodsWithoutAnImageAreAWarning(t *testing.T) {
	f := healthyFacts(2)
	waits(&f.API.Pods, "default", "web-1", "w1", "nginx:1")
	waits(&f.API.Pods, "default", "web-2", "w1", "nginx:1")
	waits(&f.API.Pods, "default", "web-3", "w2", "nginx:1")
	r, err := NewReport(f)
	if err != nil || r.Failed() || !r.Healthy || len(r.Findings) != 2 {
		t.Fatalf("%v %+v", err, r.Findings)
	}
	for i, want := range []string{"pods default/web-1, default/web-2 on w1 cannot get the image nginx:1", "pod default/web-3 on w2 cannot get the image nginx:1"} {
		got := r.Findings[i]
		if got.Symptom != symptom.ImagePullFailure || got.Level != symptom.Warn || got.Repairable || len(got.Evidence) != 1 || got.Evidence[0].Text != want ||
			!strings.Contains(got.Meaning, "no uplink") || !strings.Contains(got.Hint, "`labctl image load image.tar`") {
			t.Errorf("%+v", got)
		}
	}
	if causes := causesOf(r.Findings); len(causes) != 1 {
		t.Errorf("%d causes, want one for both nodes", len(causes))
	}
}

func TestUserPodsWithAnUplink(t *testing.T) {
	f := healthyFacts(1)
	f.Uplink = true
	waits(&f.API.Pods, "default", "web", "w1", "nginx:1")
	found := Judge(f)
	if len(found) != 1 || strings.Contains(found[0].Meaning, "uplink") || !strings.Contains(found[0].Hint, "registries in cluster.yaml") {
		t.Errorf("%+v", found)
	}
}

// What the registry answers is what the finding says. A mirror in the lab answers without an uplink too.
func TestUserPodsSayWhatTheRegistrySays(t *testing.T) {
	for cause, want := range map[kube.PullCause][2]string{
		kube.PullUnreachable: {"does not answer", "no uplink"}, kube.PullClosed: {"nothing listens", "nothing listens"},
		kube.PullUntrusted: {"certificate", "certificate"}, kube.PullPlain: {"HTTP", "HTTP"},
		kube.PullRefused: {"login", "login"}, kube.PullLimited: {"too many requests", "too many requests"}, kube.PullAbsent: {"does not have", "does not have"},
	} {
		for i, uplink := range []bool{true, false} {
			f := healthyFacts(1)
			f.Uplink = uplink
			f.API.Pods = append(f.API.Pods, kube.Pod{Namespace: "default", Name: "web", Node: "w1", Phase: "Pending", Missing: []kube.MissingImage{{Image: "a:1", Cause: cause}}})
			if found := Judge(f); len(found) != 1 || found[0].Level != symptom.Warn || !strings.Contains(found[0].Meaning, want[i]) {
				t.Errorf("%s, uplink %v: %+v", cause, uplink, found)
			}
		}
	}
}

// A user's pod breaks nothing else, whatever the graph of causes says of images, and hides nothing.
func TestUserPodsExplainNothing(t *testing.T) {
	f := healthyFacts(1)
	waits(&f.API.Pods, "default", "web", "w1", "nginx:1")
	fail(f.Machine("w1"), joining.Check{ID: "cni-plugins", Result: joining.Fixable, Symptom: symptom.NetworkPluginPodsFailing, Evidence: "gone"})
	found := Judge(f)
	if len(found) != 2 || found[0].Symptom != symptom.NetworkPluginPodsFailing || found[0].BecauseOf != "" || found[1].Level != symptom.Warn || found[1].BecauseOf != "" {
		t.Errorf("%+v", found)
	}
}

func TestManyImagesAreCounted(t *testing.T) {
	f := healthyFacts(1)
	for i := range 9 {
		waits(&f.API.Pods, "default", fmt.Sprintf("p%d", i), "w1", fmt.Sprintf("image:%d", i))
	}
	waits(&f.API.Pods, "kube-system", "coredns-1", "w1", "coredns:1") // the cluster's own is judged elsewhere
	found := Judge(f)
	i := slices.IndexFunc(found, func(f symptom.Finding) bool { return ofUserPod(f) })
	if i < 0 || len(found[i].Evidence) != evidenceLimit || found[i].Evidence[evidenceLimit-1].Text != "7 more images are missing in the same way" {
		t.Errorf("%+v", found)
	}
}

func TestPodsThatAreKept(t *testing.T) {
	var pods []kube.Pod
	for i := range mostWaiting + 20 {
		waits(&pods, "default", fmt.Sprintf("p%d", i), "w1", "image:1")
	}
	pods = append(pods, kube.Pod{Namespace: "default", Name: "fine", Ready: true}, kube.Pod{Namespace: "kube-system", Name: "unready"})
	kept := worthKeeping(pods, nil)
	if len(kept) != mostWaiting+1 || kept[mostWaiting].Name != "unready" {
		t.Errorf("%d kept", len(kept))
	}
}
