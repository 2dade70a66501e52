package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"k8slab/lab"
	"k8slab/lab/command"
	"k8slab/lab/image"
	"k8slab/lab/provision"
)

func (a *app) imageLoadCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "load FILE|IMAGE [NODE...]",
		Short: "Load container images from an archive, or from docker or podman, into the nodes",
		Long: `Load the container images of an archive into containerd on every node that runs, or on the given nodes. The archive has docker's format or OCI's, and
may be gzipped; - is standard input. If there is no such file, it is the name of an image that docker, podman, nerdctl or containerd (ctr) of this
computer has. You can load it again: that replaces images of the same name.

Otherwise make the archive where the image is, or where a registry can be reached:
  docker save nginx:alpine | labctl image load -
  ctr images export --local nginx.tar docker.io/library/nginx:alpine
  skopeo copy docker://docker.io/library/nginx:alpine docker-archive:nginx.tar:nginx:alpine

A pod uses the image unless its imagePullPolicy is Always, which is the default for the tag latest and for no tag.
Nodes that are made later get what was loaded into all nodes; "labctl down" forgets it.

Exit status: 0 loaded on all nodes, 1 failed on some.`,
		Example: `  labctl image load nginx.tar
  labctl image load shop/web:dev
  labctl image load nginx.tar w1 w2
  docker save nginx:alpine | labctl image load -`,
		Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return []string{"tar", "tar.gz", "tgz"}, cobra.ShellCompDirectiveFilterFileExt
			}
			return a.diagnoseNodes(cmd, args, word)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "-" && term.IsTerminal(int(a.stdin.Fd())) {
				return usageError{errors.New("- reads the archive from standard input, which is a terminal; next: docker save IMAGE | labctl image load -")}
			}
			var loaded []provision.ImagesLoaded
			err := a.withEvents("image-load", func(l *lab.Lab) error {
				if _, err := l.Host(); err != nil { // before what may take long
					return err
				}
				file, err := a.archive(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				defer func() { _ = file.Close() }()
				archive, err := image.OpenArchiveFile(file)
				if err != nil {
					return fmt.Errorf("%s: %w\nnext: docker save IMAGE >FILE.tar makes an archive", archiveName(args[0]), err)
				}
				loaded, err = l.LoadImages(cmd.Context(), archive, args[1:])
				return err
			})
			if loaded == nil {
				return err
			}
			return errors.Join(err, a.print(loaded, func(w io.Writer) { printLoaded(w, loaded) }))
		},
	}
}

func archiveName(arg string) string {
	if arg == "-" {
		return "standard input"
	}
	return arg
}

// nameless is a file that is gone when it is closed.
func nameless() (*os.File, error) {
	f, err := os.CreateTemp("", "labctl-image-*")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// savers are the programs that keep images on this computer, and how each writes one to standard output as an archive.
var savers = [][]string{{"docker", "save"}, {"podman", "save"}, {"nerdctl", "save"}, {"ctr", "images", "export", "-"}}

// saved is the archive of an image that a program of this computer has.
func saved(ctx context.Context, reference string) (*os.File, error) {
	f, err := nameless()
	if err != nil {
		return nil, err
	}
	why := []error{fmt.Errorf("%s is no file, and no program of this computer has an image of that name", reference)}
	for _, argv := range savers {
		if _, err := exec.LookPath(argv[0]); err != nil {
			continue
		}
		_, err := command.Command{Argv: append(argv[:len(argv):len(argv)], reference), Stdout: f}.Run(ctx)
		if err == nil {
			return f, nil
		}
		why = append(why, err)
		_, seekErr := f.Seek(0, io.SeekStart)
		if err := errors.Join(f.Truncate(0), seekErr, context.Cause(ctx)); err != nil {
			why = append(why, err)
			break
		}
	}
	return nil, errors.Join(append(why, f.Close())...)
}

// archive opens the file, or makes one of an image of that name. Standard input is first copied to a nameless file, because each node reads
// the archive from its beginning.
func (a *app) archive(ctx context.Context, arg string) (*os.File, error) {
	if arg != "-" {
		f, err := os.Open(arg)
		if errors.Is(err, fs.ErrNotExist) {
			if _, bad := name.ParseReference(arg); bad == nil && !strings.HasPrefix(arg, ".") && !strings.HasSuffix(arg, ".tar") {
				return saved(ctx, arg)
			}
		}
		if err != nil {
			return nil, err
		}
		if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() {
			_ = f.Close()
			return nil, fmt.Errorf("%s is not a file; for a pipe: labctl image load - <%s", arg, arg)
		}
		return f, nil
	}
	f, err := nameless()
	if err != nil {
		return nil, err
	}
	type copied struct {
		n   int64
		err error
	}
	done := make(chan copied, 1)
	go func() { // which outlives an interruption while nothing comes
		n, err := io.Copy(f, a.stdin)
		done <- copied{n, err}
	}()
	select {
	case c := <-done:
		if c.err == nil && c.n == 0 {
			c.err = errors.New("it is empty: the command before the pipe has failed")
		}
		if c.err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("read standard input: %w", c.err)
		}
		return f, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func printLoaded(w io.Writer, loaded []provision.ImagesLoaded) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "NODE\tLOADED")
	for _, l := range loaded {
		what := strings.Join(l.Images, ", ")
		if l.Left != "" {
			what = "nothing: " + strings.Join(strings.Fields(l.Left), " ")
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\n", l.Node, what)
	}
	_ = t.Flush()
}
