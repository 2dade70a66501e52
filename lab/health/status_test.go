package health

import (
	"fmt"
	"slices"
	"testing"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/kube"
)

func TestImageWarnings(t *testing.T) {
	pod := func(namespace, name, node, image string, always bool) kube.Pod {
		return kube.Pod{Namespace: namespace, Name: name, Node: node, Missing: []kube.MissingImage{{Image: image, Always: always}}}
	}
	pods := []kube.Pod{
		{Namespace: "default", Name: "fine", Node: "w1", Ready: true}, pod("kube-system", "coredns", "w1", "coredns:1", false),
		pod("default", "web-1", "w1", "redis:8", false), pod("default", "web-2", "w2", "redis:8", false), pod("shop", "web", "w1", "nginx", true),
	}
	want := []string{
		"pod shop/web on w1 cannot get the image nginx (imagePullPolicy: Always): nodes of this lab have no uplink; next: labctl image load FILE.tar, and another imagePullPolicy",
		"pods default/web-1, default/web-2 on w1, w2 cannot get the image redis:8: nodes of this lab have no uplink; next: labctl image load FILE.tar",
	}
	facts := fact.Facts{API: fact.API{Pods: pods}}
	if got := imageWarnings(facts); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	facts.API.Pods[2].Missing[0].Cause = kube.PullClosed
	if got := imageWarnings(facts)[1]; got != "pod default/web-1 on w1 cannot get the image redis:8; next: labctl diagnose" {
		t.Errorf("a registry that is reached: %q", got)
	}
	facts.API.Pods[2].Missing[0].Cause = kube.PullUnknown
	facts.Uplink = true
	if got := imageWarnings(facts)[1]; got != "pods default/web-1, default/web-2 on w1, w2 cannot get the image redis:8; next: labctl diagnose" {
		t.Errorf("with an uplink: %q", got)
	}
	facts.API.Pods = nil
	for i := range 9 {
		facts.API.Pods = append(facts.API.Pods, pod("default", "p", "w1", fmt.Sprintf("image:%d", i), false))
	}
	if got := imageWarnings(facts); len(got) != mostWarnings+1 || got[mostWarnings] != "pods wait for 4 more images; next: labctl diagnose" {
		t.Errorf("got %q", got)
	}
	if got := imageWarnings(fact.Facts{}); got != nil {
		t.Errorf("got %q of no pods", got)
	}
}
