package node

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

// knownServer is a server and the configuration of a node on it whose host keys are the files'.
func knownServer(t *testing.T, lines func(address string, key ssh.PublicKey) string) (*server, Config, *KnownHosts) {
	t.Helper()
	settle(t)
	s, cfg := newServer(t, succeed)
	dir := t.TempDir()
	theirs := filepath.Join(dir, "theirs")
	if lines != nil {
		if err := os.WriteFile(theirs, []byte(lines(cfg.Address, s.hostKeys[0].PublicKey())), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hosts := &KnownHosts{Own: filepath.Join(dir, "own"), Others: []string{theirs}}
	p := newPerson(t)
	p.write(t, "id_ed25519", cfg.Key)
	cfg = p.login(cfg)
	cfg.Hosts = hosts
	return s, cfg, hosts
}

func knownLine(address string, key ssh.PublicKey) string {
	return knownhosts.Line([]string{address}, key) + "\n"
}

func otherKey(t *testing.T) ssh.PublicKey {
	private, _ := mustKey(t)
	return mustSigner(t, private).PublicKey()
}

func TestKnownHosts(t *testing.T) {
	authority, _ := mustKey(t)
	for name, test := range map[string]struct {
		lines   func(address string, key ssh.PublicKey) string
		arrange func(s *server, k *KnownHosts)
		says    []string // of the error, which is permanent; none means that the login works
	}{
		"known": {lines: knownLine},
		"hashed": {lines: func(a string, k ssh.PublicKey) string {
			return hashed(a) + " " + strings.SplitN(knownLine(a, k), " ", 2)[1]
		}},
		"by a wildcard, for every port": {lines: func(_ string, k ssh.PublicKey) string {
			return "127.0.0.* " + string(ssh.MarshalAuthorizedKey(k))
		}},
		"known by one of several keys": {lines: knownLine, arrange: func(s *server, _ *KnownHosts) {
			s.change(func() { s.hostKeys = append([]ssh.Signer{ecdsaSigner(t)}, s.hostKeys...) })
		}},
		"known by two keys, of which the machine has one": {lines: func(a string, k ssh.PublicKey) string {
			return knownLine(a, otherKey(t)) + knownLine(a, k)
		}},
		"with a certificate": {
			lines: func(string, ssh.PublicKey) string {
				return "@cert-authority 127.0.0.* " + string(ssh.MarshalAuthorizedKey(mustSigner(t, authority).PublicKey()))
			},
			arrange: func(s *server, _ *KnownHosts) {
				s.change(func() { s.hostKeys = append(s.hostKeys, certified(t, s.hostKeys[0], mustSigner(t, authority))) })
			},
		},
		"unknown": {says: []string{"is unknown: ssh-ed25519 SHA256:", "next: ", "--accept-new"}},
		"unknown, with a certificate of nobody": {
			arrange: func(s *server, _ *KnownHosts) {
				s.change(func() {
					s.hostKeys = append([]ssh.Signer{certified(t, s.hostKeys[0], mustSigner(t, authority))}, s.hostKeys...)
				})
			},
			says: []string{"is unknown: ssh-ed25519 SHA256:"},
		},
		"refused": {
			arrange: func(_ *server, k *KnownHosts) {
				k.Ask = func(string, string) error { return errors.New("the answer is no") }
			},
			says: []string{"the answer is no: the host key of 127.0.0.1:", "is not taken"},
		},
		"changed": {
			lines:   func(a string, _ ssh.PublicKey) string { return "# a comment\n" + knownLine(a, otherKey(t)) },
			arrange: func(_ *server, k *KnownHosts) { k.AcceptNew = true },
			says:    []string{"has changed: 127.0.0.1:", "/theirs:2 has ssh-ed25519 SHA256:", "ssh-keygen -R '[127.0.0.1]:", "/theirs"},
		},
		"changed to another type": {
			lines: func(a string, _ ssh.PublicKey) string { return knownLine(a, ecdsaSigner(t).PublicKey()) },
			says:  []string{"has no key of the known types", "/theirs:1 has ecdsa-sha2-nistp256"},
		},
		"revoked": {lines: func(a string, k ssh.PublicKey) string { return "@revoked " + knownLine(a, k) }, says: []string{"is revoked in ", "/theirs:1"}},
		"a line that is none": {lines: func(a string, k ssh.PublicKey) string { return knownLine(a, k) + "x y\n" },
			says: []string{"read the known host keys: ", "/theirs:2"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, cfg, hosts := knownServer(t, test.lines)
			if test.arrange != nil {
				test.arrange(s, hosts)
			}
			err := newNode(t, cfg).Login(within(t, 20*time.Second))
			if len(test.says) == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			connect, is := errors.AsType[*ConnectError](err)
			if !is || !connect.Permanent {
				t.Fatalf("%v of type %T", err, err)
			}
			for _, want := range test.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\ndoes not say %q", err, want)
				}
			}
			if _, err := os.Stat(hosts.Own); err == nil {
				t.Error("something was written")
			}
		})
	}
}

func hashed(address string) string { return xknownhosts.HashHostname(knownhosts.Normalize(address)) }

func certified(t *testing.T, host, authority ssh.Signer) ssh.Signer {
	t.Helper()
	c := &ssh.Certificate{Key: host.PublicKey(), CertType: ssh.HostCert, ValidPrincipals: []string{"127.0.0.1"}, ValidBefore: ssh.CertTimeInfinity}
	if err := c.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewCertSigner(c, host)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// A new key is asked for once, for as long as a person needs, and is known from then on, also to another process.
func TestNewHostKey(t *testing.T) {
	s, cfg, hosts := knownServer(t, nil)
	var asked []string
	hosts.Ask = func(host, fingerprint string) error {
		time.Sleep(300 * time.Millisecond)
		asked = append(asked, host+" "+fingerprint)
		return nil
	}
	var wg sync.WaitGroup
	for range 10 {
		n := newNode(t, cfg)
		n.dialLimit = 250 * time.Millisecond
		wg.Go(func() {
			if err := n.Login(within(t, 20*time.Second)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	key := s.hostKeys[0].PublicKey()
	if want := fmt.Sprintf("%s ssh-ed25519 %s", cfg.Address, ssh.FingerprintSHA256(key)); len(asked) != 1 || asked[0] != want {
		t.Errorf("asked %q, want %q", asked, want)
	}
	content, err := os.ReadFile(hosts.Own)
	info, _ := os.Stat(hosts.Own)
	if err != nil || string(content) != knownLine(cfg.Address, key) || info.Mode() != 0o600 {
		t.Errorf("%v, %q, %v", err, content, info.Mode())
	}
	other, _ := mustKey(t)
	cfg.Hosts = &KnownHosts{Own: hosts.Own, Others: hosts.Others}
	if err := newNode(t, cfg).Login(within(t, 20*time.Second)); err != nil {
		t.Error(err)
	}
	s.change(func() { s.hostKeys = []ssh.Signer{mustSigner(t, other)} })
	for _, k := range []*KnownHosts{hosts, cfg.Hosts} {
		cfg.Hosts = k
		err := newNode(t, cfg).Login(within(t, 20*time.Second))
		if err == nil || !strings.Contains(err.Error(), "has changed") {
			t.Error(err)
		}
	}
}

// Many machines' keys are added at once.
func TestManyNewHostKeys(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own")
	hosts := &KnownHosts{Own: own, Others: []string{}, AcceptNew: true}
	var wg sync.WaitGroup
	for i := range 100 {
		key := otherKey(t)
		wg.Go(func() {
			address := fmt.Sprintf("10.0.0.%d:22", i)
			for range 2 { // taken, and known then
				if err := hosts.check(address, key); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	content, err := os.ReadFile(own)
	if err != nil || bytes.Count(content, []byte("\n")) != 100 {
		t.Errorf("%v\n%s", err, content)
	}
	if len((&KnownHosts{Own: own, Others: []string{}}).algorithms("10.0.0.7:22")) != 1 {
		t.Error("it is not known")
	}
}
