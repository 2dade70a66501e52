package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"k8slab/lab/node"
)

func (a *app) sshCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "ssh NODE [-- COMMAND...]",
		Short:             "Log in to a node, or run a command on it",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.nodeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.lab()
			if err != nil {
				return err
			}
			defer l.Close()
			n, err := l.Node(args[0])
			if err != nil {
				return err
			}
			a.passthrough = true
			return n.Shell(cmd.Context(), args[1:], a.stdin, a.stdout, a.stderr)
		},
	}
}

func (a *app) logsCommand() *cobra.Command {
	var unit string
	var follow bool
	cmd := &cobra.Command{
		Use:               "logs NODE",
		Short:             "Show a node's journal",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.nodeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.lab()
			if err != nil {
				return err
			}
			defer l.Close()
			n, err := l.Node(args[0])
			if err != nil {
				return err
			}
			argv := []string{"journalctl", "--no-pager", "--output", "short-iso"}
			if unit != "" {
				argv = append(argv, "--unit", unit)
			}
			if follow {
				argv = append(argv, "--follow")
			}
			return n.Run(cmd.Context(), node.Command{Argv: argv, Stdout: a.stdout, Stderr: a.stderr, ReadOnly: true})
		},
	}
	cmd.Flags().StringVar(&unit, "unit", "", "only this systemd unit, for example kubelet or containerd")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with new lines")
	return cmd
}

func (a *app) kubectlCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl -- ARGS...",
		Short: "Run kubectl, of the lab's version, as the cluster's administrator",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.lab()
			if err != nil {
				return err
			}
			defer l.Close()
			kubeconfig, err := l.Kubeconfig()
			if err != nil {
				return err
			}
			kubectl, err := l.Kubectl()
			if err != nil {
				return err
			}
			return a.program(cmd, append([]string{kubectl}, args...), "KUBECONFIG="+kubeconfig)
		},
	}
}

func (a *app) kubeconfigCommand() *cobra.Command {
	var printPath bool
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the administrator's kubeconfig, for use on this computer",
		Long: `Print the kubeconfig of the cluster's administrator. It works on this computer, also while the lab runs in a network namespace of its own.
  export KUBECONFIG=$(labctl kubeconfig --path)`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			l, err := a.lab()
			if err != nil {
				return err
			}
			path, err := l.Kubeconfig()
			if err != nil {
				return err
			}
			if printPath {
				_, err = fmt.Fprintln(a.stdout, path)
				return err
			}
			data, err := os.ReadFile(path)
			if err == nil {
				_, err = a.stdout.Write(data)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&printPath, "path", false, "print where the file is instead")
	return cmd
}

// program runs a program in labctl's place and ends with its status.
func (a *app) program(cmd *cobra.Command, argv []string, env ...string) error {
	c := exec.CommandContext(cmd.Context(), argv[0], argv[1:]...)
	c.Env = append(os.Environ(), env...)
	c.Stdin, c.Stdout, c.Stderr = a.stdin, a.stdout, a.stderr
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	err := c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return exitStatus(exit.ExitCode())
	}
	return err
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print labctl's version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.print(map[string]string{"version": version}, func(w io.Writer) { _, _ = fmt.Fprintln(w, version) })
		},
	}
}
