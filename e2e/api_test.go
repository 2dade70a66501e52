//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// api is the API server through a kubeconfig, from this computer. It is no Kubernetes client, so that what it shows is the kubeconfig's
// doing alone.
type api struct {
	server string
	client *http.Client
}

func openAPI(kubeconfig string) *api {
	GinkgoHelper()
	data, err := os.ReadFile(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	var k struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
				Name   string `json:"tls-server-name"`
				CA     string `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Cert string `json:"client-certificate-data"`
				Key  string `json:"client-key-data"`
			} `json:"user"`
		} `json:"users"`
	}
	Expect(yaml.Unmarshal(data, &k)).To(Succeed())
	Expect(k.Clusters).To(HaveLen(1))
	Expect(k.Users).To(HaveLen(1))
	cluster, user := k.Clusters[0].Cluster, k.Users[0].User
	pair, err := tls.X509KeyPair(decode(user.Cert), decode(user.Key))
	Expect(err).NotTo(HaveOccurred())
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(decode(cluster.CA))).To(BeTrue())
	return &api{server: cluster.Server, client: &http.Client{
		Timeout: time.Second,
		// A connection that is kept would stay with the server that had the virtual IP.
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
			RootCAs: roots, ServerName: cluster.Name, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
		}},
	}}
}

func decode(s string) []byte {
	GinkgoHelper()
	data, err := base64.StdEncoding.DecodeString(s)
	Expect(err).NotTo(HaveOccurred())
	return data
}

// ready asks /readyz once.
func (a *api) ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.server+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || strings.TrimSpace(string(body)) != "ok") {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return err
}

// watch asks again and again until stop is called, which returns the longest time without an answer and how often there was one.
func (a *api) watch(ctx context.Context) (stop func() (gap time.Duration, answers int)) {
	ctx, cancel := context.WithCancel(ctx)
	var gap time.Duration
	var answers int
	var wg sync.WaitGroup
	wg.Go(func() {
		last := time.Now()
		for ctx.Err() == nil {
			if a.ready(ctx) == nil {
				gap, answers, last = max(gap, time.Since(last)), answers+1, time.Now()
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
		gap = max(gap, time.Since(last)) // still silent at the end
	})
	return func() (time.Duration, int) { cancel(); wg.Wait(); return gap, answers }
}
