package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"k8slab/config"
)

// usageArgs makes wrong arguments of the command and its children usage errors that name the argument.
func usageArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			if check(c, args) == nil {
				return nil
			}
			return usageError{wrongArgs(c, args)}
		}
	}
	for _, child := range cmd.Commands() {
		usageArgs(child)
	}
}

// wrongArgs says what is wrong with arguments that the command refuses, by its usage line.
func wrongArgs(cmd *cobra.Command, args []string) error {
	if cmd.HasSubCommands() {
		return unknownCommand(cmd, args[0])
	}
	usage := strings.TrimSuffix(cmd.UseLine(), " [flags]")
	name := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	required, most := argumentNames(cmd)
	switch {
	case len(args) < len(required):
		return fmt.Errorf("%s needs %s: %s", name, strings.Join(required[len(args):], " and "), usage)
	case most == 0:
		return fmt.Errorf("%s takes no arguments, got %q: %s", name, args[0], usage)
	case len(args) > most:
		return fmt.Errorf("%s takes %s, got also %q: %s", name, counted(most, "argument"), args[most], usage)
	}
	return fmt.Errorf("%s knows no %q%s: %s", name, args[0], config.DidYouMean(args[0], cmd.ValidArgs), usage)
}

func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// argumentNames are the names of the arguments in the usage line, and how many there may be. Arguments in brackets are optional.
func argumentNames(cmd *cobra.Command) (required []string, most int) {
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if strings.HasPrefix(word, "-") { // a flag that is required, and its value
			break
		}
		most++
		if !strings.HasPrefix(word, "[") {
			required = append(required, strings.TrimSuffix(word, "..."))
		}
	}
	return required, most
}

// unknownCommand is the error for an unknown command, with a suggestion.
func unknownCommand(parent *cobra.Command, word string) error {
	of := ""
	if parent.HasParent() {
		of = " of " + parent.CommandPath()
	}
	parent.SuggestionsMinimumDistance = 2
	var near []string
	for _, name := range parent.SuggestionsFor(word) {
		near = append(near, fmt.Sprintf("%q", name))
	}
	const most = 3 // one letter is the beginning of many
	if len(near) == 0 || len(near) > most {
		return fmt.Errorf("unknown command %q%s; see `%s --help`", word, of, parent.CommandPath())
	}
	return fmt.Errorf("unknown command %q%s; did you mean %s?", word, of, strings.Join(near, " or "))
}

// ownArgs are the arguments after the command's name, for a command that passes its flags to another program. labctl's own flags come before the
// name.
func (a *app) ownArgs(cmd *cobra.Command, args []string) ([]string, error) {
	_, own, err := cmd.Root().Traverse(args)
	if err != nil {
		return nil, usageError{err}
	}
	return own, a.checkOutput()
}
