package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"k8slab/lab/event"
	"k8slab/lab/guard"
	"k8slab/lab/node"
	"k8slab/lab/state"
)

// forLabs marks commands about what labctl made: its machines, images, add-ons.
func forLabs(commands ...*cobra.Command) []*cobra.Command {
	for _, cmd := range commands {
		cmd.Annotations = map[string]string{onlyLabs: "true"}
	}
	return commands
}

const onlyLabs = "only of a lab"

// refuseExisting refuses a command that is marked with forLabs, or is below one, for a cluster that labctl did not make.
func (a *app) refuseExisting(cmd *cobra.Command) error {
	for at := cmd; at != nil; at = at.Parent() {
		if at.Annotations[onlyLabs] == "" {
			continue
		}
		if c, _, err := a.load(); err == nil && c.OverSSH() {
			return usageError{fmt.Errorf("%s is about machines that labctl made; those of %s exist without it (machines: ssh)", cmd.CommandPath(), c.Name)}
		}
	}
	return nil
}

// login is how a person is asked before a login to a machine that exists. Nothing is asked without a terminal.
func (a *app) login() node.LoginOptions {
	known := ""
	if root, err := state.Root(); err == nil {
		known = filepath.Join(root, ".known_hosts") // no lab has such a name
	}
	o := node.LoginOptions{KnownHosts: known, AcceptNew: a.acceptNew}
	if !a.terminal() {
		return o
	}
	o.Ask = func(host, fingerprint string) error {
		ok, err := a.asked(context.Background(), fmt.Sprintf("The host key of %s is not known yet: %s. Trust it?", host, fingerprint))
		if err == nil && !ok {
			err = fmt.Errorf("the host key of %s was not accepted", host)
		}
		return err
	}
	o.Password = func() (string, error) { return a.secret("Password for sudo: ") }
	o.Passphrase = func(file string) (string, error) { return a.secret("Passphrase of " + file + ": ") }
	return o
}

// confirmChange shows what will be changed in a cluster that labctl did not make, and asks.
func (a *app) confirmChange(ctx context.Context, c guard.Change) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, in %s, will:\n", c.Verb, c.Cluster)
	for _, step := range c.Steps {
		b.WriteString("  " + event.OneLine(event.Redact(step)) + "\n")
	}
	_, _ = fmt.Fprint(a.stderr, b.String())
	agree := a.ask
	if c.Named {
		agree = a.askName(c.Cluster)
	}
	ok, err := agree(ctx, "Go on?", a.yes)
	if err == nil && !ok {
		err = errors.New("nothing was changed")
	}
	return err
}

// secret asks for a secret on the terminal, which does not show it.
func (a *app) secret(prompt string) (string, error) {
	_, _ = fmt.Fprint(a.stderr, prompt)
	text, err := term.ReadPassword(int(a.stdin.Fd()))
	_, _ = fmt.Fprintln(a.stderr)
	return string(text), err
}

func (a *app) terminal() bool {
	return a.stdin != nil && term.IsTerminal(int(a.stdin.Fd()))
}
