package lab

import (
	"context"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"k8slab/lab/gitrepo"
	"k8slab/lab/gitserver"
)

// gitLab is a lab with a Git server, which has the name that it has in the cluster.
func gitLab(t *testing.T) (*Lab, GitOps, string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git: ", err)
	}
	l := &Lab{state: state{dir: t.TempDir()}}
	if err := l.state.write(gitPasswordFile, []byte("secret")); err != nil {
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
	return l, GitOps{URL: GitURL, Branch: gitBranch, PasswordFile: l.state.path(gitPasswordFile), Dial: dialAs(gitHost, "10.96.0.7", dial)},
		filepath.Join(dir, "lab.git")
}

// The repository is filled once, an onboarding finds its entry there, and completing it again takes nothing back.
func TestSeedGit(t *testing.T) {
	l, to, dir := gitLab(t)
	seed := seedOf("w3")
	for range 2 {
		if err := l.push(t.Context(), to, seed); err != nil {
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
	if err := l.push(t.Context(), to, seed); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("git", "--git-dir", dir, "log", "--format=%s", "main").Output()
	if got := string(out); err != nil || got != "Activate w3: uncomment w3.yaml in nodes/kustomization.yaml\nAdd what cluster.yaml has\n" {
		t.Errorf("the commits are %v\n%s", err, got)
	}
	if seen, err := r.Look(t.Context()); err != nil || !seen.Active {
		t.Errorf("%v, %v", seen, err)
	}
	if want := []string{"git push to " + GitURL}; len(l.Changes()) != 1 || l.Changes()[0] != want[0] {
		t.Errorf("the changes are %q, wanted %q", l.Changes(), want)
	}
}

func TestSeedGitRefused(t *testing.T) {
	l, to, _ := gitLab(t)
	if err := l.state.write(gitPasswordFile, []byte("another")); err != nil {
		t.Fatal(err)
	}
	err := l.push(t.Context(), to, seedOf("w3"))
	if !errors.Is(err, gitrepo.ErrUnauthorized) || strings.Contains(err.Error(), "another") {
		t.Error(err)
	}
}

func TestAgeIdentity(t *testing.T) {
	l := &Lab{state: state{dir: t.TempDir()}}
	first, err := l.ageIdentity()
	if err != nil {
		t.Fatal(err)
	}
	second, err := l.ageIdentity()
	if err != nil || first.String() != second.String() {
		t.Errorf("the second time it is another one: %v", err)
	}
	if info, err := os.Stat(l.state.path(ageFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its file is %v, %v", info, err)
	}
	if !l.hasSops(nil) {
		t.Error("the lab with an identity has no SOPS")
	}
	if err := l.state.write(ageFile, []byte("AGE-SECRET-KEY-1torn")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.ageIdentity(); err == nil || strings.Contains(err.Error(), "torn") || !strings.Contains(err.Error(), "labctl down") {
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
