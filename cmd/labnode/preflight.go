package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"k8slab/lab/join"
)

// configLimit bounds the configuration that is read: kubeadm's documents have a few kilobytes.
const configLimit = 1 << 20

// preflightOptions are the flags of labnode preflight.
type preflightOptions struct {
	fix, verbose bool
	output       string
	config       string
	commandFile  string
	target       join.Target
	machine      join.Machine
}

func (a *app) preflightCommand() *cobra.Command {
	o := &preflightOptions{machine: join.Local()}
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Check everything that a join needs, and change nothing unless told to",
		Long: `Check everything that a join needs: the machine, its runtime and kubelet, the way to the cluster, and the credentials.
Without --config, --command-file or --endpoint only the machine is checked. A token comes in a file or on stdin, never as an argument.

Exit status: 0 ready (warnings do not count), 3 something that --fix repairs is wrong, 1 blocked, 2 wrong usage.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.preflight(cmd.Context(), o, cmd.Flags().Changed) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.fix, "fix", false, "repair what is safe to repair: swap, modules, sysctls, containerd, kubelet's unit, what a failed join left")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "also show the checks that passed")
	flags.StringVarP(&o.output, "output", "o", "text", "text or json")
	flags.StringVar(&o.config, "config", "", "`FILE` with a kubeadm JoinConfiguration (v1beta4), - is stdin")
	flags.StringVar(&o.commandFile, "command-file", "", "`FILE` with a kubeadm join command, - is stdin")
	flags.BoolVar(&o.target.ControlPlane, "control-plane", false, "the machine will be a control plane")
	flags.StringVar(&o.target.Endpoint, "endpoint", "", "HOST:PORT of the API server")
	flags.StringSliceVar(&o.target.Peers, "peer", nil, "address of a control plane (repeat it)")
	flags.StringSliceVar(&o.target.Ignore, "ignore-preflight-errors", nil, "kubeadm's names of checks whose failure is only a warning")
	flags.StringVar(&o.target.Name, "node-name", "", "the Node's name (default the host name)")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// preflight checks, repairs if asked to, and shows the result.
func (a *app) preflight(ctx context.Context, o *preflightOptions, given func(flag string) bool) error {
	if o.output != "text" && o.output != "json" {
		return usageError{fmt.Errorf("--output %q: use text or json", o.output)}
	}
	target, err := a.target(o, given)
	if err != nil {
		return usageError{err}
	}
	report := func(join.Check) {}
	if o.output == "text" {
		// What is certain is said at once, and not when the slowest check has ended.
		report = func(c join.Check) {
			if c.Result == join.Blocked {
				_, _ = fmt.Fprintf(a.stderr, "%s: %s\n", c.ID, oneLine(c))
			}
		}
	}
	checks := join.Preflight(ctx, o.machine, target, report)
	if o.fix {
		checks = join.RepairPreflight(ctx, o.machine, target, checks, func(c join.Check) {
			_, _ = fmt.Fprintf(a.stderr, "%s: %s\n", c.ID, oneLine(c))
		})
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if o.output == "json" {
		err = writeJSON(a.stdout, checks)
	} else {
		err = writeChecks(a.stdout, checks, o.verbose)
	}
	if err != nil {
		return err
	}
	switch join.Verdict(checks) {
	case join.Blocked:
		return exitStatus(exitFailed)
	case join.Fixable:
		return exitStatus(exitFixable)
	}
	return nil
}

// target is what the configuration says, and over it what the flags say.
func (a *app) target(o *preflightOptions, given func(flag string) bool) (join.Target, error) {
	var text []byte
	var err error
	switch {
	case o.config != "" && o.commandFile != "":
		return join.Target{}, errors.New("give one of --config and --command-file")
	case o.config != "":
		text, err = a.readInput(o.config)
	case o.commandFile != "":
		text, err = a.readCommand(o.commandFile)
	default:
		return o.target, o.target.Validate()
	}
	if err != nil {
		return join.Target{}, err
	}
	target, err := join.ParseConfig(text)
	if err != nil {
		return join.Target{}, err
	}
	target.Peers = o.target.Peers
	if given("control-plane") {
		target.ControlPlane = o.target.ControlPlane
	}
	if given("endpoint") {
		target.Endpoint = o.target.Endpoint
	}
	if given("node-name") {
		target.Name = o.target.Name
	}
	return target, target.Validate()
}

func writeJSON(w io.Writer, checks []join.Check) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		Verdict join.Result  `json:"verdict"`
		Checks  []join.Check `json:"checks"`
	}{join.Verdict(checks), checks})
}

// writeChecks writes a line for each check that is not well, with its hint below, and a verdict.
func writeChecks(w io.Writer, checks []join.Check, all bool) error {
	wide, wideResult := 0, 0
	for _, c := range checks {
		if all || c.Result != join.OK || c.Fixed != "" {
			wide, wideResult = max(wide, len(c.ID)), max(wideResult, len(c.Result))
		}
	}
	var out strings.Builder
	for _, c := range checks {
		if !all && c.Result == join.OK && c.Fixed == "" {
			continue
		}
		fmt.Fprintf(&out, "%-*s  %-*s  %s\n", wideResult, c.Result, wide, c.ID, oneLine(c))
		if c.Hint != "" && c.Result != join.OK {
			fmt.Fprintf(&out, "%*s  next: %s\n", wideResult+2+wide, "", c.Hint)
		}
	}
	out.WriteString(verdictLine(checks) + "\n")
	_, err := io.WriteString(w, out.String())
	return err
}

func oneLine(c join.Check) string {
	text := strings.Join(strings.Fields(c.Evidence), " ")
	if c.Symptom != "" {
		text = string(c.Symptom) + ": " + text
	}
	if c.Fixed != "" {
		text += " (fixed: " + c.Fixed + ")"
	}
	return text
}

func verdictLine(checks []join.Check) string {
	count := map[join.Result]int{}
	for _, c := range checks {
		count[c.Result]++
	}
	switch join.Verdict(checks) {
	case join.Blocked:
		first := checks[0]
		return fmt.Sprintf("blocked: %s (%d blocked, %d fixable, %d warnings of %d checks)",
			cmp.Or(string(first.Symptom), string(first.ID)), count[join.Blocked], count[join.Fixable], count[join.Warn], len(checks))
	case join.Fixable:
		return fmt.Sprintf("fixable: labnode preflight --fix repairs %d of %d checks (%d warnings)", count[join.Fixable], len(checks), count[join.Warn])
	}
	return fmt.Sprintf("ready: %d checks, %d warnings", len(checks), count[join.Warn])
}
