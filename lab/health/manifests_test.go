package health

import (
	"bytes"
	"testing"

	"sigs.k8s.io/yaml"

	"k8slab/lab/host"
	"k8slab/lab/labtest"
	"k8slab/lab/session"
)

func TestManifests(t *testing.T) {
	for _, uri := range []string{host.Containers, host.VirtualMachines} {
		s := labtest.Session(t, labtest.Onboard)
		s.URI = uri
		t.Run(uri, func(t *testing.T) { testManifests(t, s) })
	}
}

func testManifests(t *testing.T, s *session.Session) {
	text, err := Manifests(s)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{"Namespace /kube-system": true}
	for _, doc := range bytes.Split(text, []byte("\n---\n")) {
		var o struct {
			APIVersion, Kind string
			Metadata         struct{ Name, Namespace string }
			Data             map[string]string
		}
		if _, err := yaml.YAMLToJSONStrict(doc); err != nil {
			t.Errorf("%v:\n%s", err, doc)
		}
		if err := yaml.Unmarshal(doc, &o); err != nil || o.APIVersion == "" || o.Kind == "" || o.Metadata.Name == "" {
			t.Errorf("%+v, %v:\n%s", o, err, doc)
		}
		id := o.Kind + " " + o.Metadata.Namespace + "/" + o.Metadata.Name
		if seen[id] {
			t.Errorf("%s is there twice", id)
		}
		seen[id] = true
		// A namespace has to be there before what is in it.
		if ns := o.Metadata.Namespace; ns != "" && !seen["Namespace /"+ns] {
			t.Errorf("%s comes before its namespace", id)
		}
		if conf, ok := o.Data["net-conf.json"]; ok {
			var net struct{ Network string }
			if err := yaml.Unmarshal([]byte(conf), &net); err != nil || net.Network != "10.200.0.0/20" {
				t.Errorf("flannel's network %q, %v", net.Network, err)
			}
		}
	}
	for _, id := range []string{"DaemonSet kube-flannel/flannel", "DaemonSet " + probeNamespace + "/probe", "Service " + probeNamespace + "/probe"} {
		if !seen[id] {
			t.Errorf("no %s", id)
		}
	}
	if got := seen["DaemonSet kube-system/kube-proxy"]; got != s.Emulated() {
		t.Errorf("kube-proxy's pods ask for processor time: %v", got)
	}
	if !bytes.Contains(text, []byte(`value: "10.32.3.254"`)) || bytes.Contains(text, []byte("{{")) || bytes.Contains(text, []byte("<no value>")) {
		t.Errorf("not filled in:\n%s", text)
	}
}
