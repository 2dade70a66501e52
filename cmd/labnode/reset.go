package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"k8slab/lab/join"
)

func (a *app) resetCommand() *cobra.Command {
	var output string
	var o join.ResetOptions
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Undo an init or a join on this machine",
		Long: `Undo an init or a join: remove the etcd member from its cluster, run kubeadm reset, then remove what kubeadm reset leaves. The Node stays in
the cluster: delete it afterwards, not before. It never touches the pod network's directory and containerd's state. It refuses to delete the data of
an etcd member that is, or may be, still in its cluster, and says what to do.

Exit status: 0 clean, 1 refused or not clean.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			m := join.Local()
			if f, err := join.ReadFacts(cmd.Context(), m); err == nil && f.Running() {
				return errors.New("kubeadm is at work on this machine; labnode follow shows it; run reset when it has ended")
			}
			if output == "text" {
				o.Report = func(did string) { _, _ = fmt.Fprintln(a.stderr, did) }
			}
			report, err := join.Reset(cmd.Context(), m, o)
			if output == "json" {
				return errors.Join(err, json.NewEncoder(a.stdout).Encode(report))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&o.MemberRemoved, "member-removed", false, "this machine's etcd member was removed from the cluster: delete its data")
	cmd.Flags().StringVar(&o.CRISocket, "cri-socket", "", "container runtime's socket (default: as kubeadm finds it)")
	outputFlag(cmd, &output)
	return cmd
}
