package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"k8slab/lab/node"
)

func (a *app) sshCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ssh NODE [COMMAND...]",
		Short: "Log in to a node, or run a command on it",
		Long: `Log in to a node, or run a command on it as root. The command's arguments arrive as they are, so pipes need a shell:
  labctl ssh w1 systemctl status kubelet
  labctl ssh w1 sh -c 'journalctl -u kubelet | tail'

Flags of labctl go before NODE: everything after it belongs to the command.`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.nodeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			argv, err := remoteCommand(args[1:])
			if err != nil {
				return err
			}
			return a.onNode(args[0], func(n *node.Node) error {
				a.passthrough = true
				return n.Shell(cmd.Context(), argv, a.stdin, a.stdout, a.stderr)
			})
		},
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// remoteCommand is the command after NODE, without a leading --.
func remoteCommand(words []string) ([]string, error) {
	if len(words) > 0 && words[0] == "--" {
		return words[1:], nil
	}
	if len(words) > 0 && strings.HasPrefix(words[0], "-") {
		return nil, usageError{fmt.Errorf("%s after NODE is not a command; flags of labctl go before NODE: labctl ssh [flags] NODE [COMMAND...]", words[0])}
	}
	return words, nil
}

func (a *app) kubectlCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl ARGS...",
		Short: "Run kubectl as the cluster's administrator",
		Long: `Run kubectl, in the version of the lab, as the cluster's administrator:
  labctl kubectl get pods -A

Everything after the word kubectl goes to kubectl, flags too. Flags of labctl go before it: labctl -c other.yaml kubectl get pods.
This is the help of labctl; "labctl kubectl help" and "labctl kubectl -- --help" are kubectl's own.`,
		DisableFlagParsing: true,
		ValidArgsFunction:  a.completeKubectl,
		RunE: func(cmd *cobra.Command, _ []string) error {
			args, err := a.ownArgs(cmd, a.args)
			if err != nil {
				return err
			}
			switch {
			case len(args) == 0:
				return usageError{wrongArgs(cmd, nil)}
			case args[0] == "--help" || args[0] == "-h":
				return cmd.Help()
			case args[0] == "--":
				args = args[1:]
			}
			kubectl, kubeconfig, closing, err := a.kubectl(cmd.Context())
			if err != nil {
				return err
			}
			defer closing()
			return a.program(cmd, append([]string{kubectl}, args...), "KUBECONFIG="+kubeconfig)
		},
	}
}

// kubectl are the paths of a kubectl and of the administrator's kubeconfig, which works until closing is called. With machines: ssh it is
// the user's own kubectl.
func (a *app) kubectl(ctx context.Context) (kubectl, kubeconfig string, closing func(), err error) {
	l, err := a.lab()
	if err != nil {
		return "", "", nil, err
	}
	if l.Closed().Cluster.OverSSH() {
		if kubectl, err = exec.LookPath("kubectl"); err != nil {
			err = errors.New("there is no kubectl in the PATH; next: install it, or labctl ssh NODE kubectl --kubeconfig /etc/kubernetes/admin.conf, on a control plane")
		}
	} else {
		kubectl, err = l.Closed().Kubectl()
	}
	var end func()
	if err == nil {
		kubeconfig, end, err = l.Kubeconfig(ctx)
	}
	if err != nil {
		l.Close()
		return "", "", nil, err
	}
	return kubectl, kubeconfig, func() { end(); l.Close() }, nil
}

// completeKubectl asks kubectl itself, which is built with cobra too.
func (a *app) completeKubectl(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	args, err := a.ownArgs(cmd, a.args[1:len(a.args)-1]) // without __complete and the word
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	kubectl, kubeconfig, closing, err := a.kubectl(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer closing()
	c := exec.CommandContext(cmd.Context(), kubectl, slices.Concat([]string{cobra.ShellCompRequestCmd}, args, []string{word})...)
	c.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := c.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last := len(lines) - 1
	directive, wrong := strconv.Atoi(strings.TrimPrefix(lines[last], ":"))
	if err != nil || wrong != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return lines[:last], cobra.ShellCompDirective(directive)
}

// program runs a program and ends labctl with its exit status.
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
