package node

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// person is a home directory without keys and an agent, and what a person of it says.
type person struct {
	home string
	keys *Keys
}

func newPerson(t *testing.T) *person {
	t.Helper()
	p := &person{home: t.TempDir(), keys: &Keys{}}
	t.Setenv("HOME", p.home)
	t.Setenv("SSH_AUTH_SOCK", "")
	if err := os.Mkdir(filepath.Join(p.home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.keys.Close)
	return p
}

// write makes a file of ~/.ssh.
func (p *person) write(t *testing.T, name string, content []byte) string {
	t.Helper()
	file := filepath.Join(p.home, ".ssh", name)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// login is a node of the server, which the person logs in to.
func (p *person) login(cfg Config) Config {
	cfg.Keys, cfg.Hosts = p.keys, &KnownHosts{Others: []string{}, AcceptNew: true}
	cfg.Key, cfg.HostKey = nil, nil
	return cfg
}

func encrypt(t *testing.T, private []byte, passphrase string) []byte {
	t.Helper()
	raw, err := ssh.ParseRawPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(raw, "", []byte(passphrase))
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block)
}

// serveAgent has an agent with the key.
func (p *person) serveAgent(t *testing.T, private []byte) {
	t.Helper()
	raw, err := ssh.ParseRawPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	ring := agent.NewKeyring()
	if err := ring.Add(agent.AddedKey{PrivateKey: raw.(*ed25519.PrivateKey), Comment: "ops@desk"}); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "agent")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSH_AUTH_SOCK", socket)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { defer conn.Close(); _ = agent.ServeAgent(ring, conn) })
		}
	})
	t.Cleanup(func() { p.keys.Close(); listener.Close(); wg.Wait() })
}

func TestKeysOfAPerson(t *testing.T) {
	other, _ := mustKey(t)
	for name, test := range map[string]struct {
		arrange func(t *testing.T, p *person, good []byte, cfg *Config)
		says    []string // of the error; none means that the login works
	}{
		"a usual file": {func(t *testing.T, p *person, good []byte, _ *Config) { p.write(t, "id_ecdsa", good) }, nil},
		"an identity file, after which the others are tried": {func(t *testing.T, p *person, good []byte, cfg *Config) {
			p.write(t, "of-the-rack", other)
			p.write(t, "id_rsa", good)
			cfg.IdentityFile = "~/.ssh/of-the-rack"
		}, nil},
		"an agent": {func(t *testing.T, p *person, good []byte, _ *Config) { p.serveAgent(t, good) }, nil},
		"an encrypted file, which the agent has": {func(t *testing.T, p *person, good []byte, cfg *Config) {
			p.serveAgent(t, good)
			cfg.IdentityFile = p.write(t, "rack", encrypt(t, good, "open"))
		}, nil},
		"the public part of what the agent has": {func(t *testing.T, p *person, good []byte, cfg *Config) {
			p.serveAgent(t, good)
			public, _ := PublicKey(good)
			cfg.IdentityFile = p.write(t, "rack.pub", public)
		}, nil},
		"an encrypted file": {func(t *testing.T, p *person, good []byte, _ *Config) {
			p.write(t, "id_ed25519", encrypt(t, good, "open"))
			p.keys.Passphrase = func(string) (string, error) { return "open", nil }
		}, nil},
		"a passphrase that nobody is asked for": {func(t *testing.T, p *person, good []byte, _ *Config) {
			p.write(t, "id_ed25519", encrypt(t, good, "open"))
			p.write(t, "id_rsa", other)
		}, []string{"keys tried: HOME/id_rsa; not tried: HOME/id_ed25519 (encrypted; next: ssh-add HOME/id_ed25519, or run this on a terminal)"}},
		"a wrong passphrase": {func(t *testing.T, p *person, good []byte, _ *Config) {
			p.write(t, "id_ed25519", encrypt(t, good, "open"))
			p.keys.Passphrase = func(string) (string, error) { return "sesame", nil }
		}, []string{"keys tried: none; not tried: HOME/id_ed25519 (the passphrase is wrong)"}},
		"a person who gives none": {func(t *testing.T, p *person, good []byte, _ *Config) {
			p.write(t, "id_ed25519", encrypt(t, good, "open"))
			p.keys.Passphrase = func(string) (string, error) { return "", errors.New("interrupted") }
		}, []string{"id_ed25519 (interrupted)"}},
		"a file that is not there": {func(_ *testing.T, _ *person, _ []byte, cfg *Config) { cfg.IdentityFile = "~/.ssh/gone" },
			[]string{"gone (there is no such file)"}},
		"a file that is no key": {func(t *testing.T, p *person, _ []byte, _ *Config) { p.write(t, "id_rsa", []byte("hello")) },
			[]string{"id_rsa (ssh: no key found)"}},
		"a public part that the agent does not have": {func(t *testing.T, p *person, good []byte, cfg *Config) {
			p.serveAgent(t, other)
			public, _ := PublicKey(good)
			cfg.IdentityFile = p.write(t, "rack.pub", public)
		}, []string{"keys tried: the agent's ops@desk; not tried: HOME/rack.pub (a public key, which the agent does not have)"}},
		"an agent that is gone": {func(t *testing.T, _ *person, _ []byte, _ *Config) { t.Setenv("SSH_AUTH_SOCK", "/nonexistent/agent") },
			[]string{"not tried: the agent's (dial unix"}},
		"no keys at all": {func(*testing.T, *person, []byte, *Config) {},
			[]string{"cp1: connect to 127.0.0.1:", "127.0.0.1 refuses the login of root (it takes none of the keys); keys tried: none; next: ssh-copy-id -p ",
				" root@127.0.0.1, or set ssh.user or ssh.identity_file in cluster.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			settle(t)
			p := newPerson(t)
			_, cfg := newServer(t, succeed)
			good := cfg.Key
			cfg = p.login(cfg)
			test.arrange(t, p, good, &cfg)
			n := newNode(t, cfg)
			err := n.Login(within(t, 20*time.Second))
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
				if !strings.Contains(strings.ReplaceAll(err.Error(), p.home+"/.ssh", "HOME"), want) {
					t.Errorf("%v\ndoes not say %q", err, want)
				}
			}
		})
	}
}

// The passphrase is asked for once, whoever needs it, and takes longer than a machine gives for a login.
func TestPassphraseIsAskedOnce(t *testing.T) {
	settle(t)
	p := newPerson(t)
	s, cfg := newServer(t, succeed)
	p.write(t, "id_ed25519", encrypt(t, cfg.Key, "open"))
	var asked atomic.Int32
	p.keys.Passphrase = func(file string) (string, error) {
		asked.Add(1)
		time.Sleep(300 * time.Millisecond)
		if filepath.Base(file) != "id_ed25519" {
			t.Error(file)
		}
		return "open", nil
	}
	cfg = p.login(cfg)
	var wg sync.WaitGroup
	for range 10 {
		n := newNode(t, cfg)
		n.dialLimit = 250 * time.Millisecond
		wg.Go(func() {
			if _, err := n.Read(within(t, 20*time.Second), "true"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if asked.Load() != 1 {
		t.Errorf("asked %d times, %d connections", asked.Load(), s.connections())
	}
}
