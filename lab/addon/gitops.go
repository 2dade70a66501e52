package addon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"k8slab/config"
	"k8slab/lab/command"
	"k8slab/lab/event"
	"k8slab/lab/gitrepo"
	"k8slab/lab/image"
	"k8slab/lab/kube"
	"k8slab/lab/session"
	"k8slab/lab/wait"
)

// The lab's Git repository, as pods reach it, and Flux' objects that follow it.
const (
	gitNamespace  = "gitops"
	gitService    = "git"
	gitHost       = gitService + "." + gitNamespace + ".svc.cluster.local"
	gitBranch     = "main"
	fluxNamespace = "flux-system"
	fluxName      = "lab"
)

// GitURL is the address of the lab's Git repository in the cluster's network.
const GitURL = "http://" + gitHost + "/lab.git"

// Files of the lab's state.
const (
	gitPasswordFile = "git/password"
	ageFile         = "sops/age.agekey"
)

// seedBudget bounds the wait for the Git server's Service to lead somewhere, once its pod is ready.
const seedBudget = time.Minute

// GitOps is the way from this computer to the lab's Git repository.
type GitOps struct {
	URL          string // GitURL
	Branch       string
	PasswordFile string // for pushing as the user git
	Dial         func(ctx context.Context, network, address string) (net.Conn, error)
}

// FindGit finds the way to the lab's Git repository. It fails if the add-on git is not installed. The way works until the session is
// closed.
func FindGit(ctx context.Context, s *session.Session, v *session.Admin) (GitOps, error) {
	file := s.Path(gitPasswordFile)
	if _, err := os.Stat(file); err != nil {
		return GitOps{}, errors.New("the lab has no Git repository: list the add-on git in cluster.yaml and run `labctl up`")
	}
	ip, err := v.Kube.Service(ctx, gitNamespace, gitService)
	if err != nil {
		return GitOps{}, fmt.Errorf("find the lab's Git repository: %w; run `labctl addons install git`", err)
	}
	return GitOps{URL: GitURL, Branch: gitBranch, PasswordFile: file, Dial: dialAs(gitHost, ip, s.DialCluster)}, nil
}

// dialAs dials ip instead of a name that only the cluster's DNS knows.
func dialAs(name, ip string, dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if host == name {
			host = ip
		}
		return dial(ctx, network, net.JoinHostPort(host, port))
	}
}

// HasSops tells whether the lab's Git repository may have encrypted secrets: SOPS is among the add-ons, or was installed before.
func HasSops(s *session.Session, addons []Addon) bool {
	_, err := os.Stat(s.Path(ageFile))
	return err == nil || slices.ContainsFunc(addons, func(a Addon) bool { return a.Name == "sops" })
}

// objects is the manifest of an add-on for this lab, nil for none. It begins with the CustomResourceDefinitions that it needs.
func objects(ctx context.Context, s *session.Session, a Addon, values Values) ([]byte, error) {
	manifest, err := a.Manifest(values)
	kindsOf := map[string]func(context.Context, *event.Stream) ([]byte, error){"flux": image.FluxKinds, "load-balancer": image.MetalLBKinds}[a.Name]
	if err != nil || kindsOf == nil {
		return manifest, err
	}
	if a.Name == "load-balancer" && len(values.Pool) == 0 {
		return nil, fmt.Errorf("machines have every address of network.load_balancer %s; next: a new lab with a larger range", s.Cluster.Network.LoadBalancer)
	}
	kinds, err := kindsOf(ctx, s.Events)
	return slices.Concat(kinds, []byte("---\n"), manifest), err
}

// complete gives an add-on what it needs beside its objects, unless that exists.
func (c installer) complete(ctx context.Context, a Addon, values Values, step *event.Step) error {
	s, k := c.Session, c.admin.Kube
	switch a.Name {
	case "git":
		password, err := s.Once(gitPasswordFile, func() ([]byte, error) { return []byte(rand.Text()), nil })
		if err == nil {
			err = k.EnsureSecret(ctx, gitNamespace, "git-push", map[string][]byte{"password": password})
		}
		if err != nil {
			return err
		}
		step.Progress("git: filling the repository")
		return c.seedGit(ctx, a, values.Sops)
	case "sops":
		identity, err := ageIdentity(s)
		if err != nil {
			return err
		}
		return k.EnsureSecret(ctx, fluxNamespace, "sops-age", map[string][]byte{"age.agekey": []byte(identity.String())})
	}
	return nil
}

// seedGit adds to the Git repository what cluster.yaml has and the repository lacks.
func (c installer) seedGit(ctx context.Context, a Addon, sops bool) error {
	s := c.Session
	budget := addonsBudget * time.Duration(s.TimeScale())
	if err := wait.For(ctx, "the Git server to be ready", budget, s.Pace(), func(ctx context.Context) error {
		return workloadReady(ctx, c.admin, a.Workloads[0])
	}); err != nil {
		return fmt.Errorf("%w\nnext: labctl kubectl describe pod -n %s", err, gitNamespace)
	}
	to, err := FindGit(ctx, s, c.admin)
	if err != nil {
		return err
	}
	seed := gitSeed{onboard: slices.DeleteFunc(slices.Clone(s.Cluster.Nodes), func(n config.Node) bool { return !n.Onboard })}
	if sops {
		seed.secret = func() ([]byte, error) { return encryptedSecret(ctx, s) }
	}
	budget = seedBudget * time.Duration(s.TimeScale())
	return wait.For(ctx, "the Git repository to take what it lacks", budget, s.Pace(), func(ctx context.Context) error {
		err := push(ctx, s, to, seed)
		if err != nil && !errors.Is(err, gitrepo.ErrUnreachable) {
			return wait.Hopeless(err)
		}
		return err
	})
}

func push(ctx context.Context, s *session.Session, to GitOps, seed gitSeed) error {
	r, err := gitrepo.Open(ctx, gitrepo.Config{
		URL: to.URL, Branch: to.Branch, PasswordFile: to.PasswordFile, Dial: to.Dial, File: gitNodes, Entry: "lab.yaml",
	})
	if err != nil {
		return err
	}
	_, err = r.Complete(ctx, gitSeedMessage, func(read func(string) ([]byte, error)) (map[string][]byte, error) {
		files, err := seed.missing(read)
		if err == nil && len(files) > 0 {
			err = s.Mutated("git push to " + to.URL)
		}
		return files, err
	})
	return err
}

// fluxReady tells why Flux has not applied what the Git repository has.
func fluxReady(ctx context.Context, v *session.Admin) error {
	for _, r := range []kube.Resource{
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"},
		{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"},
	} {
		if err := v.Kube.ObjectReady(ctx, r, fluxNamespace, fluxName); err != nil {
			return err
		}
	}
	return nil
}

// ageIdentity is the key that decrypts the secrets in the Git repository, made when first asked for.
func ageIdentity(s *session.Session) (*age.X25519Identity, error) {
	data, err := s.Once(ageFile, func() ([]byte, error) {
		identity, err := age.GenerateX25519Identity()
		if err != nil {
			return nil, err
		}
		return []byte(identity.String() + "\n"), nil
	})
	if err != nil {
		return nil, err
	}
	identity, err := age.ParseX25519Identity(strings.TrimSpace(string(data)))
	if err != nil { // the error is not wrapped: its text could have the key
		return nil, fmt.Errorf("%s has no age identity; a new lab gets a new one: labctl down, labctl up", s.Path(ageFile))
	}
	return identity, nil
}

// encryptedSecret is a Secret with a random token, encrypted so that only Flux can read it.
func encryptedSecret(ctx context.Context, s *session.Session) ([]byte, error) {
	identity, err := ageIdentity(s)
	if err != nil {
		return nil, err
	}
	sops, err := image.Sops(ctx, s.Events)
	if err != nil {
		return nil, err
	}
	return encrypt(ctx, sops, identity.Recipient().String(), labSecret(rand.Text()))
}

// encrypt encrypts the values of a Secret's manifest. sops reads it from a pipe, so that no file has the plain text.
func encrypt(ctx context.Context, sops, recipient, manifest string) ([]byte, error) {
	out, err := command.Command{
		Argv:  []string{sops, "encrypt", "--age", recipient, "--encrypted-regex", "^(data|stringData)$", "--filename-override", gitSecret},
		Dir:   "/", // where no configuration of sops is
		Stdin: strings.NewReader(manifest),
	}.Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("encrypt %s: %w", gitSecret, err)
	}
	return []byte(out), nil
}

func labSecret(token string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata:\n  name: lab\n  namespace: %s\nstringData:\n  token: %s\n", gitObjectsSpace, token)
}
