package image

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/event"
)

func TestSettle(t *testing.T) {
	texts := map[string]string{
		"/release/stable-1.36.txt": "v1.36.3\n", "/ci/latest.txt": "v1.38.0-alpha.2.411+abcdef0123456\n", "/mirror/latest.txt": "v1.37.0", "/release/latest-1.txt": "../../x",
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if texts[r.URL.Path] == "" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(texts[r.URL.Path]))
	}))
	t.Cleanup(server.Close)
	dir := release(t)
	for _, tt := range []struct{ version, source, want, refused string }{
		{version: "v1.36.1", source: "auto", want: "v1.36.1"},
		{version: "stable-1.36", source: "auto", want: "v1.36.3"},
		{version: "ci/latest", source: "release", want: "v1.38.0-alpha.2.411+abcdef0123456"},
		{version: "ci/latest", source: server.URL + "/mirror", want: "v1.37.0"},
		{version: "auto", source: dir, want: "v1.36.3"},
		{version: "ci/latest-1.37", source: "release", refused: "/ci/latest-1.37.txt: the server answers 404"},
		{version: "latest-1", source: "release", refused: `latest-1 is "../../x", which is no version`},
		{version: "auto", source: t.TempDir(), refused: "kubeadm is missing"},
	} {
		c := &config.Cluster{Kubernetes: config.Kubernetes{Version: tt.version, Source: tt.source, Release: config.Release{Server: server.URL + "/release"}}}
		got, err := Settle(t.Context(), c, event.NewStream())
		switch {
		case tt.refused != "":
			if err == nil || !strings.Contains(err.Error(), tt.refused) {
				t.Errorf("%s of %s: %v", tt.version, tt.source, err)
			}
		case err != nil || got.Kubernetes.Version != tt.want || c.Kubernetes.Version != tt.version:
			t.Errorf("%s of %s: got %+v, %v", tt.version, tt.source, got, err)
		}
	}
}

func TestReleaseServer(t *testing.T) {
	for _, tt := range []struct {
		server string
		ci     bool
		want   string
	}{
		{"https://dl.k8s.io/release", false, "https://dl.k8s.io/release"}, {"https://dl.k8s.io/release", true, "https://dl.k8s.io/ci"},
		{"https://mirror.example/release/", true, "https://mirror.example/ci"}, {"https://mirror.example", true, "https://mirror.example"},
	} {
		if got := releaseServer(tt.server, tt.ci); got != tt.want {
			t.Errorf("%s, %v: got %s", tt.server, tt.ci, got)
		}
	}
}
