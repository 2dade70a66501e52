package main

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"k8slab/lab/kube"
)

const (
	// probeTimeout bounds one attempt to reach one peer.
	probeTimeout = 3 * time.Second
	// mostPeers bounds the targets and the pods of one question.
	mostPeers = 256
)

func probeCommand() *cobra.Command {
	addr := fmt.Sprintf(":%d", kube.ProbePort)
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "Serve the pod that proves the pod network",
		Long: `Serve HTTP:
  GET /                       the pod's name, for others to reach
  GET /check?target=HOST:PORT reach each target from this pod; the answer lists what failed, an empty list means all were reached
  GET /check?service=HOST:PORT&pod=NAME also check that each of these pods answers for the service

A check needs token=TEXT, with the text of the environment variable ` + kube.ProbeTokenVariable + `. Without that variable every check is refused.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), addr, probeHandler(os.Getenv(kube.ProbeTokenVariable)))
		},
	}
	cmd.Flags().StringVar(&addr, "listen", addr, "address to serve on")
	cmd.AddCommand(
		volumeCommand("write", "Write the text of "+textVariable+" to a file, down to the disk", writeText),
		volumeCommand("read", "Read a file and say whether it is the text of "+textVariable, readText),
	)
	return cmd
}

// serve serves HTTP until its context ends.
func serve(ctx context.Context, addr string, handler http.Handler) error {
	server := &http.Server{Addr: addr, Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func probeHandler(token string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		name, _ := os.Hostname()
		_, _ = fmt.Fprintln(w, name)
	})
	mux.HandleFunc("GET "+kube.ProbePath, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch {
		case token == "" || subtle.ConstantTimeCompare([]byte(q.Get("token")), []byte(token)) == 0:
			http.Error(w, "this pod reaches others only for who has its token", http.StatusForbidden)
			return
		case len(q["target"]) > mostPeers || len(q["pod"]) > mostPeers:
			http.Error(w, fmt.Sprintf("at most %d targets and %[1]d pods at a time", mostPeers), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		var served error
		var wg sync.WaitGroup
		wg.Go(func() { served = servedBy(r.Context(), q.Get("service"), q["pod"]) })
		failures := reachAll(r.Context(), q["target"])
		wg.Wait()
		if served != nil {
			failures = append(failures, served.Error())
		}
		_ = json.NewEncoder(w).Encode(failures)
	})
	return mux
}

// reachAll reaches all targets at once and returns the failures.
func reachAll(ctx context.Context, targets []string) []string {
	failures := []string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, target := range targets {
		wg.Go(func() {
			if _, err := ask(ctx, target); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failures = append(failures, err.Error())
			}
		})
	}
	wg.Wait()
	return failures
}

// asksPerPod makes it as good as certain that a service which spreads connections at random has sent some to each pod: of 5, one is missed
// once in ten million times.
const asksPerPod = 16

// servedBy asks the service until each of the pods has answered. A node that has not heard yet that a pod has another address sends some of
// the connections to nobody, so that one question proves little; and where packets are lost, one that fails does too.
func servedBy(ctx context.Context, service string, pods []string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	silent := map[string]bool{}
	for _, p := range pods {
		silent[p] = true
	}
	asks := asksPerPod * len(pods)
	var mu sync.Mutex
	more := func() bool {
		mu.Lock()
		defer mu.Unlock()
		asks--
		return asks >= 0 && len(silent) > 0 && ctx.Err() == nil
	}
	var wg sync.WaitGroup
	for range 2 * len(pods) { // each waits for one connection that nobody takes
		wg.Go(func() {
			for more() {
				name, _ := ask(ctx, service) // none counts as nobody's answer
				mu.Lock()
				delete(silent, name)
				if len(silent) == 0 {
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(silent) == 0 {
		return nil
	}
	return fmt.Errorf("by way of the service %s: %s", service, strings.Join(slices.Sorted(maps.Keys(silent)), ", "))
}

// ask returns the target's name for itself, asked over a connection of its own: a kept one would prove only the past.
func ask(ctx context.Context, target string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{}).DialContext}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+target+"/", nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answered %s", target, resp.Status)
	}
	name, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	return strings.TrimSpace(string(name)), err
}
