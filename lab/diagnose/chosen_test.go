package diagnose

import (
	"slices"
	"testing"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/kube"
)

// A cluster may be run without kube-proxy or CoreDNS: then neither the document nor what it is for is there. One of both that is missing is a
// fault, and so is everything else.
func TestWithoutChosen(t *testing.T) {
	const proxy = "kube-system/kube-proxy"
	missing := func(names ...string) (all []kube.WrongDocument) {
		for _, name := range names {
			all = append(all, kube.WrongDocument{Namespace: "kube-system", Name: name, Missing: true})
		}
		return all
	}
	rights := []kube.LostRight{{Addon: "kube-proxy"}, {Addon: "coredns"}, {Addon: ""}}
	dns := []kube.Pod{{Namespace: "kube-system", Name: "coredns-7d"}}
	tests := []struct {
		name              string
		is                fact.API
		documents, rights []string // that are still wrong
		daemonSet         bool     // kube-proxy's is still judged
	}{
		{"neither is wanted", fact.API{Documents: missing("kube-proxy", "coredns", "kubeadm-config"), DaemonSets: map[string]fact.DaemonSet{proxy: {Missing: true}}},
			[]string{"kubeadm-config"}, []string{""}, false},
		{"both run, and their documents are gone", fact.API{Documents: missing("kube-proxy", "coredns"), Pods: dns,
			DaemonSets: map[string]fact.DaemonSet{proxy: {Ready: 3, Want: 3}}}, []string{"kube-proxy", "coredns"}, []string{"kube-proxy", "coredns", ""}, true},
		{"kube-proxy is gone, and its document is there", fact.API{Pods: dns, DaemonSets: map[string]fact.DaemonSet{proxy: {Missing: true}}},
			nil, []string{"kube-proxy", "coredns", ""}, true},
		{"a document that says something else", fact.API{Documents: []kube.WrongDocument{{Namespace: "kube-system", Name: "coredns", Path: "Corefile"}},
			DaemonSets: map[string]fact.DaemonSet{proxy: {}}}, []string{"coredns"}, []string{"kube-proxy", "coredns", ""}, true},
	}
	for _, tt := range tests {
		tt.is.Rights = slices.Clone(rights)
		withoutChosen(&tt.is)
		var documents, left []string
		for _, d := range tt.is.Documents {
			documents = append(documents, d.Name)
		}
		for _, r := range tt.is.Rights {
			left = append(left, r.Addon)
		}
		if _, judged := tt.is.DaemonSets[proxy]; !slices.Equal(documents, tt.documents) || !slices.Equal(left, tt.rights) || judged != tt.daemonSet {
			t.Errorf("%s: documents %q, rights of %q, kube-proxy judged: %v", tt.name, documents, left, judged)
		}
	}
}
