package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"k8slab/lab/event"
	"k8slab/lab/join"
	"k8slab/lab/metrics"
	"k8slab/lab/symptom"
	"k8slab/lab/symptom/reader"
)

// joinOptions are the flags of labnode join.
type joinOptions struct {
	config, commandFile, output string
	run                         bool
	request                     join.Request
	machine                     join.Machine
	getenv                      func(string) string
}

func (a *app) joinCommand() *cobra.Command {
	o := &joinOptions{machine: join.Local(), getenv: os.Getenv}
	cmd := &cobra.Command{
		Use:   "join (--config FILE | --command-file FILE | -- kubeadm join HOST:6443 …)",
		Short: "Join this machine to a cluster: check, repair, join, watch, prove",
		Long: `Join this machine to a cluster. The join runs in a systemd unit of its own: when this command or its SSH connection ends,
the join continues, and "labnode follow" shows the rest. If a join runs already, the command follows it. It does not change a healthy member.

Give it a kubeadm JoinConfiguration (--config), or a join command as "kubeadm token create --print-join-command" prints it
(--command-file, - is stdin; or after --, where its token is visible in the process list).

Environment: MASTER_IP, the API server's host when the join command has none; JOIN_TIMEOUT, seconds for kubelet's TLS bootstrap (300);
MAX_RETRIES, attempts in all (3). What needs the cluster's administrator (a new token, deleting this machine's stale Node, …) is done over
--control-plane-ssh, or refused, with the command that you must run.

Exit status: 0 joined and proven healthy, 1 failed, 2 wrong usage.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.run {
				return join.RunRequest(cmd.Context(), engine(o.machine))
			}
			return a.join(cmd.Context(), o, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.config, "config", "", "`FILE` with a kubeadm JoinConfiguration (v1beta4), - is stdin")
	flags.StringVar(&o.commandFile, "command-file", "", "`FILE` with a kubeadm join command, - is stdin")
	flags.StringVar(&o.request.Login, "control-plane-ssh", "", "login on a control plane (root@HOST) for what needs the cluster's administrator")
	flags.IntVar(&o.request.First, "attempt", 1, "number of the first attempt; more than 1 continues a series")
	flags.IntVar(&o.request.Policy.Attempts, "attempts", 0, "attempts in all (default $MAX_RETRIES, or 3)")
	flags.DurationVar(&o.request.Policy.Sleep, "sleep", 5*time.Second, "pause before the second attempt, doubled before each later one")
	flags.DurationVar(&o.request.Policy.MaxSleep, "max-sleep", time.Minute, "longest pause")
	flags.DurationVar(&o.request.Policy.MaxTotal, "max-total", 0, "start no attempt later than this after the first (0: no limit)")
	flags.DurationVar(&o.request.Ready, "ready-limit", 0, "how long the new Node may take to be proven Ready (default 4m)")
	flags.BoolVar(&o.request.MemberRemoved, "member-removed", false, "this machine's earlier etcd member was removed from the cluster")
	flags.StringSliceVar(&o.request.Peers, "peer", nil, "address of a control plane (repeat it)")
	flags.StringToStringVar(&o.request.Known, "known", nil, "machine-id of another machine, as NAME=ID (repeat it)")
	flags.BoolVar(&o.run, "run", false, "make the attempts (the unit's own call)")
	_ = flags.MarkHidden("run")
	outputFlag(cmd, &o.output)
	return cmd
}

func outputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "text", "text or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

func checkOutput(output string) error {
	if output != "text" && output != "json" {
		return usageError{fmt.Errorf("--output %q: use text or json", output)}
	}
	return nil
}

// engine joins what the packages know.
func engine(m join.Machine) join.Engine {
	return join.Engine{Machine: m, Preflight: join.Preflight, Repair: join.RepairPreflight, Certain: reader.Certain, Causes: causes, Hint: hint, Ended: counting(m)}
}

// counting counts the machine's attempts for whoever scrapes its node_exporter.
func counting(m join.Machine) func(join.Outcome) error {
	return func(o join.Outcome) error {
		return metrics.CountAttempt(m.Path(metrics.Dir), metrics.Attempt{Joined: o.Joined, Cause: string(o.Symptom), Took: o.Elapsed, Ended: m.Now()})
	}
}

// causes names what a text shows, the nearest root first.
func causes(text string) []symptom.ID {
	findings, _ := reader.Judge(strings.NewReader(text), "kubeadm", event.Redact) // a string does not fail
	var ids []symptom.ID
	for _, f := range findings {
		if f.Level == symptom.Fail {
			ids = append(ids, f.Symptom)
		}
	}
	return ids
}

func hint(id symptom.ID) string {
	s, _ := symptom.Lookup(id)
	return s.Hint
}

func meaning(id symptom.ID) string {
	s, _ := symptom.Lookup(id)
	return s.Meaning
}

// join starts the series, or finds one that runs, and follows it.
func (a *app) join(ctx context.Context, o *joinOptions, args []string) error {
	target, err := a.joinRequest(o, args)
	if err != nil {
		return usageError{err}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	attached, err := join.Start(ctx, o.machine, o.request, []string{self, "join", "--run"})
	if err != nil {
		return err
	}
	if attached {
		_, _ = fmt.Fprintln(a.stderr, "a join runs already on this machine: following it")
	}
	return a.follow(ctx, o.machine, 1, o.output, target)
}

// joinRequest makes the request out of the flags, the environment and the arguments, or says everything that is wrong with them.
func (a *app) joinRequest(o *joinOptions, args []string) (join.Target, error) {
	environment, err := join.ReadEnvironment(o.getenv)
	problems := []error{err, checkOutput(o.output), join.Login{Host: o.request.Login}.Check()}
	if o.request.First < 1 || o.request.Policy.Attempts < 0 {
		problems = append(problems, errors.New("--attempt is at least 1 and --attempts not negative"))
	}
	text, err := a.joinText(o, args)
	problems = append(problems, err)
	var target join.Target
	if err == nil {
		var config *join.Configuration
		config, target, err = join.ReadConfiguration(text, environment)
		problems = append(problems, err)
		if err == nil {
			text, err = config.YAML()
			problems = append(problems, err)
		}
	}
	o.request.Config = string(text)
	o.request.Node = cmp.Or(target.Name, strings.ToLower(o.machine.Hostname()))
	o.request.Policy.Attempts = cmp.Or(o.request.Policy.Attempts, environment.Attempts)
	return target, errors.Join(problems...)
}

// joinText is the JoinConfiguration, from wherever it comes.
func (a *app) joinText(o *joinOptions, args []string) ([]byte, error) {
	given := 0
	for _, is := range []bool{o.config != "", o.commandFile != "", len(args) > 0} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, errors.New("give one of --config, --command-file and a join command after --")
	}
	switch {
	case o.config != "":
		return a.readInput(o.config)
	case o.commandFile != "":
		return a.readCommand(o.commandFile)
	default:
		_, _ = fmt.Fprintln(a.stderr, "warning: the token is on a command line, where every user of this machine can read it; better: --command-file -")
		if len(args) == 1 { // quoted as a whole
			var err error
			if args, err = join.SplitCommand(args[0]); err != nil {
				return nil, err
			}
		}
	}
	return join.ParseCommand(args)
}

// readCommand is the JoinConfiguration that a file's `kubeadm join` command stands for.
func (a *app) readCommand(file string) ([]byte, error) {
	text, err := a.readInput(file)
	if err != nil {
		return nil, err
	}
	args, err := join.SplitCommand(string(text))
	if err != nil {
		return nil, err
	}
	return join.ParseCommand(args)
}

func (a *app) readInput(file string) ([]byte, error) {
	in := a.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, configLimit+1))
	if err == nil && len(text) > configLimit {
		err = fmt.Errorf("%s: more than %d bytes", file, configLimit)
	}
	return text, err
}

func (a *app) followCommand() *cobra.Command {
	var from int
	var output string
	cmd := &cobra.Command{
		Use:   "follow",
		Short: "Show the join that runs, or ran last, from its beginning to its end",
		Long:  `Show the events of the join that runs, or ran last, and how it ended. Exit status: 0 joined, 1 not joined.`,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			if from < 1 {
				return usageError{errors.New("--from counts lines from 1")}
			}
			return a.follow(cmd.Context(), join.Local(), from, output, join.Target{})
		},
	}
	cmd.Flags().IntVar(&from, "from", 1, "first line of the events to show")
	outputFlag(cmd, &output)
	return cmd
}

// follow shows a join until its end. As JSON the events are shown as they are stored, and the outcome is the last line.
func (a *app) follow(ctx context.Context, m join.Machine, from int, output string, target join.Target) error {
	plain := event.Plain(a.stderr)
	o, err := join.Follow(ctx, m, from, func(line []byte) error {
		if output == "json" {
			_, err := fmt.Fprintf(a.stdout, "%s\n", line)
			return err
		}
		if e, _, err := join.ParseLine(line); err == nil {
			plain.Emit(e)
		}
		return nil
	})
	switch {
	case err != nil && ctx.Err() != nil:
		_, _ = fmt.Fprintln(a.stderr, "the join goes on; labnode follow shows the rest")
		return err
	case err != nil:
		return err
	case output == "json":
		line, err := join.OutcomeLine(o)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(a.stdout, "%s\n", line)
	default:
		join.Explain(a.stdout, o, target, meaning)
	}
	if !o.Joined {
		return exitStatus(exitFailed)
	}
	return nil
}
