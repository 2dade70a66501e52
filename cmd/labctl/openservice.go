package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"

	"k8slab/lab"
	"k8slab/lab/event"
	"k8slab/lab/reach"
)

func (a *app) openCommand() *cobra.Command {
	var t reach.Target
	var urlOnly bool
	cmd := &cobra.Command{
		Use:   "open SERVICE",
		Short: "Reach a Service from this computer, until Ctrl-C",
		Long: `Connect a port of this computer's loopback with a Service of the cluster, whatever its type and wherever the machines are, and print its URL.
SERVICE is NAME or NAMESPACE/NAME; a NAME alone is that in the namespace default, or the only one. On a desktop a browser opens, unless you are root.
It goes on until Ctrl-C.`,
		Example: `  labctl open web
  labctl open monitoring/prometheus --listen 127.0.0.1:9090
  labctl open web --port https --url`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.serviceNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkListen(t.Listen); err != nil {
				return usageError{err}
			}
			t.Service = args[0]
			return a.openService(cmd.Context(), t, urlOnly)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&t.Port, "port", "", "`PORT` of the Service, by name or number; needed if it has several")
	flags.StringVar(&t.Listen, "listen", "127.0.0.1:0", "loopback address and port; port 0 is a free one")
	flags.BoolVar(&urlOnly, "url", false, "print the URL and open no browser")
	_ = cmd.RegisterFlagCompletionFunc("port", cobra.NoFileCompletions)
	return cmd
}

// openService serves until ctx ends, which is no error.
func (a *app) openService(ctx context.Context, t reach.Target, urlOnly bool) error {
	l, err := a.lab()
	if err != nil {
		return err
	}
	defer l.Close()
	services, err := l.Services(ctx)
	if err != nil {
		return err
	}
	t.Failed = func(err error) { _, _ = fmt.Fprintln(a.stderr, "connection:", event.OneLine(err.Error())) }
	opened, stop, err := services.Open(ctx, t)
	if err != nil {
		return err
	}
	defer stop()
	if err := a.print(opened, func(w io.Writer) { _, _ = fmt.Fprintln(w, opened.URL) }); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(a.stderr, "%s leads to port %d of %s until Ctrl-C\n", opened.Address, opened.Port, opened.Service)
	if program := browser(os.Geteuid()); program != "" && !urlOnly && a.output == "text" {
		show := exec.Command(program, opened.URL)
		show.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the browser outlives this command
		if err := show.Start(); err != nil {
			_, _ = fmt.Fprintln(a.stderr, "no browser:", err)
		} else {
			go func() { _ = show.Wait() }()
		}
	}
	<-ctx.Done()
	return nil
}

// browser is the program that opens a browser, "" where there is no desktop. As root browsers refuse to start.
func browser(euid int) string {
	if euid == 0 || cmp.Or(os.Getenv("DISPLAY"), os.Getenv("WAYLAND_DISPLAY")) == "" {
		return ""
	}
	path, _ := exec.LookPath("xdg-open")
	return path
}

// serviceNames completes a Service of the cluster.
func (a *app) serviceNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	services, err := look(a, func(l *lab.Lab) (reach.Services, error) { return l.Services(cmd.Context()) })
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, s := range services.All {
		names = append(names, s.String())
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
