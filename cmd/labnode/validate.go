package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"k8slab/lab/join"
)

const (
	// validateLimit bounds one look at the member.
	validateLimit = 15 * time.Second
	// validateFresh is how long an answer is given again: many may ask, and asking must not load the cluster.
	validateFresh = 5 * time.Second
)

func (a *app) validateCommand() *cobra.Command {
	var output, address string
	var anyAddress bool
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check that this machine is a healthy member of its cluster",
		Long: `Check that this machine is a healthy member of its cluster: kubelet active and not standalone, its Node present, this machine's and Ready;
on a control plane its etcd member a started voter and its static pods healthy. It changes nothing.

With --serve it answers GET /healthz with 200, or 503, and the checks as JSON, until it is stopped.

Exit status: 0 healthy, 1 not healthy, 2 wrong usage.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			validate := func(ctx context.Context) []join.Check {
				ctx, cancel := context.WithTimeout(ctx, validateLimit)
				defer cancel()
				return join.Validate(ctx, join.Local(), join.Target{})
			}
			if address != "" {
				if err := checkServe(address, anyAddress); err != nil {
					return usageError{err}
				}
				return serve(cmd.Context(), address, healthHandler(validate, time.Now))
			}
			return a.showHealth(healthOf(validate(cmd.Context())), output)
		},
	}
	cmd.Flags().StringVar(&address, "serve", "", "serve the answer on this address, such as 127.0.0.1:10270")
	cmd.Flags().BoolVar(&anyAddress, "serve-beyond-loopback", false, "allow --serve on an address that other machines can reach")
	outputFlag(cmd, &output)
	return cmd
}

// checkServe keeps what a node says of itself on the node, unless that was asked for.
func checkServe(address string, beyond bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--serve: %w", err)
	}
	ip, err := netip.ParseAddr(host)
	if !beyond && (err != nil || !ip.IsLoopback()) {
		return fmt.Errorf("--serve %s is not a loopback address; to let other machines ask, add --serve-beyond-loopback", address)
	}
	return nil
}

// health is the answer, as JSON.
type health struct {
	OK     bool         `json:"ok"`
	Checks []join.Check `json:"checks"`
}

func healthOf(checks []join.Check) health {
	h := health{OK: true, Checks: checks}
	for _, c := range checks {
		h.OK = h.OK && (c.Result == join.OK || c.Result == join.Warn)
	}
	return h
}

func (a *app) showHealth(h health, output string) error {
	if output == "json" {
		if err := json.NewEncoder(a.stdout).Encode(h); err != nil {
			return err
		}
	} else {
		for _, c := range h.Checks {
			_, _ = fmt.Fprintf(a.stdout, "%-18s %-8s %s\n", c.ID, c.Result, c.Evidence)
			if c.Result != join.OK && c.Hint != "" {
				_, _ = fmt.Fprintf(a.stdout, "%-18s next: %s\n", "", c.Hint)
			}
		}
	}
	if !h.OK {
		return exitStatus(exitFailed)
	}
	return nil
}

// healthHandler answers from a validation that is not older than validateFresh, and makes one at a time.
func healthHandler(validate func(context.Context) []join.Check, now func() time.Time) http.Handler {
	var mu sync.Mutex
	var last health
	var at time.Time
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if at.IsZero() || now().Sub(at) >= validateFresh {
			// Not the asker's context: others get this answer too.
			last = healthOf(validate(context.WithoutCancel(r.Context())))
			at = now()
		}
		h := last
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if !h.OK {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(h)
	})
	return mux
}
