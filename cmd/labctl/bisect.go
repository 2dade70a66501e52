package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"k8slab/config"
	"k8slab/lab/atomicfile"
	"k8slab/lab/bisect"
	"k8slab/lab/image"
)

func (a *app) bisectCommand() *cobra.Command {
	var r bisect.Range
	var abort bool
	cmd := &cobra.Command{
		Use:   "bisect --good COMMIT --bad COMMIT -- COMMAND...",
		Short: "Find the commit of a checkout with which a labctl command begins to fail",
		Long: `Find the commit with which a command of labctl begins to fail, by git bisect: in the repository of the checkout that cluster.yaml names as a source.
Each commit is checked out in a worktree beside it, built, and tried in a new lab, NAME-bisect, which is taken down afterwards. Your files, branches and
lab stay as they are.

A commit is good if the cluster comes up and COMMAND has the exit status 0. It is bad if the cluster does not come up, or the status is another one. It is
skipped if it cannot be built, or the status is 125. The bisection ends with an error, and nothing is decided, if the machines cannot be made, or the
status is 2 (wrong usage) or above 127 (interrupted).

Interrupted, or after an error, run the same command again: it goes on with the commit that it was at. --abort gives up and removes what is left.

Exit status: 0 the commit is found, 1 it is not.`,
		Example: `  labctl bisect --good v1.37.0 --bad HEAD -- status
  labctl bisect --good v1.37.0 --bad master -- fault run stale-learner
  labctl bisect --abort`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.bisecting()
			if err != nil {
				return err
			}
			if abort {
				return t.abort(cmd.Context())
			}
			if err := a.wantsRange(cmd.Root(), r, args); err != nil {
				return err
			}
			t.command = args
			return t.run(cmd.Context(), r)
		},
	}
	cmd.Flags().StringVar(&r.Good, "good", "", "a `commit` with which the command succeeds")
	cmd.Flags().StringVar(&r.Bad, "bad", "", "a later `commit` with which it fails")
	cmd.Flags().StringVar(&r.Checkout, "checkout", "", "the `directory`, if cluster.yaml names several checkouts")
	cmd.Flags().BoolVar(&abort, "abort", false, "give up a bisection that was interrupted")
	return cmd
}

// wantsRange refuses wrong usage, before anything is built.
func (a *app) wantsRange(root *cobra.Command, r bisect.Range, args []string) error {
	switch {
	case r.Good == "" || r.Bad == "":
		return usageError{errors.New("bisect needs --good COMMIT, --bad COMMIT and a command after --; see labctl bisect --help")}
	case len(args) == 0:
		return usageError{errors.New("bisect needs a command after --, such as status; see labctl bisect --help")}
	}
	if verb, _, err := root.Find(args); err != nil || verb == root {
		return usageError{fmt.Errorf("%q is no command of labctl; see labctl --help", strings.Join(args, " "))}
	}
	return nil
}

// bisecting tries commits in a lab of their own.
type bisecting struct {
	*app
	cluster *config.Cluster
	name    string // of the lab
	dir     string // of the bisection
	command []string
	file    string // the lab's cluster.yaml
}

func (a *app) bisecting() (*bisecting, error) {
	c, err := a.cluster()
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	const suffix, longest = "-bisect", 20
	name := strings.TrimRight(c.Name[:min(len(c.Name), longest-len(suffix))], "-") + suffix
	return &bisecting{app: a, cluster: c, name: name, dir: filepath.Join(cache, "k8slab-bisect", name)}, nil
}

// checkout is the one of the directories in cluster.yaml that is bisected.
func (t *bisecting) checkout(asked string) (string, error) {
	named := t.cluster.Directories()
	maps.DeleteFunc(named, func(_, dir string) bool { return !image.IsCheckout(dir) })
	all := slices.Compact(slices.Sorted(maps.Values(named)))
	switch {
	case len(all) == 0:
		return "", errors.New("cluster.yaml names no checkout that is a git repository, so there is nothing to bisect; " +
			"next: write its directory as kubernetes.source, kubernetes.programs.PROGRAM or etcd.source (docs/images.md)")
	case asked != "" && !slices.Contains(all, asked):
		return "", usageError{fmt.Errorf("--checkout %s: cluster.yaml names %s", asked, strings.Join(all, ", "))}
	case asked == "" && len(all) > 1:
		return "", usageError{fmt.Errorf("cluster.yaml names several checkouts; say which with --checkout: %s", strings.Join(all, ", "))}
	case asked != "":
		return asked, nil
	}
	return all[0], nil
}

func (t *bisecting) run(ctx context.Context, r bisect.Range) error {
	var err error
	if r.Checkout, err = t.checkout(r.Checkout); err != nil {
		return err
	}
	path, err := t.description()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	r.Tested = append([]string{string(text)}, t.command...)
	b, err := bisect.Open(ctx, t.dir, r)
	if err != nil {
		return err
	}
	moved, err := config.Moved(text, t.name, r.Checkout, b.Tree())
	if err != nil {
		return err
	}
	t.file = b.File("cluster.yaml")
	if err := atomicfile.Write(t.file, 0o600, moved); err != nil {
		return err
	}
	if b.Resumed {
		t.say("going on with the bisection that was interrupted")
	}
	log, err := b.Run(ctx, t.try, t.say)
	if err != nil {
		return resumableError{err, "run the same command again to go on, or labctl bisect --abort"}
	}
	if err := b.Remove(ctx); err != nil {
		return err
	}
	if err := t.print(log, func(w io.Writer) { printBisection(w, log) }); err != nil || log.First != nil {
		return err
	}
	return errors.New("the first bad commit is one of several that could not be tried")
}

func (t *bisecting) say(text string) {
	if text != "" {
		_, _ = fmt.Fprintln(t.stderr, "bisect:", text)
	}
}

// outcomes say what the exit status of a step means. A status that is not there ends the bisection.
type outcomes map[int]bisect.Verdict

// try decides on the commit that the worktree has. The lab is taken down in any case.
func (t *bisecting) try(ctx context.Context, c bisect.Commit) (v bisect.Verdict, err error) {
	begun := time.Now()
	t.say(fmt.Sprintf("trying %.12s %s", c.ID, c.Subject))
	if err := t.down(ctx); err != nil { // what a killed run left
		return "", err
	}
	defer func() { err = errors.Join(err, t.down(context.WithoutCancel(ctx))) }()
	const goesOn = ""
	why := ""
	for _, step := range []struct {
		args  []string
		means outcomes
		why   string
	}{
		{[]string{"image", "build"}, outcomes{0: goesOn, exitFailed: bisect.Skip}, "it cannot be built"},
		{[]string{"up", "--until", "machines"}, outcomes{0: goesOn}, ""},
		{[]string{"up"}, outcomes{0: goesOn, exitFailed: bisect.Bad}, "the cluster does not come up"},
		{t.command, nil, ""},
	} {
		status, err := t.labctl(ctx, step.args...)
		if err != nil {
			return "", err
		}
		var decided bool
		if v, decided = step.means[status]; step.means == nil {
			v, decided = commandVerdict(status)
			step.why = fmt.Sprintf("exit status %d", status)
		}
		if !decided {
			return "", fmt.Errorf("labctl %s: exit status %d, which says nothing of the commit %.12s", strings.Join(step.args, " "), status, c.ID)
		}
		if v != goesOn {
			why = step.why
			break
		}
	}
	t.say(fmt.Sprintf("%.12s is %s: %s (%s)", c.ID, v, why, time.Since(begun).Round(time.Second)))
	return v, nil
}

// commandVerdict is what git bisect run makes of a status; but 2 is labctl's own for wrong usage.
func commandVerdict(status int) (v bisect.Verdict, decided bool) {
	switch {
	case status == 0:
		return bisect.Good, true
	case status == 125:
		return bisect.Skip, true
	case status == exitUsage || status > 127:
		return "", false
	}
	return bisect.Bad, true
}

func (t *bisecting) down(ctx context.Context) error {
	status, err := t.labctl(ctx, "down")
	if err == nil && status != 0 {
		err = fmt.Errorf("labctl -c %s down: exit status %d", t.file, status)
	}
	return err
}

// ending is how long a labctl may take to end in order.
const ending = 2 * time.Minute

// labctl runs this program for the bisection's lab. What it prints is progress here.
func (t *bisecting) labctl(ctx context.Context, args ...string) (status int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	c := exec.CommandContext(ctx, self, append([]string{"--config", t.file}, args...)...)
	c.Stdout, c.Stderr = t.stderr, t.stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches it through ctx alone
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = ending
	err = c.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode(), nil
	}
	return 0, err
}

func (t *bisecting) abort(ctx context.Context) error {
	b, err := bisect.Interrupted(t.dir)
	if errors.Is(err, fs.ErrNotExist) {
		t.say("there is no bisection of " + t.cluster.Name)
		return nil
	}
	if err != nil {
		return err
	}
	t.file = b.File("cluster.yaml")
	if _, err := os.Stat(t.file); err == nil {
		if err := t.down(ctx); err != nil {
			return err
		}
	}
	return b.Remove(ctx)
}

func printBisection(w io.Writer, l bisect.Log) {
	for _, j := range l.Judged {
		_, _ = fmt.Fprintf(w, "%-4s  %.12s  %s\n", j.Verdict, j.ID, j.Subject)
	}
	if l.First != nil {
		_, _ = fmt.Fprintf(w, "\nThe first bad commit is %s\n%s\n", l.First.ID, l.First.Subject)
		return
	}
	_, _ = fmt.Fprintln(w, "\nThe first bad commit is one of these:")
	for _, c := range l.Possible {
		_, _ = fmt.Fprintf(w, "%.12s  %s\n", c.ID, c.Subject)
	}
}
