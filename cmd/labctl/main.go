// labctl creates, checks and removes a kubeadm lab on this computer. Results go to stdout, progress to stderr.
// Exit status: 0 done, 1 failed with a named cause, 2 wrong usage or configuration, 130 interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// softMemory is from where on garbage is collected sooner, in bytes. With it, a diagnosis of 500 machines stays below 300 MiB.
const softMemory = 240 << 20

func main() {
	// Debian's users do not have these in theirs: mkfs.ext4, chroot, nft.
	if err := os.Setenv("PATH", strings.TrimPrefix(os.Getenv("PATH")+":/usr/local/sbin:/usr/sbin:/sbin", ":")); err != nil {
		fmt.Fprintf(os.Stderr, "labctl: set PATH: %v\n", err)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softMemory)
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main, callable from tests. The first Ctrl-C cancels the command, which cleans up; the second ends it at once.
func run(args []string, stdin *os.File, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup(1) has it ignored
		signal.Notify(signals, syscall.SIGHUP) // a terminal that is closed
	}
	defer signal.Stop(signals)
	go func() {
		<-signals
		cancel(errInterrupted)
		pressedAgain(signals)
		os.Exit(exitInterrupted)
	}()
	a := &app{args: args, stdin: stdin, stdout: stdout, stderr: stderr}
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return a.exitCode(ctx, root.ExecuteContext(ctx))
}

// samePress is how long after a signal another one belongs to the same Ctrl-C: a labctl that another labctl runs gets the signal from the
// terminal and from its parent.
const samePress = 500 * time.Millisecond

// pressedAgain returns at the signal of a second Ctrl-C. The first one has just arrived.
func pressedAgain(signals <-chan os.Signal) {
	first := time.Now()
	for again := false; !again; again = time.Since(first) > samePress {
		<-signals
	}
}

func (a *app) rootCommand() *cobra.Command {
	var showVersion bool
	root := &cobra.Command{
		Use:   "labctl",
		Short: "Create and test multi-control-plane kubeadm clusters on libvirt",
		Long: `labctl creates the kubeadm cluster that cluster.yaml describes from libvirt machines on this computer, proves that it is healthy, and removes it.

Run "labctl up" to create the cluster. Run it again to verify the cluster, or to continue after an interruption.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs, // an unknown command is an argument too many
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showVersion {
				return a.printVersion()
			}
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmd.ValidateFlagGroups(); err != nil { // cobra does it too, later, and then it is no usage error
				return usageError{err}
			}
			return errors.Join(a.checkOutput(), a.refuseExisting(cmd))
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := root.PersistentFlags()
	flags.StringVarP(&a.file, "config", "c", defaultFile, "the `FILE` that describes the lab")
	flags.StringVar(&a.labName, "lab", "", "`NAME` of an existing lab, instead of -c (labctl lab list)")
	root.MarkFlagsMutuallyExclusive("config", "lab")
	_ = root.RegisterFlagCompletionFunc("lab", labNames)
	flags.StringVarP(&a.output, "output", "o", "text", "text or json")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "show each event as a line, also on a terminal, and each change")
	flags.BoolVar(&a.yes, "yes", false, "do not ask before a cluster that labctl did not make is changed, or an onboarding is rolled back")
	flags.BoolVar(&a.acceptNew, "accept-new", false, "with machines: ssh, trust host keys that are new")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	root.Flags().BoolVar(&showVersion, "version", false, "print the version, commit and date")
	a.addCommands(root)
	usageArgs(root)
	return root
}

// addCommands adds the commands in the groups in which help lists them.
func (a *app) addCommands(root *cobra.Command) {
	cobra.EnableCommandSorting = false // within a group the order is ours
	const other = "other"
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"lab", "The lab:", slices.Concat([]*cobra.Command{
			a.upCommand(), a.attachCommand(), a.statusCommand(), a.downCommand(), a.dismantleCommand(), a.kubectlCommand(), a.kubeconfigCommand(), a.openCommand(),
			a.labCommand(),
		}, forLabs(a.planCommand(), a.upgradeCommand(), a.autostartCommand(), a.addonsCommand(), a.snapshotCommand()))},
		{"nodes", "Nodes:", slices.Concat([]*cobra.Command{
			a.sshCommand(), a.logsCommand(), a.cpCommand(), a.joinCommand(), a.rejoinCommand(), a.resetCommand(), a.joinCommandCommand(), a.onboardCommand(),
		}, forLabs(a.powerCommand()))},
		{"repair", "Diagnose and repair:", []*cobra.Command{
			a.diagnoseCommand(), a.repairCommand(), a.undoCommand(), a.validateCommand(), a.etcdCommand(), a.healthServeCommand(),
		}},
		{"faults", "Faults:", append([]*cobra.Command{a.faultCommand()}, forLabs(a.benchCommand(), a.soakCommand(), a.bisectCommand())...)},
		{"images", "Images:", forLabs(a.imageCommand(), a.buildIDCommand())},
		{other, "Other:", append(forLabs(a.vagrantCommand()), a.doctorCommand(), a.hostCommand(), a.versionCommand())},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, cmd := range g.commands {
			cmd.GroupID = g.id
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommandGroupID(other)
	root.SetCompletionCommandGroupID(other)
}
