package addon

import (
	"context"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"

	"k8slab/lab/gitrepo"
	"k8slab/lab/gitserver"
	"k8slab/lab/labtest"
	"k8slab/lab/session"
)

func manifestWith(t *testing.T, name string, v Values) string {
	t.Helper()
	i := slices.IndexFunc(catalogue, func(a Addon) bool { return a.Name == name })
	manifest, err := catalogue[i].Manifest(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(manifest)
}

// Flux refuses a Kustomization whose key for decryption is not there.
func TestFluxDecryptsOnlyWithSops(t *testing.T) {
	with, without := manifestWith(t, "flux", Values{Sops: true}), manifestWith(t, "flux", Values{})
	if !strings.HasSuffix(with, "  wait: true\n  decryption:\n    provider: sops\n    secretRef: {name: sops-age}\n") {
		t.Errorf("with SOPS it ends with %q", with[len(with)-100:])
	}
	if !strings.HasSuffix(without, "  wait: true\n") || strings.Contains(without, "sops") {
		t.Errorf("without SOPS it ends with %q", without[len(without)-100:])
	}
}

// The repository is in a directory of one node.
func TestGitStaysOnItsNode(t *testing.T) {
	if got := manifestWith(t, "git", Values{GitNode: "cp1"}); !strings.Contains(got, "nodeSelector:\n        kubernetes.io/hostname: cp1 ") {
		t.Error(got)
	}
}

func TestSopsHasNoObjects(t *testing.T) {
	if got := manifestWith(t, "sops", Values{}); got != "" {
		t.Error(got)
	}
}

// gitLab is a lab with a Git server, which has the name that it has in the cluster.
func gitLab(t *testing.T) (*session.Session, GitOps, string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git: ", err)
	}
	s := labtest.Session(t, labtest.Small)
	if err := s.Write(gitPasswordFile, []byte("secret")); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	handler, err := gitserver.New(t.Context(), gitserver.Config{Dir: dir, Password: "secret", Errors: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != "10.96.0.7:80" {
			t.Errorf("dialled %s", address)
		}
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}
	return s, GitOps{URL: GitURL, Branch: gitBranch, PasswordFile: s.Path(gitPasswordFile), Dial: dialAs(gitHost, "10.96.0.7", dial)},
		filepath.Join(dir, "lab.git")
}

// The repository is filled once, an onboarding finds its entry there, and completing it again takes nothing back.
func TestSeedGit(t *testing.T) {
	s, to, dir := gitLab(t)
	var changes []string
	s.Mutated = func(what string) error { changes = append(changes, what); return nil }
	seed := seedOf("w3")
	for range 2 {
		if err := push(t.Context(), s, to, seed); err != nil {
			t.Fatal(err)
		}
	}
	r, err := gitrepo.Open(t.Context(), gitrepo.Config{
		URL: to.URL, Branch: to.Branch, PasswordFile: to.PasswordFile, Dial: to.Dial, File: gitNodes, Entry: "w3.yaml",
		Target: gitrepo.Target{Node: "w3"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Activate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := push(t.Context(), s, to, seed); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("git", "--git-dir", dir, "log", "--format=%s", "main").Output()
	if got := string(out); err != nil || got != "Activate w3: uncomment w3.yaml in nodes/kustomization.yaml\nAdd what cluster.yaml has\n" {
		t.Errorf("the commits are %v\n%s", err, got)
	}
	if seen, err := r.Look(t.Context()); err != nil || !seen.Active {
		t.Errorf("%v, %v", seen, err)
	}
	if want := []string{"git push to " + GitURL}; len(changes) != 1 || changes[0] != want[0] {
		t.Errorf("the changes are %q, wanted %q", changes, want)
	}
}

func TestSeedGitRefused(t *testing.T) {
	s, to, _ := gitLab(t)
	if err := s.Write(gitPasswordFile, []byte("another")); err != nil {
		t.Fatal(err)
	}
	err := push(t.Context(), s, to, seedOf("w3"))
	if !errors.Is(err, gitrepo.ErrUnauthorized) || strings.Contains(err.Error(), "another") {
		t.Error(err)
	}
}

func TestAgeIdentity(t *testing.T) {
	s := labtest.Session(t, labtest.Small)
	first, err := ageIdentity(s)
	if err != nil {
		t.Fatal(err)
	}
	second, err := ageIdentity(s)
	if err != nil || first.String() != second.String() {
		t.Errorf("the second time it is another one: %v", err)
	}
	if info, err := os.Stat(s.Path(ageFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its file is %v, %v", info, err)
	}
	if !HasSops(s, nil) {
		t.Error("the lab with an identity has no SOPS")
	}
	if err := s.Write(ageFile, []byte("AGE-SECRET-KEY-1torn")); err != nil {
		t.Fatal(err)
	}
	if _, err := ageIdentity(s); err == nil || strings.Contains(err.Error(), "torn") || !strings.Contains(err.Error(), "labctl down") {
		t.Errorf("the error is %v", err)
	}
}

// The real command encrypts the values and nothing else, and the identity decrypts them.
func TestEncrypt(t *testing.T) {
	sops, err := exec.LookPath("sops")
	if err != nil {
		t.Skip("there is no sops: ", err)
	}
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	out, err := encrypt(t.Context(), sops, identity.Recipient().String(), labSecret("plain-token"))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(out); strings.Contains(text, "plain-token") || !strings.Contains(text, "name: lab\n") || !strings.Contains(text, "token: ENC[") {
		t.Errorf("encrypted it is\n%s", text)
	}
	cmd := exec.Command(sops, "decrypt", "--input-type", "yaml", "--output-type", "yaml")
	cmd.Env, cmd.Stdin = []string{"SOPS_AGE_KEY=" + identity.String(), "HOME=" + t.TempDir()}, strings.NewReader(string(out))
	plain, err := cmd.Output()
	if err != nil || !strings.Contains(string(plain), "token: plain-token") {
		t.Errorf("decrypted it is %v\n%s", err, plain)
	}
}
