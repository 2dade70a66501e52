package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	nethttp "net/http"
	"net/url"
	"os"
	"os/user"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/http"

	"k8slab/lab/atomicfile"
)

// Config is an entry of a kustomization in a Git repository, and how it is changed.
type Config struct {
	URL    string // http or https, without a user, a password, a query or a fragment
	Branch string // such as main
	File   string // from the top of the repository, such as infrastructure/storage/kustomization.yaml
	Entry  string // the list's item, such as ../k3s2-node-config

	Username     string // for the server; default git, which those that want tokens take
	PasswordFile string // has the password or token, with mode 0600; "" for a server that asks for none; with http the network can read it
	SigningKey   string // file with a private key, OpenPGP (armored) or of SSH, without a passphrase, with mode 0600; "" to sign nothing
	AuthorName   string // default labctl
	AuthorEmail  string // default labctl@HOST

	Dial func(ctx context.Context, network, address string) (net.Conn, error) `json:"-"` // the way to the server; nil for this computer's own

	Target Target // whom the commit's message names
	By     string // who wants it, for the message; default USER@HOST
	Backup string // path of a file, this entry's alone, that keeps the kustomization as it was before the activation; "" for none
}

// Target is the node that an activation is for.
type Target struct{ Node, Cluster, ClusterID string }

// Repository is what Open made of a Config. It is safe for concurrent use.
type Repository struct {
	Config
	password string
	signer   signer // nil to sign nothing
	client   transport.Transport
}

// Open checks the configuration and reads the files with credentials, so that what they lack is known before anything is changed. The error
// has all problems. It does not ask the server.
func Open(ctx context.Context, c Config) (*Repository, error) {
	c = c.defaulted()
	found := c.problems()
	r := &Repository{Config: c, client: http.DefaultClient}
	if c.Dial != nil { // a connection for each request: nobody would close those that are kept
		r.client = http.NewClient(&nethttp.Client{Transport: &nethttp.Transport{DialContext: c.Dial, DisableKeepAlives: true}})
	}
	var err error
	if c.PasswordFile != "" {
		if r.password, err = readPassword(c.PasswordFile); err != nil {
			found = append(found, "password file: "+err.Error())
		}
	}
	if c.SigningKey != "" {
		if r.signer, err = openSigner(ctx, c.SigningKey); err != nil {
			found = append(found, "signing key: "+err.Error())
		}
	}
	if len(found) > 0 {
		return nil, fmt.Errorf("git repository: %s", strings.Join(found, "; "))
	}
	return r, nil
}

func (c Config) defaulted() Config {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	c.Username = cmp.Or(c.Username, "git")
	c.AuthorName = cmp.Or(c.AuthorName, "labctl")
	c.AuthorEmail = cmp.Or(c.AuthorEmail, "labctl@"+host)
	c.By = cmp.Or(c.By, name+"@"+host)
	return c
}

// problems lists what is wrong with the values. It does not show the URL: what was meant as one may hold a password.
func (c Config) problems() []string {
	var found []string
	report := func(wrong bool, text string) {
		if wrong {
			found = append(found, text)
		}
	}
	if why := urlProblem(c.URL); why != "" {
		found = append(found, "the URL "+why+"; use one such as https://git.example/fleet.git")
	}
	report(plumbing.NewBranchReferenceName(c.Branch).Validate() != nil, fmt.Sprintf("%q is not a branch name", c.Branch))
	report(!fs.ValidPath(c.File) || c.File == "." || !plain(c.File),
		fmt.Sprintf("%q is not a path in a repository; use one such as infrastructure/kustomization.yaml", c.File))
	report(c.Entry == "" || strings.TrimSpace(c.Entry) != c.Entry || !plain(c.Entry), fmt.Sprintf("%q is not an item of a list of files", c.Entry))
	report(!plain(c.Username) || strings.Contains(c.Username, ":"), fmt.Sprintf("the user %q has a colon or control characters", c.Username))
	author := c.AuthorName + " " + c.AuthorEmail
	report(!plain(author) || strings.ContainsAny(author, "<>"), fmt.Sprintf("the author %q has angle brackets or control characters", author))
	report(!plain(c.By+c.Target.Node+c.Target.Cluster+c.Target.ClusterID), "who and whom the commit is for has control characters")
	return found
}

func plain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

func urlProblem(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || !plain(text):
		return "is not an HTTP URL"
	case u.User != nil:
		return "has a user or a password, which would be shown"
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return "has a query or a fragment"
	case u.Hostname() == "":
		return "has no host"
	}
	return ""
}

// place names the file to people.
func (c Config) place() string { return fmt.Sprintf("%s of %s, branch %s", c.File, c.URL, c.Branch) }

// message is that of a commit. Its subject can be told apart by people and by tests.
func (c Config) message(verb, how string) string {
	return fmt.Sprintf("%s %s: %s %s in %s\n\nCluster: %s (%s)\nRequested-by: %s\n",
		verb, c.Target.Node, how, c.Entry, c.File, c.Target.Cluster, c.Target.ClusterID, c.By)
}

func readPassword(file string) (string, error) {
	data, err := atomicfile.ReadPrivate(file, maxFile)
	if err != nil {
		return "", err
	}
	password := strings.TrimRight(string(data), "\r\n")
	if password == "" || !plain(password) {
		return "", errors.New(file + " has no single line of text")
	}
	return password, nil
}
