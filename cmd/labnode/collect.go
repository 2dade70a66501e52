package main

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/join"
)

func (a *app) collectCommand() *cobra.Command {
	var o fact.Options
	var peers []string
	cmd := &cobra.Command{
		Use:   "collect",
		Short: "Print as JSON everything that a diagnosis of this machine needs; leaves nothing changed",
		Long: `Read what a diagnosis of this machine needs, in about a second, and print it as one JSON object: units, checks, certificates, etcd's own
measurements, the network, the ports of its peers, and the ends of journals and logs, redacted. What it cannot read is listed in "errors"; the command
still succeeds. On a member it makes a pod sandbox of its own and removes it; otherwise it changes nothing.`,
		Example: `  labnode collect
  labnode collect --since 1h --role control-plane --peer cp2=control-plane=10.30.0.12`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Since < 0 {
				return usageError{fmt.Errorf("--since %s: it must not be negative", o.Since)}
			}
			if o.Patience < 1 || o.Patience > 10 {
				return usageError{fmt.Errorf("--patience %d: it must be from 1 to 10", o.Patience)}
			}
			for _, text := range peers {
				p, err := parsePeer(text)
				if err != nil {
					return usageError{err}
				}
				o.Peers = append(o.Peers, p)
			}
			return json.NewEncoder(a.stdout).Encode(fact.Collect(cmd.Context(), join.Local(), o))
		},
	}
	cmd.Flags().DurationVar(&o.Since, "since", 0*time.Second, "read journals since this long ago; 0 means since the last boot")
	cmd.Flags().BoolVar(&o.Recent, "recent", false, "read no more of journals than can explain what is wrong now: about ten minutes")
	cmd.Flags().StringVar(&o.Role, "role", "", "the role that the machine should have: control-plane or worker")
	cmd.Flags().StringVar(&o.Endpoint, "endpoint", "", "`HOST:PORT` of the cluster's API server, to try the way there")
	cmd.Flags().IntVar(&o.Patience, "patience", 1, "wait this many times longer than usual for each answer: for a busy machine")
	cmd.Flags().StringArrayVar(&peers, "peer", nil, "another machine, `NAME=ROLE=IP`, whose ports are dialled; may be repeated")
	return cmd
}

func parsePeer(text string) (fact.Peer, error) {
	parts := strings.Split(text, "=")
	if len(parts) != 3 || parts[0] == "" {
		return fact.Peer{}, fmt.Errorf("--peer %q is not NAME=ROLE=IP", text)
	}
	if _, err := netip.ParseAddr(parts[2]); err != nil {
		return fact.Peer{}, fmt.Errorf("--peer %q: %w", text, err)
	}
	return fact.Peer{Name: parts[0], Role: parts[1], IP: parts[2]}, nil
}
