package validate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
)

// apiWithKubelet is an API server that has the node w1, and passes what its kubelet says of its configuration.
func apiWithKubelet(t *testing.T, status int, configz string) kubernetes.Interface {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/nodes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(corev1.NodeList{Items: []corev1.Node{*member("w1", "192.0.2.1")}})
	})
	mux.HandleFunc("GET /api/v1/nodes/w1/proxy/configz", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(configz))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestKubeletClosed(t *testing.T) {
	tests := []struct {
		name    string
		code    int
		configz string
		status  Status
		words   string
	}{
		{"closed", 200, `{"kubeletconfig":{"authentication":{"anonymous":{"enabled":false}},"authorization":{"mode":"Webhook"}}}`, Passed, "w1: no anonymous requests"},
		{"open", 200, `{"kubeletconfig":{"authentication":{"anonymous":{"enabled":true}},"authorization":{"mode":"Webhook"}}}`, Failed, "w1: anonymous requests are let in"},
		{"always allowed", 200, `{"kubeletconfig":{"authentication":{"anonymous":{"enabled":false}},"authorization":{"mode":"AlwaysAllow"}}}`, Failed, "mode is AlwaysAllow"},
		{"something else", 200, `{}`, Failed, "says nothing about anonymous requests"},
		{"no JSON", 200, `<html>`, Failed, "w1: read the kubelet's configuration"},
		{"no way there", 502, `dial tcp: no route`, Failed, "w1: read the kubelet's configuration through the API server"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &Cluster{Kube: apiWithKubelet(t, tt.code, tt.configz), Dynamic: dynamicWorld(t, nil)}
			f := look(t, c.SecurityChecks("w1"), "is set to refuse")
			f.Next += "."
			checkFinding(t, f, tt.status, tt.words)
		})
	}
}

func TestKubeletRefuses(t *testing.T) {
	c := &Cluster{Kube: fake.NewClientset(member("w1", "192.0.2.1")), Dynamic: dynamicWorld(t, nil)}
	checkFinding(t, look(t, c.SecurityChecks("w1"), "without credentials"), NotApplicable, "not reached from here")
	for code, want := range map[int]Status{http.StatusUnauthorized: Passed, http.StatusForbidden: Passed, http.StatusOK: Failed, http.StatusNotFound: Failed} {
		kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/pods" || r.Header.Get("Authorization") != "" || len(r.TLS.PeerCertificates) > 0 {
				t.Errorf("asked for %s with %v", r.URL, r.Header)
			}
			w.WriteHeader(code)
		}))
		defer kubelet.Close()
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != "192.0.2.1:10250" {
				t.Errorf("dialled %s", address)
			}
			return (&net.Dialer{}).DialContext(ctx, network, kubelet.Listener.Addr().String())
		}
		checkFinding(t, look(t, c.SecurityChecks("w1"), "without credentials"), want, fmt.Sprintf("w1 answers %d", code))
	}
	c.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route to host") }
	f := look(t, c.SecurityChecks("w1"), "without credentials")
	f.Next += "."
	checkFinding(t, f, Failed, "w1: ask the kubelet", "no route to host")
}
