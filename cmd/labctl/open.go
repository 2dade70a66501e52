package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"k8slab/config"
	"k8slab/lab"
	"k8slab/lab/event"
	"k8slab/lab/node"
	"k8slab/lab/state"
)

// description is the path of the file that describes the lab: -c's, or what the lab named with --lab was made with.
func (a *app) description() (string, error) {
	if a.labName == "" {
		return a.file, nil
	}
	return state.MadeWith(a.labName)
}

func (a *app) load() (*config.Cluster, []config.Warning, error) {
	path, err := a.description()
	if err != nil {
		return nil, nil, err
	}
	return config.Load(path)
}

// warnOfDifferences says which changes of cluster.yaml do not apply to the existing lab.
func (a *app) warnOfDifferences(l *lab.Lab) {
	for _, d := range l.Closed().Differences {
		if d.Way != state.Applies && d.Way != state.Keeps {
			_, _ = fmt.Fprintln(a.stderr, "warning: cluster.yaml differs from the lab, which stays as it was made:", d)
		}
	}
}

// cluster reads cluster.yaml and shows its warnings.
func (a *app) cluster() (*config.Cluster, error) {
	c, warnings, err := a.load()
	for _, w := range warnings {
		_, _ = fmt.Fprintln(a.stderr, "warning:", w)
	}
	return c, err
}

// lab opens the lab for a command that changes nothing or only looks.
func (a *app) lab() (*lab.Lab, error) {
	c, err := a.cluster()
	if err != nil {
		return nil, err
	}
	return lab.New(c, a.labOptions(nil))
}

// labOptions are those of every lab that a command opens.
func (a *app) labOptions(events *event.Stream) lab.Options {
	return lab.Options{Events: events, Labnode: labnode, Packed: labnodePacked, Login: a.login(), Confirm: a.confirmChange}
}

// look opens the lab and returns what a function finds in it.
func look[T any](a *app, find func(*lab.Lab) (T, error)) (found T, err error) {
	l, err := a.lab()
	if err != nil {
		return found, err
	}
	defer l.Close()
	return find(l)
}

// show opens the lab and prints what a function finds in it.
func show[T any](a *app, find func(*lab.Lab) (T, error), text func(io.Writer, T)) (found T, err error) {
	if found, err = look(a, find); err != nil {
		return found, err
	}
	return found, a.print(found, func(w io.Writer) { text(w, found) })
}

// onNode calls a function with a connection to a node of the lab.
func (a *app) onNode(name string, do func(*node.Node) error) error {
	l, err := a.lab()
	if err != nil {
		return err
	}
	defer l.Close()
	n, err := l.Node(name)
	if err != nil {
		return err
	}
	return do(n)
}

// watched opens the lab, and shows and logs its events. finish ends the display; the log's path is for messages. It goes on if there can be no
// log, as on a full disk, because `labctl down` must be able to free the space.
func (a *app) watched(verb string) (l *lab.Lab, finish func() error, log string, err error) {
	c, err := a.cluster()
	if err != nil {
		return nil, nil, "", err
	}
	if log, err = state.RunLog(c.Name, verb); err != nil {
		return nil, nil, "", err
	}
	sinks := a.sinks()
	file, err := event.File(log)
	switch {
	case err == nil:
		sinks = append(sinks, logSink{file, a.stderr})
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EIO):
		_, _ = fmt.Fprintln(a.stderr, "warning:", err)
		log = "none"
	default:
		return nil, nil, "", err
	}
	events := event.NewStream(sinks...)
	l, err = lab.New(c, a.labOptions(events))
	return l, events.Close, log, err
}

// logSink is the log of a run, one of event.File. A log that could not be written does not fail the command.
type logSink struct {
	event.Sink
	stderr io.Writer
}

func (s logSink) Close() error {
	err := s.Sink.(io.Closer).Close()
	if err != nil {
		_, err = fmt.Fprintln(s.stderr, "warning: the log is not complete:", err)
	}
	return err
}

// sinks are the views of the events: live lines on a terminal, plain lines elsewhere, the stream itself for -o json.
func (a *app) sinks() []event.Sink {
	if a.output == "json" {
		return []event.Sink{event.JSON(a.stdout)}
	}
	f, ok := a.stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || a.verbose {
		return []event.Sink{event.Plain(a.stderr), event.Summary(a.stderr)}
	}
	width := func() int {
		w, _, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 80
		}
		return w
	}
	return []event.Sink{event.Terminal(a.stderr, width), event.Summary(a.stderr)}
}

// print writes a result: JSON, or what text writes.
func (a *app) print(v any, text func(io.Writer)) error {
	if a.output == "json" {
		enc := json.NewEncoder(a.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	s := &screen{to: a.stdout}
	text(s)
	return s.close()
}

// asMade is the existing cluster, for completion.
func (a *app) asMade() (*config.Cluster, error) {
	c, _, err := a.load()
	if err != nil {
		return nil, err
	}
	l, err := state.Read(c)
	return l.Cluster, err
}

// nodeNames completes a node of cluster.yaml.
func (a *app) nodeNames(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	c, err := a.asMade()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return config.Names(c.Members()), cobra.ShellCompDirectiveNoFileComp
}
