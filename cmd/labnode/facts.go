package main

import (
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"k8slab/lab/join"
)

func (a *app) factsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "facts",
		Short: "Print the facts of this machine as JSON; changes nothing",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			facts, err := join.ReadFacts(cmd.Context(), join.Local())
			encoder := json.NewEncoder(a.stdout)
			encoder.SetIndent("", "  ")
			return errors.Join(err, encoder.Encode(facts))
		},
	}
}
