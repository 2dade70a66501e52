package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Set by the linker, see the Makefile. Unknown values are empty.
var version, commit, date string

// build says which labctl this is.
type build struct {
	Version string `json:"version"` // the tag, and how many commits came after it
	Commit  string `json:"commit"`
	Date    string `json:"date"` // of the commit
}

// thisBuild is what the linker was told, or what Go noted when it built outside of make.
func thisBuild() build {
	b := build{version, commit, date}
	if info, ok := debug.ReadBuildInfo(); ok {
		noted := map[string]string{}
		for _, s := range info.Settings {
			noted[s.Key] = s.Value
		}
		b.Commit, b.Date = cmp.Or(b.Commit, noted["vcs.revision"]), cmp.Or(b.Date, noted["vcs.time"])
	}
	return build{cmp.Or(b.Version, "devel"), cmp.Or(b.Commit, "unknown"), cmp.Or(b.Date, "unknown")}
}

func (a *app) printVersion() error {
	b := thisBuild()
	return a.print(b, func(w io.Writer) { _, _ = fmt.Fprintf(w, "labctl %s, commit %s of %s\n", b.Version, b.Commit, b.Date) })
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, commit and date of labctl",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return a.printVersion() },
	}
}
