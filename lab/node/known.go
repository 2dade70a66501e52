package node

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"k8slab/lab/atomicfile"
)

// hostKeys say which machine is the right one.
type hostKeys interface {
	algorithms(address string) []string // to ask for
	check(address string, key ssh.PublicKey) error
	mismatch(address string) error // the machine has no key of the algorithms
}

// pinned is the one host key of a machine that the lab made. Only its type is asked for: a server with several host keys would otherwise be
// free to present another one.
type pinned struct{ key ssh.PublicKey }

func (p pinned) algorithms(string) []string { return algorithmsOf(p.key) }

func (p pinned) check(_ string, key ssh.PublicKey) error {
	if sameKey(key, p.key) {
		return nil
	}
	return p.unlike(ssh.FingerprintSHA256(key))
}

func (p pinned) mismatch(string) error { return p.unlike("no key of type " + p.key.Type()) }

// unlike says that the machine is not the one that the lab made: its host key is another.
func (p pinned) unlike(got string) error {
	return &hopeless{fmt.Errorf("host key mismatch: the machine presents %s, but the lab's state pins %s: "+
		"another machine answers at this address, or this one was recreated without the lab's host key", got, ssh.FingerprintSHA256(p.key))}
}

// KnownHosts tells which machine has which host key, by OpenSSH's files. Nodes share it; it is safe for concurrent use.
type KnownHosts struct {
	// Own is the file that new keys are added to. Its directory exists.
	Own string
	// Others are read only; nil means the user's own and the computer's.
	Others []string
	// AcceptNew takes the key of a host that has none yet.
	AcceptNew bool
	// Ask is called for the key of a host that has none yet, one at a time; an error refuses it. nil refuses all, unless AcceptNew.
	Ask func(host, fingerprint string) error

	asking sync.Mutex // held while somebody is asked

	mu    sync.Mutex
	db    *knownhosts.HostKeyDB
	added map[string]ssh.PublicKey // since db was read, by address
}

// open reads the files, once. The caller holds k.mu.
func (k *KnownHosts) open() error {
	if k.db != nil {
		return nil
	}
	files := k.Others
	if files == nil {
		files = []string{expand("~/.ssh/known_hosts"), "/etc/ssh/ssh_known_hosts"}
	}
	absent := func(file string) bool {
		_, err := os.Stat(file)
		return file == "" || errors.Is(err, fs.ErrNotExist)
	}
	db, err := knownhosts.NewDB(slices.DeleteFunc(append(slices.Clone(files), k.Own), absent)...)
	if err != nil {
		return &hopeless{fmt.Errorf("read the known host keys: %w; next: mend or remove that line", err)}
	}
	k.db, k.added = db, map[string]ssh.PublicKey{}
	return nil
}

// algorithms are those of the keys that the host is known by: a server with other keys too would be free to present one of those, and
// seem to be another machine. For an unknown host they are those of plain keys, because a certificate is only worth something with its authority.
func (k *KnownHosts) algorithms(address string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	safe := ssh.SupportedAlgorithms().HostKeys
	if k.open() != nil { // check says so
		return safe
	}
	known := k.db.HostKeyAlgorithms(address)
	if key := k.added[address]; key != nil {
		known = append(known, algorithmsOf(key)...)
	}
	if len(known) == 0 {
		return slices.DeleteFunc(safe, func(a string) bool { return strings.Contains(a, "-cert-") })
	}
	return slices.DeleteFunc(known, func(a string) bool { return !slices.Contains(safe, a) })
}

// algorithmsOf are the algorithms of a key without those that are not safe any more.
func algorithmsOf(key ssh.PublicKey) []string {
	if key.Type() == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{key.Type()}
}

// nowhere stands for the address of a connection, which can be one of a tunnel: what counts is the address that was asked for.
var nowhere = &net.TCPAddr{IP: net.IPv4zero}

func (k *KnownHosts) check(address string, key ssh.PublicKey) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.open(); err != nil {
		return err
	}
	added := k.added[address]
	if added != nil && sameKey(added, key) {
		return nil
	}
	err := k.db.HostKeyCallback()(address, nowhere, key)
	if err == nil {
		return nil
	}
	if revoked, is := errors.AsType[*xknownhosts.RevokedError](err); is {
		line := revoked.Revoked
		return &hopeless{fmt.Errorf("the host key %s of %s is revoked in %s:%d", keyName(key), address, line.Filename, line.Line)}
	}
	differs, is := errors.AsType[*xknownhosts.KeyError](err)
	switch {
	case !is:
		return &hopeless{fmt.Errorf("the host key of %s: %w", address, err)}
	case len(differs.Want) > 0:
		return changed(address, "presents "+keyName(key), differs.Want)
	case added != nil:
		return &hopeless{fmt.Errorf("the host key of %s has changed within seconds, from %s to %s", address, keyName(added), keyName(key))}
	}
	if k.AcceptNew {
		return k.take(address, key)
	}
	return &unknownHost{k, address, key}
}

// mismatch is the error of a host that has no key of the algorithms.
func (k *KnownHosts) mismatch(address string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var want []xknownhosts.KnownKey
	if k.db != nil {
		err := k.db.HostKeyCallback()(address, nowhere, nobody{})
		if differs, is := errors.AsType[*xknownhosts.KeyError](err); is {
			want = differs.Want
		}
	}
	return changed(address, "has no key of the known types", want)
}

// nobody is a key that no host has.
type nobody struct{ ssh.PublicKey }

func (nobody) Type() string    { return "none" }
func (nobody) Marshal() []byte { return nil }

func changed(address, what string, want []xknownhosts.KnownKey) error {
	var lines, next []string
	for _, w := range want {
		lines = append(lines, fmt.Sprintf("%s:%d has %s", w.Filename, w.Line, keyName(w.Key)))
		next = append(next, fmt.Sprintf("ssh-keygen -R '%s' -f %s", knownhosts.Normalize(address), w.Filename))
	}
	return &hopeless{fmt.Errorf("the host key has changed: %s %s, but %s. Another machine may answer at this address. "+
		"Next: find out why; if the machine was installed anew: %s", address, what, list(lines), strings.Join(slices.Compact(next), "; "))}
}

func keyName(key ssh.PublicKey) string { return key.Type() + " " + ssh.FingerprintSHA256(key) }

// unknownHost ends a login, which is to be tried again after the answer.
type unknownHost struct {
	hosts   *KnownHosts
	address string
	key     ssh.PublicKey
}

func (e *unknownHost) Error() string {
	return fmt.Sprintf("the host key of %s is unknown: %s; next: compare it with what `ssh-keygen -lf FILE` says there of "+
		"/etc/ssh/ssh_host_*_key.pub, and run this again with --accept-new, or log in once with ssh", e.address, keyName(e.key))
}

// answer takes the key, or refuses it for good.
func (e *unknownHost) answer() error {
	k := e.hosts
	k.asking.Lock()
	defer k.asking.Unlock()
	k.mu.Lock()
	_, done := k.added[e.address]
	k.mu.Unlock()
	switch {
	case done: // by another node's question
		return nil
	case k.Ask == nil:
		return &hopeless{e}
	default:
		if err := k.Ask(e.address, keyName(e.key)); err != nil {
			return &hopeless{fmt.Errorf("%w: the host key of %s, %s, is not taken", err, e.address, keyName(e.key))}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.take(e.address, e.key)
}

// take has the host known by the key from now on. The line is added in one piece, because another process may add one too. The caller holds
// k.mu.
func (k *KnownHosts) take(address string, key ssh.PublicKey) error {
	k.added[address] = key
	if k.Own == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(k.Own), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(k.Own, os.O_WRONLY|os.O_APPEND|os.O_CREATE, atomicfile.Private)
	if err != nil {
		return &hopeless{err}
	}
	_, err = f.WriteString(knownhosts.Line([]string{address}, key) + "\n")
	return errors.Join(err, f.Close())
}
