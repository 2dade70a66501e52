package config

import (
	"strings"
	"testing"
)

func TestPrograms(t *testing.T) {
	const use = "; use kube-apiserver, kube-controller-manager, kube-proxy, kube-scheduler, kubeadm, kubectl, kubelet"
	const source = "; use a version of three numbers such as v3.6.8, or the absolute path of a directory with the programs or of a checkout"
	const path = "; use the absolute path of the program, of a directory that has it, or of a checkout of Kubernetes"
	runProblemTests(t, []problemTest{
		{"all", plane + "kubernetes: {programs: {kubeadm: /src/kubernetes, kubelet: /tmp/kubelet}}\netcd: {source: v3.6.8}\ncoredns: {source: /src/coredns}\ncontainerd: {source: v2.4.2}", nil},
		{"all wrong", plane + "kubernetes:\n  programs: {kubeadmn: /a, kubelet: a, kubectl: /a/}\netcd: {source: latest}\ncoredns: {source: 'https://x.example'}", []string{
			`3: kubernetes.programs.kubeadmn: "kubeadmn" is not a program of Kubernetes; did you mean "kubeadm"?` + use,
			`3: kubernetes.programs.kubectl: "/a/" is not in its plain form, which is "/a"` + path,
			`3: kubernetes.programs.kubelet: "a" is not an absolute path` + path,
			`4: etcd.source: "latest" is not an absolute path` + source,
			`5: coredns.source: "https://x.example" is not an absolute path` + source,
		}},
		{"of a fetched image", plane + "image: {from: 'r.example/n@sha256:" + strings.Repeat("0", 64) + "'}\netcd: {source: v3.6.8}\nkubernetes: {programs: {kubeadm: /a}}", []string{
			`3: etcd: image.from is an image that was built elsewhere, with programs of its own; keep one of them`,
			`4: kubernetes.programs: image.from is an image that was built elsewhere, with programs of its own; keep one of them`,
		}},
	})
}

func TestFloatingVersions(t *testing.T) {
	runProblemTests(t, []problemTest{
		{"auto of nothing", plane + "kubernetes: {version: auto}",
			[]string{`2: kubernetes.version: auto is the version of a directory, and kubernetes.source is none; use one such as v1.37.2, or a label such as stable-1.37`}},
		{"label of a directory", plane + "kubernetes: {version: ci/latest, source: /a}",
			[]string{`2: kubernetes.version: "ci/latest" is a file on a release server, and kubernetes.source is a directory; use auto, which is the version that the directory has`}},
		{"label of modules", plane + "kubernetes: {version: ci/latest, source: modules}",
			[]string{`2: kubernetes.version: "ci/latest" is on release servers alone, and kubernetes.source is modules; use release, or the version of a release`}},
		{"label of a fetched image", plane + "kubernetes: {version: stable}\nimage: {from: 'r.example/n@sha256:" + strings.Repeat("0", 64) + "'}",
			[]string{`2: kubernetes.version: "stable" stands for a version that is looked up, and image.from has one already; write that`}},
	})
	for text, want := range map[string]string{
		"{source: /a}": VersionAuto, "{source: /a, version: v1.36.3}": "v1.36.3", "{version: ci/latest}": "ci/latest",
		"{version: ci/v1.38.0-alpha.2.411+abc}": "v1.38.0-alpha.2.411+abc",
	} {
		c, _, err := Parse("f", []byte(plane+"kubernetes: "+text))
		if err != nil || c.Kubernetes.Version != want || c.Kubernetes.Floats() != (want == VersionAuto || want == "ci/latest") {
			t.Errorf("%s: got %+v, %v", text, c, err)
		}
	}
}

func TestMoved(t *testing.T) {
	text := "# mine\nname: a\nnodes: [{name: cp1, role: control-plane}]\nkubernetes: {source: /src/k, programs: {kubeadm: /src/k, kubelet: /other}}\netcd: {source: /src/k}\n"
	moved, err := Moved([]byte(text), "a-bisect", "/src/k", "/tmp/tree")
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := Parse("f", moved)
	if err != nil || c.Name != "a-bisect" || c.Kubernetes.Source != "/tmp/tree" || c.Kubernetes.Programs["kubeadm"] != "/tmp/tree" ||
		c.Kubernetes.Programs["kubelet"] != "/other" || c.Etcd.Source != "/tmp/tree" || !c.Network.Auto {
		t.Errorf("got %+v, %v", c, err)
	}
	if moved, err = Moved([]byte(plane), "b", "/src/k", "/tmp/tree"); err != nil || !strings.Contains(string(moved), "name: b\n") {
		t.Errorf("without a name: %s, %v", moved, err)
	}
}
