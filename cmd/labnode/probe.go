package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// probeTimeout bounds one attempt to reach one peer.
const probeTimeout = 3 * time.Second

func probeCommand() *cobra.Command {
	addr := ":8080"
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "Serve the pod that proves the pod network",
		Long: `Serve HTTP:
  GET /                       the pod's name, for others to reach
  GET /check?target=HOST:PORT reach each target from this pod; the answer lists what failed, an empty list means all were reached`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), addr, probeHandler())
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

func probeHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		name, _ := os.Hostname()
		_, _ = fmt.Fprintln(w, name)
	})
	mux.HandleFunc("GET /check", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(reachAll(r.Context(), r.URL.Query()["target"]))
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
			if err := reach(ctx, target); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failures = append(failures, err.Error())
			}
		})
	}
	wg.Wait()
	return failures
}

// reach asks the target over a connection of its own: a kept one would prove only the past.
func reach(ctx context.Context, target string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{}).DialContext}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+target+"/", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", target, resp.Status)
	}
	return nil
}
