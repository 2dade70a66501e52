package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"k8slab/config"
	"k8slab/lab/atomicfile"
	"k8slab/lab/attach"
	"k8slab/lab/node"
)

// attachment is what `labctl attach` was asked for.
type attachment struct {
	name, kubeconfig, identity, jump, user string
	logins                                 []string // NODE=[USER@]HOST[:PORT]
	noSudo, keep, dryRun, force            bool
}

func (a *app) attachCommand() *cobra.Command {
	var at attachment
	cmd := &cobra.Command{
		Use:   "attach [LOGIN]",
		Short: "Describe a cluster that exists, so that labctl works on it over SSH",
		Long: `Find out what a kubeadm cluster consists of, from one login to one of its machines, and write it down as a cluster.yaml with machines: ssh.
Then status, diagnose, repair, join and others work on the cluster. Nothing on the cluster is changed.

LOGIN is USER@HOST, USER@HOST:PORT, or a name of ~/.ssh/config. The other machines get the same user, port, key and jump host, at the address
of their Node, unless ~/.ssh/config has an entry for the node's name or --login says otherwise. A login that is not root uses sudo.
Host keys are checked with ~/.ssh/known_hosts. The file that is written has no secret in it: keep it in git.

Exit status: 0 written, also if some machines do not answer, 1 failed, 2 wrong usage.`,
		Example: `  labctl attach root@192.168.4.63
  labctl attach ops@192.168.4.63:2222 --jump ops@gate.home.lan --dry-run
  labctl attach cp1 -c home.yaml --login nas=root@nas.home.lan
  labctl attach --kubeconfig ~/.kube/config --user ops`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 0) == (at.kubeconfig == "") {
				return usageError{errors.New("name one way in: LOGIN or --kubeconfig FILE; next: `labctl attach root@HOST`")}
			}
			return a.attach(cmd.Context(), at, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&at.name, "name", "", "the cluster's `NAME` here; by default the one that kubeadm knows, or of the endpoint")
	flags.StringVar(&at.kubeconfig, "kubeconfig", "", "find the control planes with this kubeconfig `FILE`, and log in there")
	flags.StringVar(&at.user, "user", "", "the `USER` to log in as, where LOGIN names none")
	flags.StringVarP(&at.identity, "identity-file", "i", "", "the private key's `FILE`; by default the agent's keys and those that ssh tries")
	flags.StringVarP(&at.jump, "jump", "J", "", "the `[USER@]HOST[:PORT]` of a jump host")
	flags.StringArrayVar(&at.logins, "login", nil, "another login of one node, as `NODE=[USER@]HOST[:PORT]`; may be repeated")
	flags.BoolVar(&at.noSudo, "no-sudo", false, "do not use sudo, although the login is not root")
	flags.BoolVar(&at.keep, "keep-labnode", false, "leave labnode in the login's cache directory, so that commands start faster")
	flags.BoolVar(&at.dryRun, "dry-run", false, "print what would be written, and write nothing")
	flags.BoolVar(&at.force, "force", false, "replace the file if it exists")
	return cmd
}

func (a *app) attach(ctx context.Context, at attachment, args []string) error {
	if !at.dryRun {
		if err := newFile(a.file, at.force); err != nil {
			return err
		}
	}
	o, err := at.options(args)
	if err != nil {
		return usageError{err}
	}
	o.Login = a.login()
	found, err := attach.Find(ctx, o)
	if err != nil {
		return err
	}
	text, err := found.Cluster.YAML()
	if err != nil {
		return err
	}
	if !at.dryRun {
		if err := found.Keep(); err != nil {
			return err
		}
		if err := atomicfile.Write(a.file, 0o644, text); err != nil {
			return err
		}
	}
	return a.print(found, func(w io.Writer) {
		printFound(w, found)
		if at.dryRun {
			_, _ = fmt.Fprintf(w, "\n%s would be:\n\n%s\nNothing was written, and nothing on the cluster was changed.\n", a.file, text)
			return
		}
		self := os.Args[0]
		if a.file != defaultFile {
			self += " -c " + a.file
		}
		_, _ = fmt.Fprintf(w, "wrote %s; nothing on the cluster was changed\nNext: %s diagnose\n", a.file, self)
	})
}

// options turn the flags into what lab/attach asks for.
func (at attachment) options(args []string) (attach.Options, error) {
	o := attach.Options{Name: at.name, Logins: map[string]config.SSH{}}
	common := config.SSH{User: at.user, IdentityFile: at.identity, Jump: at.jump, KeepLabnode: at.keep}
	var err error
	if at.kubeconfig != "" {
		if o.Kubeconfig, err = os.ReadFile(at.kubeconfig); err != nil {
			return o, err
		}
		o.First = common
	} else if o.First, err = login(args[0], common); err != nil {
		return o, err
	}
	o.First.Sudo = !at.noSudo && cmp.Or(o.First.User, "root") != "root"
	for _, text := range at.logins {
		name, where, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return o, fmt.Errorf("--login %q: use NODE=[USER@]HOST[:PORT]", text)
		}
		one, err := login(where, config.SSH{})
		if err != nil {
			return o, err
		}
		one.Sudo = !at.noSudo && one.User != "root" && (one.User != "" || o.First.Sudo)
		o.Logins[name] = one
	}
	o.Lookup = func(name string) (config.SSH, bool) {
		h, err := node.SSHConfig(name)
		return config.SSH{Host: h.Host, Port: h.Port, User: h.User, IdentityFile: h.IdentityFile, Jump: h.Jump}, err == nil && h != (node.HostConfig{Host: name})
	}
	return o, nil
}

// login reads [USER@]HOST[:PORT], whose host may be a name of ~/.ssh/config. What the text says comes before what the flags say, and that
// before the file.
func login(text string, flags config.SSH) (config.SSH, error) {
	user, host, port, err := config.ParseLogin(text)
	if err != nil {
		return flags, err
	}
	h, err := node.SSHConfig(host)
	if err != nil {
		return flags, err
	}
	flags.Host, flags.Port = h.Host, cmp.Or(port, h.Port)
	flags.User, flags.IdentityFile = cmp.Or(user, flags.User, h.User), cmp.Or(flags.IdentityFile, h.IdentityFile)
	flags.Jump = cmp.Or(flags.Jump, h.Jump)
	return flags, nil
}

func printFound(w io.Writer, f attach.Found) {
	_, _ = fmt.Fprintf(w, "%s: Kubernetes %s, API at %s", f.Name, f.Version, f.Endpoint)
	if f.CNI != "" {
		_, _ = fmt.Fprintf(w, ", pod network %s", f.CNI)
	}
	_, _ = fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "NODE\tROLE\tIP\tVERSION\tREADY\tETCD\tLOGIN")
	for _, n := range f.Nodes {
		where := n.Login
		if host, port, err := net.SplitHostPort(where); err == nil && port == "22" {
			where = host
		}
		if n.Problem != "" {
			where += " (does not work)"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.Name, n.Role, n.IP, n.Version, yesNo(n.Ready), n.Etcd, where)
	}
	_ = t.Flush()
	for _, n := range f.Nodes {
		if n.Problem != "" {
			writeWrapped(w, "warning: ", n.Problem)
		}
	}
	for _, warning := range f.Warnings {
		writeWrapped(w, "warning: ", warning)
	}
}
