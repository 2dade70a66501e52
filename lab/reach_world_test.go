package lab

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"k8slab/lab/labtest"
	"k8slab/lab/reach"
)

// A Service is reached through a port of this computer until stop is called, and nothing is changed.
func TestOpenService(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		w.change(func() {
			for name, port := range map[string]int{"web": 8080, "empty": 81} {
				w.objects["/api/v1/namespaces/shop/services/"+name] = object{"apiVersion": "v1", "kind": "Service",
					"metadata": object{"name": name, "namespace": "shop"},
					"spec":     object{"clusterIP": "10.96.0.99", "type": "LoadBalancer", "ports": []object{{"port": port}, {"port": 53, "protocol": "UDP"}}}}
			}
			w.deaf = []string{"the answer"}
		})
		services, err := w.lab.Services(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := services.Open(t.Context(), reach.Target{Service: "empty", Listen: "127.0.0.1:0"}); err == nil ||
			!strings.Contains(err.Error(), "service shop/empty, port 81, to answer: 10s budget ran out") || !strings.Contains(err.Error(), "next: labctl kubectl get endpointslices -n shop") {
			t.Errorf("nobody behind it: %v", err)
		}
		failures := make(chan error, 10)
		o, stop, err := services.Open(t.Context(), reach.Target{Service: "web", Listen: "127.0.0.1:0", Failed: func(err error) { failures <- err }})
		if err != nil {
			t.Fatal(err)
		}
		if o.Service != "shop/web" || o.Port != 8080 || o.URL != "http://"+o.Address || !strings.HasPrefix(o.Address, "127.0.0.1:") {
			t.Errorf("%+v", o)
		}
		if _, _, err := services.Open(t.Context(), reach.Target{Service: "web", Listen: o.Address}); err == nil || !strings.Contains(err.Error(), "next: name another port with --listen") {
			t.Errorf("a port that is taken: %v", err)
		}
		if answer := get(t, o.URL); !strings.Contains(answer, "the answer") {
			t.Errorf("it says %q", answer)
		}
		w.change(func() { w.fails = func(string) error { return errors.New("the test's failure") } })
		if answer := get(t, o.URL); answer != "" || len(failures) == 0 {
			t.Errorf("a connection that fails: %q, %d failures", answer, len(failures))
		}
		w.change(func() { w.fails = nil })
		stop()
		if _, err := net.Dial("tcp", o.Address); err == nil {
			t.Error("after stop somebody listens")
		}
		if len(w.lab.Changes()) > 0 {
			t.Errorf("changes %q", w.lab.Changes())
		}
	})
}

// get is what the URL answers, "" for nothing.
func get(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}
