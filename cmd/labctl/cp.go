package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"k8slab/lab/node"
)

// place is one end of a copy.
type place struct {
	node string // "" is this computer
	path string // "-" on this computer is a standard stream
}

// placeOf reads NODE:PATH or a path of this computer. A colon after a slash is part of a path, as for scp.
func placeOf(text string) place {
	node, path, remote := strings.Cut(text, ":")
	if !remote || node == "" || strings.Contains(node, "/") {
		return place{path: text}
	}
	return place{node, path}
}

func (a *app) cpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cp SRC DST",
		Short: "Copy files and directories to or from a node",
		Long: `Copy a file or a directory to a node, or from one. One of SRC and DST is NODE:PATH; a PATH that is not absolute begins at the home of root.
Like cp -r, it copies into DST if that is a directory, keeps modes and links, and replaces existing files. "-" is standard input or output,
for one file.`,
		Example: `  labctl cp manifests w1:/root/
  labctl cp w1:/var/log/containers ./logs
  labctl cp w1:/etc/kubernetes/kubelet.conf - | less`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completePlace,
		RunE: func(cmd *cobra.Command, args []string) error {
			src, dst := placeOf(args[0]), placeOf(args[1])
			switch {
			case src.node == "" && dst.node == "":
				return usageError{errors.New("cp needs a node: write SRC or DST as NODE:PATH, for example w1:/tmp/file")}
			case src.node != "" && dst.node != "":
				return usageError{errors.New("cp copies to or from one node; copy to this computer first, then to the other node")}
			case src.path == "" && src.node == "" || dst.path == "" && dst.node == "":
				return usageError{errors.New("cp needs a path on this computer")}
			}
			return a.onNode(src.node+dst.node, func(n *node.Node) error { return a.copy(cmd.Context(), n, src, dst) }) // one of them is ""
		},
	}
}

func (a *app) copy(ctx context.Context, n *node.Node, src, dst place) (err error) {
	switch {
	case dst.node != "" && src.path == "-":
		return n.SendFrom(ctx, a.stdin, dst.path)
	case dst.node != "":
		err = n.Send(ctx, src.path, dst.path)
	case dst.path == "-":
		return n.ReceiveTo(ctx, src.path, a.stdout)
	default:
		err = n.Receive(ctx, src.path, dst.path)
	}
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	return nil
}

// completePlace completes NODE: and leaves paths of this computer to the shell.
func (a *app) completePlace(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 1 || strings.ContainsAny(word, ":/.") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	names, directive := a.nodeNames(cmd, nil, word)
	if directive == cobra.ShellCompDirectiveError {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var nodes []string
	for _, name := range names {
		if strings.HasPrefix(name, word) {
			nodes = append(nodes, name+":")
		}
	}
	return nodes, cobra.ShellCompDirectiveNoSpace
}
