package gitrepo

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
)

func TestSignedWithSSH(t *testing.T) {
	dir := t.TempDir()
	key := sshKey(t, dir, "")
	public, err := os.ReadFile(key + ".pub")
	must(t, err)
	signers := filepath.Join(dir, "signers")
	must(t, os.WriteFile(signers, []byte("ops@desk "+string(public)), 0o600))

	s := newServer(t)
	_, err = s.open(func(c *Config) { c.SigningKey = key }).Activate(t.Context())
	must(t, err)
	out := s.git(s.dir, "-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+signers, "verify-commit", "--verbose", "main")
	if !strings.Contains(out, `Good "git" signature for ops@desk`) {
		t.Error(out)
	}
	s.git(s.dir, "fsck", "--strict")
}

// sshKey makes a key as people make theirs.
func sshKey(t *testing.T, dir, passphrase string) string {
	t.Helper()
	key := filepath.Join(dir, "id")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", key).CombinedOutput(); err != nil {
		t.Skipf("there is no ssh-keygen: %v %s", err, out)
	}
	return key
}

// pgpKey returns an armored private key, and the public one.
func pgpKey(t *testing.T, passphrase string) (private, public string) {
	t.Helper()
	e, err := openpgp.NewEntity("Ops", "", "ops@example.org", nil)
	must(t, err)
	var both [2]bytes.Buffer
	w, err := armor.Encode(&both[0], openpgp.PublicKeyType, nil)
	must(t, err)
	must(t, e.Serialize(w))
	must(t, w.Close())
	w, err = armor.Encode(&both[1], openpgp.PrivateKeyType, nil)
	must(t, err)
	if passphrase != "" {
		must(t, e.EncryptPrivateKeys([]byte(passphrase), nil))
		must(t, e.SerializePrivateWithoutSigning(w, nil))
	} else {
		must(t, e.SerializePrivate(w, nil))
	}
	must(t, w.Close())
	return both[1].String(), both[0].String()
}

func TestSignedWithOpenPGP(t *testing.T) {
	key, public := pgpKey(t, "")
	home := t.TempDir()
	must(t, os.Chmod(home, 0o700))
	t.Setenv("GNUPGHOME", home)
	gpg := exec.Command("gpg", "--batch", "--no-autostart", "--import")
	gpg.Stdin = strings.NewReader(public)
	if out, err := gpg.CombinedOutput(); err != nil {
		t.Skipf("there is no gpg: %v %s", err, out)
	}
	s := newServer(t)
	_, err := s.open(func(c *Config) { c.SigningKey = private(t, key) }).Activate(t.Context())
	must(t, err)
	if out := s.git(s.dir, "verify-commit", "--raw", "main"); !strings.Contains(out, "GOODSIG") || !strings.Contains(out, "VALIDSIG") {
		t.Error(out)
	}
	s.git(s.dir, "fsck", "--strict")
}

// A key that cannot sign is known before anything is asked of the server.
func TestKeyThatCannotSign(t *testing.T) {
	pgp, public := pgpKey(t, "secret")
	for name, key := range map[string]string{
		"no key":                      private(t, "nothing\n"),
		"OpenPGP with a passphrase":   private(t, pgp),
		"OpenPGP, torn":               private(t, pgp[:len(pgp)/2]),
		"OpenPGP, public":             private(t, public),
		"SSH with a passphrase":       sshKey(t, t.TempDir(), "secret"),
		"SSH, public":                 sshKey(t, t.TempDir(), "") + ".pub",
		"SSH, whose file is not here": filepath.Join(t.TempDir(), "id"),
	} {
		t.Run(name, func(t *testing.T) {
			if filepath.Ext(key) == ".pub" {
				must(t, os.Chmod(key, 0o600))
				must(t, os.Remove(strings.TrimSuffix(key, ".pub")))
			}
			_, err := Open(t.Context(), Config{URL: "http://127.0.0.1:1/x", Branch: "main", File: file, Entry: "x", SigningKey: key})
			if err == nil || !strings.Contains(err.Error(), "signing key: ") || !strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
