package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"k8slab/lab"
	"k8slab/lab/kubefile"
	"k8slab/lab/state"
)

func (a *app) kubeconfigCommand() *cobra.Command {
	var printPath, merge, use bool
	var context string
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the kubeconfig of the administrator, or merge it into your own",
		Long: `Print the kubeconfig of the cluster's administrator. It works on this computer, also if the lab has its own network namespace.

With --merge put it into ~/.kube/config, or into the first file of $KUBECONFIG, as the context k8slab-NAME. Other entries, and the current context
where there is one, stay. "labctl up" keeps the entries up to date, and "labctl down" removes them. The file gets mode 0600.`,
		Example: `  export KUBECONFIG=$(labctl kubeconfig --path)
  labctl kubeconfig --merge
  kubectl --context k8slab-lab get nodes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case merge:
				_, err := show(a, func(l *lab.Lab) (kubefile.Merged, error) { return mergeKubeconfig(cmd.Context(), l, context, use) },
					func(w io.Writer, m kubefile.Merged) {
						_, _ = fmt.Fprintf(w, "context %s is in %s\n", m.Context, m.File)
					})
				return err
			case context != "" || use:
				return usageError{errors.New("--context and --use are for --merge; next: labctl kubeconfig --merge --help")}
			}
			return a.printKubeconfig(cmd.Context(), printPath)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&printPath, "path", false, "print where the file is instead")
	flags.BoolVar(&merge, "merge", false, "put the cluster into your own kubeconfig instead")
	flags.StringVar(&context, "context", "", "with --merge, the `NAME` of the context, cluster and user; default k8slab-NAME of the lab")
	flags.BoolVar(&use, "use", false, "with --merge, make it the current context")
	_ = cmd.RegisterFlagCompletionFunc("context", cobra.NoFileCompletions)
	cmd.MarkFlagsMutuallyExclusive("path", "merge")
	return cmd
}

func (a *app) printKubeconfig(ctx context.Context, printPath bool) error {
	path := ""
	text, err := look(a, func(l *lab.Lab) (text []byte, err error) {
		path, text, err = readKubeconfig(ctx, l)
		return text, err
	})
	switch {
	case err != nil:
		return err
	case path == "" && printPath:
		return usageError{errors.New("labctl keeps no kubeconfig of a cluster with machines: ssh; next: labctl kubeconfig >FILE, with umask 077")}
	case printPath:
		_, err = fmt.Fprintln(a.stdout, path)
		return err
	}
	_, err = a.stdout.Write(text)
	return err
}

// readKubeconfig reads the administrator's kubeconfig for use on this computer. The path is empty for a cluster that labctl did not make.
func readKubeconfig(ctx context.Context, l *lab.Lab) (path string, text []byte, err error) {
	if l.Closed().Cluster.OverSSH() {
		text, err = l.AdminConf(ctx)
		return "", text, err
	}
	if path, err = l.Closed().Kubeconfig(); err == nil {
		text, err = os.ReadFile(path)
	}
	return path, text, err
}

// mergeKubeconfig holds the lab's lock, so that the lab is not removed meanwhile.
func mergeKubeconfig(ctx context.Context, l *lab.Lab, context string, use bool) (m kubefile.Merged, err error) {
	release, err := state.Lock(l.Name(), "labctl kubeconfig --merge")
	if err != nil {
		return m, err
	}
	defer release()
	_, text, err := readKubeconfig(ctx, l)
	if err == nil && l.Closed().Cluster.OverSSH() { // so that labctl down finds it, also before labctl attach
		err = l.Closed().Remember()
	}
	if err != nil {
		return m, err
	}
	return kubefile.Merge(ctx, l.Closed(), text, context, use)
}
