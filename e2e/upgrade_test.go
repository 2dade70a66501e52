//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The versions that the specs of upgrades go from and to.
const (
	olderVersion = "v1.36.3"
	newerVersion = "v1.37.2"
)

// atVersion has the lab's Kubernetes in the version.
func (l *lab) atVersion(version string) {
	GinkgoHelper()
	l.configure(fmt.Sprintf("kubernetes: {version: %s, source: modules}\n", version))
}

// shop is what runs in the cluster: two replicas, of which one may go, and a counter.
const shop = `
apiVersion: v1
kind: ConfigMap
metadata: {name: counter, namespace: default}
data: {n: "0"}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: default}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}
      containers: [{name: web, image: "registry.k8s.io/pause:3.10.2"}]
`

var _ = Describe("an upgrade", Label("versions", "Slow"), Serial, func() {
	It("goes from one minor version to the next, while everything goes on", func(ctx SpecContext) {
		l := useLab("e2e-upgrade", 88, 3, 2)
		newer := newLab("e2e-upgrade-image", 87, 1, 0)
		newer.atVersion(newerVersion)
		newer.must(ctx, "image", "build") // not of the upgrade's time
		l.atVersion(olderVersion)
		l.must(ctx, "up")
		l.kubectlIn(ctx, shop, "apply", "-f", "-")
		l.kubectl(ctx, "rollout", "status", "deployment/web", "--timeout=60s")

		before := l.lives(ctx)
		Expect(l.must(ctx, "upgrade", newerVersion, "--dry-run")).To(ContainSubstring("etcd v3.6.16 first"))
		Expect(l.lives(ctx)).To(Equal(before), "a dry run changed something")
		Expect(l.dir("upgrade.json")).NotTo(BeAnExistingFile(), "a dry run began")
		l.expectVersion(ctx, olderVersion)

		server := openAPI(strings.TrimSpace(l.must(ctx, "kubeconfig", "--path")))
		counting := server.count(ctx)
		serving := server.watchReplicas(ctx)
		upgraded := l.run(ctx, "upgrade", newerVersion)
		written, gap := counting()
		least := serving()
		Expect(upgraded.code).To(BeZero(), "upgrade: %s", upgraded)
		AddReportEntry("3 + 2 from "+olderVersion+" to "+newerVersion, upgraded.took.Round(100*time.Millisecond).String())
		AddReportEntry("longest time without a write", gap.Round(10*time.Millisecond).String())
		AddReportEntry("fewest replicas of 2 available", strconv.Itoa(least))

		l.expectVersion(ctx, newerVersion)
		l.expectHealthy(ctx)
		Expect(l.kubectl(ctx, "get", "configmap", "counter", "-o", "jsonpath={.data.n}")).To(Equal(strconv.Itoa(written)), "an acknowledged write is lost")
		Expect(least).To(BeNumerically(">=", 1), "no replica was available")
		Expect(gap).To(BeNumerically("<=", 5*time.Second), "the longest time without a write")
		text, err := os.ReadFile(l.config)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(ContainSubstring("version: " + newerVersion))
		again := l.run(ctx, "upgrade")
		Expect(again.code).To(BeZero(), "a second upgrade: %s", again)
		Expect(again.stderr).To(ContainSubstring("has " + newerVersion + " already"))
	}, SpecTimeout(25*time.Minute))

	It("goes on where it was killed, at any moment", func(ctx SpecContext) {
		l := useLab("e2e-upgrade-killed", 89, 3, 2)
		l.atVersion(olderVersion)
		l.must(ctx, "up")
		l.kubectlIn(ctx, shop, "apply", "-f", "-")
		moments := random()
		kills := 0
		for ; ; kills++ {
			Expect(kills).To(BeNumerically("<", 30), "it does not come to an end")
			after := time.Duration(5+moments.IntN(40)) * time.Second
			r := l.start(ctx, nil, "upgrade", newerVersion)
			ended := make(chan result, 1)
			go func() { ended <- r.wait() }()
			select {
			case end := <-ended:
				Expect(end.code).To(BeZero(), "upgrade after %d kills: %s", kills, end)
				AddReportEntry("killed and run again", strconv.Itoa(kills)+" times")
				l.expectVersion(ctx, newerVersion)
				l.expectHealthy(ctx)
				return
			case <-time.After(after):
				r.kill()
				<-ended
			}
		}
	}, SpecTimeout(30*time.Minute))
})

// expectVersion looks at every kubelet, and at the images of the control planes.
func (l *lab) expectVersion(ctx context.Context, version string) {
	GinkgoHelper()
	for _, is := range strings.Fields(l.kubectl(ctx, "get", "nodes", "-o", "jsonpath={.items[*].status.nodeInfo.kubeletVersion}")) {
		Expect(is).To(Equal(version))
	}
	images := l.kubectl(ctx, "get", "pods", "-n", "kube-system", "-l", "tier=control-plane", "-o", "jsonpath={.items[*].spec.containers[*].image}")
	for _, image := range strings.Fields(images) {
		if strings.Contains(image, "/kube-") {
			Expect(image).To(HaveSuffix(":" + version))
		}
	}
}

// kubectlIn runs kubectl with standard input.
func (l *lab) kubectlIn(ctx context.Context, stdin string, args ...string) {
	GinkgoHelper()
	end := l.startWith(ctx, strings.NewReader(stdin), nil, append([]string{"kubectl", "--"}, args...)...).wait()
	Expect(end.code).To(BeZero(), "kubectl: %s", end)
}

// count writes a counter again and again until stop is called, which returns the last number that was acknowledged, and the longest time in which
// none was.
func (a *api) count(ctx context.Context) (stop func() (written int, gap time.Duration)) {
	ctx, cancel := context.WithCancel(ctx)
	var written int
	var gap time.Duration
	var wg sync.WaitGroup
	wg.Go(func() {
		last := time.Now()
		for n := 1; ctx.Err() == nil; {
			if a.patch(ctx, "/api/v1/namespaces/default/configmaps/counter", fmt.Sprintf(`{"data":{"n":"%d"}}`, n)) == nil {
				gap, last, written = max(gap, time.Since(last)), time.Now(), n
				n++
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
		gap = max(gap, time.Since(last))
	})
	return func() (int, time.Duration) { cancel(); wg.Wait(); return written, gap }
}

func (a *api) patch(ctx context.Context, path, body string) error {
	req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPatch, a.server+path, bytes.NewBufferString(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/merge-patch+json")
	resp, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("PATCH %s: %s", path, resp.Status)
	}
	return nil
}

// watchReplicas looks at the Deployment again and again until stop is called, which returns the fewest replicas that were available.
func (a *api) watchReplicas(ctx context.Context) (stop func() int) {
	ctx, cancel := context.WithCancel(ctx)
	least := 2
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if n, err := a.available(ctx); err == nil {
				least = min(least, n)
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	return func() int { cancel(); wg.Wait(); return least }
}

func (a *api) available(ctx context.Context) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.server+"/apis/apps/v1/namespaces/default/deployments/web", nil)
	if err != nil {
		return 0, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	var d struct {
		Status struct {
			Available int `json:"availableReplicas"`
		} `json:"status"`
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s", resp.Status)
	}
	err = json.NewDecoder(resp.Body).Decode(&d)
	return d.Status.Available, err
}
