package provision

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8slab/config"
)

func TestProxyFiles(t *testing.T) {
	if files, err := proxyFiles(&config.Cluster{}); err != nil || len(files) > 0 {
		t.Errorf("without either: %v, %v", files, err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, []byte("PEM\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := &config.Cluster{Network: config.Network{Outside: config.Outside{Proxy: "http://10.0.0.1:3128", NoProxy: []string{".home.lan"}, CAFile: ca}}}
	files, err := proxyFiles(c)
	if err != nil {
		t.Fatal(err)
	}
	want := "HTTP_PROXY=http://10.0.0.1:3128\nHTTPS_PROXY=http://10.0.0.1:3128\nNO_PROXY=" + strings.Join(c.ProxyExceptions(), ",") +
		"\nSSL_CERT_DIR=/etc/ssl/certs:/etc/k8slab/ca\n"
	if got := files["etc/k8slab/environment"].text; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := files["etc/k8slab/ca/ca.pem"].text; got != "PEM\n" || len(files) != 2 {
		t.Errorf("authority %q of %v", got, files)
	}
	c.Network.CAFile = "/nowhere/ca.pem"
	if _, err := proxyFiles(c); err == nil || !strings.Contains(err.Error(), "network.ca_file of cluster.yaml: open /nowhere/ca.pem") {
		t.Errorf("no authority: %v", err)
	}
}
