// Package state is what this computer keeps of a lab: its UUID, its keys, what it was made with, the admitted nodes, and the lock. It only
// reads and writes files; it asks what runs only to find a free network.
package state

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/user"
	"path/filepath"

	"github.com/google/uuid"

	"k8slab/lab/atomicfile"
	"k8slab/lab/node"
)

// Root is where labs are kept: $XDG_STATE_HOME/k8slab, by default ~/.local/state/k8slab.
func Root() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "k8slab"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no place for the lab's state: %w; set HOME or XDG_STATE_HOME", err)
	}
	return filepath.Join(home, ".local", "state", "k8slab"), nil
}

// Dir is a lab's directory: its UUID, its keys and files of its machines. Only its owner can read it.
type Dir struct{ dir string }

// Open refuses a directory in which another user can change files, because labctl kills processes and removes files that are named in it.
func Open(name string) (Dir, error) {
	root, err := Root()
	if err != nil {
		return Dir{}, err
	}
	d := Dir{dir: filepath.Join(root, name)}
	for _, dir := range []string{root, d.dir} {
		if _, err := os.Lstat(dir); err != nil {
			break // it does not exist, or reading it will fail with the reason
		}
		if err := atomicfile.CheckDir(dir); err != nil {
			return d, fmt.Errorf("state of lab %s: %w", name, err)
		}
	}
	return d, nil
}

// Path is the path of the directory, or of something in it.
func (d Dir) Path(elem ...string) string { return filepath.Join(append([]string{d.dir}, elem...)...) }

// Exists tells whether something of the lab was made.
func (d Dir) Exists() bool {
	_, err := os.Stat(d.Path("id"))
	return err == nil
}

// ID is the lab's UUID, which marks its libvirt objects and is part of paths and names. It is made when first asked for.
func (d Dir) ID() (string, error) {
	data, err := d.Once("id", func() ([]byte, error) { return []byte(uuid.NewString()), nil })
	if err != nil {
		return "", err
	}
	id, err := uuid.Parse(string(data))
	if err != nil || id.String() != string(data) {
		return "", fmt.Errorf("%s has no UUID in it; next: write the one that libvirt knows the lab's machines by (virsh dumpxml: attribute id of the element machine)", d.Path("id"))
	}
	return id.String(), nil
}

// MachineID is the systemd machine-id of a node. kubelet reports it, so it stays the same when the machine is made again. Something of the
// hardware cannot serve: containers share the computer's DMI identity.
func MachineID(labID, node string) string {
	h := sha256.Sum256([]byte("machine-id " + labID + "/" + node))
	return hex.EncodeToString(h[:16])
}

// Once returns the content of a file of the state, and makes the file first if it does not exist.
func (d Dir) Once(name string, make func() ([]byte, error)) ([]byte, error) {
	path := d.Path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return atomicfile.Once(path, make)
}

// Write replaces a file of the state atomically. Only its owner can read it.
func (d Dir) Write(name string, data []byte) error {
	path := d.Path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, atomicfile.Private, data)
}

// KeyPair returns a key of the state, which it makes if there is none. Only the private part is stored.
func (d Dir) KeyPair(name string) (private, public []byte, err error) {
	if private, err = d.Once(name, node.GenerateKey); err != nil {
		return nil, nil, err
	}
	if public, err = node.PublicKey(private); err != nil {
		return nil, nil, fmt.Errorf("%s: %w; next: labctl down, then up", d.Path(name), err)
	}
	return private, bytes.TrimSpace(public), nil
}

// Operator is who runs labctl: USER@HOST, where USER is whoever called sudo.
func Operator() string {
	name := os.Getenv("SUDO_USER")
	if u, err := user.Current(); err == nil && name == "" {
		name = u.Username
	}
	host, _ := os.Hostname()
	return cmp.Or(name, fmt.Sprintf("user %d", os.Geteuid())) + "@" + cmp.Or(host, "unknown")
}
