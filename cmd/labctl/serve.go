package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"k8slab/config"
	"k8slab/lab"
	"k8slab/lab/health"
)

func (a *app) healthServeCommand() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the health and metrics of the lab over HTTP, until Ctrl-C",
		Long: `Serve on a loopback address, until Ctrl-C:
  /healthz   200 or 503, and JSON: whether the lab is healthy, as up proves it, and what is not
  /metrics   the same, and the onboardings, as Prometheus metrics

However many clients ask, one check of the lab runs at a time, and its answer is reused for 5 s. cluster.yaml is read once, at the start.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkListen(listen); err != nil {
				return usageError{err}
			}
			c, err := a.cluster()
			if err != nil {
				return err
			}
			return serveHealth(cmd.Context(), listen, a.stderr, a.newHealthServer(cmd.Context(), c))
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:9099", "loopback address and port")
	return cmd
}

// checkListen accepts loopback addresses only: the server asks for no password, and its answers say what is wrong with the lab.
func checkListen(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return fmt.Errorf("--listen %s is not a loopback address: use 127.0.0.1:PORT or [::1]:PORT, and a proxy of your own for other computers", address)
	}
	return nil
}

// newHealthServer looks at the lab that the cluster describes.
func (a *app) newHealthServer(ctx context.Context, c *config.Cluster) *healthServer {
	s := &healthServer{onboardings: func() []onboarding { return onboardings(c) }}
	s.lookout.look = func() (health.Status, error) {
		l, err := lab.New(c, a.labOptions(nil)) // for each look, as machines come and go
		if err != nil {
			return health.Status{}, err
		}
		defer l.Close()
		return l.Status(ctx) // not the asker's context: others get this answer, too
	}
	return s
}

const (
	headerLimit = 5 * time.Second
	headerBytes = 8 << 10
	idleLimit   = time.Minute
	// answerLimit bounds a request; a look at a lab of emulated machines may take 75 s.
	answerLimit = 90 * time.Second
	// goodbye is how long requests may take to end after Ctrl-C.
	goodbye = 2 * time.Second
)

// serveHealth serves until ctx ends, which is no error.
func serveHealth(ctx context.Context, address string, says io.Writer, s *healthServer) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(says, "serving http://%[1]s/healthz and http://%[1]s/metrics\n", listener.Addr())
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerLimit, ReadTimeout: headerLimit, WriteTimeout: answerLimit + headerLimit, IdleTimeout: idleLimit,
		MaxHeaderBytes: headerBytes,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	if err := server.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return server.Close()
}
