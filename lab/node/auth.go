package node

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// Keys are the private keys of the person at this computer: those of files, and those of the ssh agent. Nodes share them, and each is
// loaded once. They are never forwarded to a machine. Keys are safe for concurrent use.
type Keys struct {
	// Passphrase is asked for the passphrase of an encrypted file, once, and only when a machine would take its key. nil leaves
	// encrypted files out.
	Passphrase func(file string) (string, error)

	asking sync.Mutex // held while somebody is asked

	mu     sync.Mutex
	files  map[string]*identity
	agent  []ssh.Signer
	socket net.Conn // of the agent
	asked  bool     // the agent
	silent string   // why the agent has no keys, "" if there is none
}

// identity is a private key of a file. It has either a signer or a note.
type identity struct {
	file    string
	content []byte
	signer  ssh.Signer
	note    string // why it cannot be used
}

// offer is what a machine is offered.
type offer struct {
	signers        []ssh.Signer
	tried, skipped []string
}

// offer is the key of the file, if that is not "", and then the keys that ssh would try: the agent's, and those of the usual files.
func (k *Keys) offer(file string) offer {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.askAgent()
	var o offer
	if file != "" {
		k.add(&o, expand(file), true)
	}
	for _, s := range k.agent {
		o.take(s, "the agent's "+agentName(s))
	}
	for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
		k.add(&o, expand("~/.ssh/"+name), false)
	}
	if k.silent != "" {
		o.skipped = append(o.skipped, k.silent)
	}
	return o
}

func (o *offer) take(s ssh.Signer, name string) {
	if !slices.ContainsFunc(o.signers, func(other ssh.Signer) bool { return sameKey(other.PublicKey(), s.PublicKey()) }) {
		o.signers, o.tried = append(o.signers, s), append(o.tried, name)
	}
}

// add offers the key of a file. The agent's signer stands for a key that is encrypted in the file. The caller holds k.mu.
func (k *Keys) add(o *offer, file string, wanted bool) {
	id := k.load(file)
	if id.signer == nil {
		if wanted || id.content != nil {
			o.skipped = append(o.skipped, file+" ("+id.note+")")
		}
		return
	}
	if l, is := id.signer.(*locked); is {
		own := func(s ssh.Signer) bool { return sameKey(s.PublicKey(), l.public) }
		if i := slices.IndexFunc(k.agent, own); i >= 0 {
			o.take(k.agent[i], file)
			return
		}
		if k.Passphrase == nil || !l.private {
			o.skipped = append(o.skipped, file+" ("+l.why()+")")
			return
		}
	}
	o.take(id.signer, file)
}

// load reads a file, once. The caller holds k.mu.
func (k *Keys) load(file string) *identity {
	if id := k.files[file]; id != nil {
		return id
	}
	if k.files == nil {
		k.files = map[string]*identity{}
	}
	id := &identity{file: file}
	k.files[file] = id
	var err error
	switch id.content, err = os.ReadFile(file); {
	case errors.Is(err, fs.ErrNotExist):
		id.note = "there is no such file"
		return id
	case err != nil:
		id.note = err.Error()
		return id
	}
	id.signer, err = ssh.ParsePrivateKey(id.content)
	encrypted, is := errors.AsType[*ssh.PassphraseMissingError](err)
	if err == nil {
		return id
	}
	id.note = err.Error()
	public := id.content // a file of IdentityFile may also name a key of the agent by its public part
	if is {
		id.note = "encrypted, in an old format, and without a file " + file + ".pub"
		if encrypted.PublicKey != nil {
			public = ssh.MarshalAuthorizedKey(encrypted.PublicKey)
		} else if public, err = os.ReadFile(file + ".pub"); err != nil {
			return id
		}
	}
	if key, _, _, _, err := ssh.ParseAuthorizedKey(public); err == nil {
		id.signer = &locked{keys: k, id: id, public: key, private: is}
	}
	return id
}

// agentTime is how long the agent may take to list its keys.
const agentTime = 5 * time.Second

// askAgent reads the agent's keys, once. The caller holds k.mu.
func (k *Keys) askAgent() {
	socket := os.Getenv("SSH_AUTH_SOCK")
	if k.asked || socket == "" {
		return
	}
	k.asked = true
	conn, err := net.Dial("unix", socket)
	if err == nil {
		k.socket = conn
		_ = conn.SetDeadline(time.Now().Add(agentTime))
		k.agent, err = agent.NewClient(conn).Signers()
		_ = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		k.silent = fmt.Sprintf("the agent's (%v)", err)
	}
}

func agentName(s ssh.Signer) string {
	if key, is := s.PublicKey().(*agent.Key); is && key.Comment != "" {
		return printable(key.Comment)
	}
	return ssh.FingerprintSHA256(s.PublicKey())
}

// Close lets go of the agent.
func (k *Keys) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.socket != nil {
		_ = k.socket.Close()
	}
	k.socket, k.agent, k.asked = nil, nil, false
}

// locked stands for a key whose private part is not there: it is offered, and asks when a machine would take it.
type locked struct {
	keys    *Keys
	id      *identity
	public  ssh.PublicKey
	private bool // the file has it, encrypted
}

func (l *locked) why() string {
	if l.private {
		return "encrypted; next: ssh-add " + l.id.file + ", or run this on a terminal"
	}
	return "a public key, which the agent does not have"
}

// PublicKey implements ssh.Signer.
func (l *locked) PublicKey() ssh.PublicKey { return l.public }

// Sign implements ssh.Signer.
func (l *locked) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return l.SignWithAlgorithm(rand, data, "")
}

// SignWithAlgorithm implements ssh.AlgorithmSigner. It never signs: a person needs more time than a machine gives for a login.
func (l *locked) SignWithAlgorithm(io.Reader, []byte, string) (*ssh.Signature, error) {
	return nil, &passphraseNeeded{l}
}

// passphraseNeeded ends a login, which is to be tried again after the answer.
type passphraseNeeded struct{ of *locked }

func (e *passphraseNeeded) Error() string { return "the passphrase of " + e.of.id.file + " is needed" }

// answer unlocks the key, or has it skipped.
func (e *passphraseNeeded) answer() error {
	k, id := e.of.keys, e.of.id
	k.asking.Lock()
	defer k.asking.Unlock()
	k.mu.Lock()
	done := id.signer != ssh.Signer(e.of)
	k.mu.Unlock()
	if done { // by another node's question
		return nil
	}
	text, err := k.Passphrase(id.file)
	var signer ssh.Signer
	if err == nil {
		if signer, err = ssh.ParsePrivateKeyWithPassphrase(id.content, []byte(text)); err != nil {
			err = errors.New("the passphrase is wrong")
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	id.signer = signer
	if err != nil {
		id.signer, id.note = nil, err.Error()
	}
	return nil
}

// authError is a login that a machine refused.
type authError struct {
	user, address string
	offer         offer
	cause         error
}

func (e *authError) Error() string {
	host, port, _ := net.SplitHostPort(e.address)
	text := fmt.Sprintf("%s refuses the login of %s (%v); keys tried: %s", host, e.user, e.cause, list(e.offer.tried))
	if len(e.offer.skipped) > 0 {
		text += "; not tried: " + list(e.offer.skipped)
	}
	return text + fmt.Sprintf("; next: ssh-copy-id -p %s %s@%s, or set ssh.user or ssh.identity_file in cluster.yaml", port, e.user, host)
}

func (e *authError) Unwrap() error { return e.cause }

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// expand is the path of a file that may begin with ~/.
func expand(file string) string {
	if rest, below := strings.CutPrefix(file, "~/"); below {
		home, _ := os.UserHomeDir()
		return filepath.Join(home, rest)
	}
	return file
}

func sameKey(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }
