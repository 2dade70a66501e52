// Package backup saves what a command is about to change on nodes, and the data of etcd, to this computer, says what differs since, and puts
// files back. It never puts back the data of etcd, which would lose what was written since: that is `labctl etcd snapshot restore`.
package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/etcdadmin"
	"k8slab/lab/state"
)

// Backup is what was saved before the first change of a command.
type Backup struct {
	ID         string              `json:"id"` // TIME-VERB; IDs sort by time
	Time       time.Time           `json:"time"`
	Verb       string              `json:"verb"`
	Who        string              `json:"who"` // USER@HOST
	Cluster    string              `json:"cluster"`
	Kubernetes string              `json:"kubernetes"` // the API server's version; cluster.yaml's when none answered
	Nodes      []Node              `json:"nodes"`
	Etcd       *etcdadmin.Snapshot `json:"etcd,omitempty"`
	EtcdError  string              `json:"etcdError,omitempty"` // why there is no snapshot
	Path       string              `json:"path,omitempty"`      // the directory; not in index.json, because it may move
}

// Node is what was saved of one node.
type Node struct {
	Name    string   `json:"name"`
	File    string   `json:"file,omitempty"` // in the directory; a tar archive, compressed with gzip
	Size    int64    `json:"size,omitempty"` // bytes
	SHA256  string   `json:"sha256,omitempty"`
	Files   int      `json:"files,omitempty"`
	Skipped []string `json:"skipped,omitempty"` // what is neither a file, a directory nor a link, or has an odd name
	Error   string   `json:"error,omitempty"`   // why nothing was saved
}

// Size is that of all files, in bytes.
func (b Backup) Size() int64 {
	var all int64
	for _, n := range b.Nodes {
		all += n.Size
	}
	if b.Etcd != nil {
		all += b.Etcd.Size
	}
	return all
}

// Saved are the names of the nodes whose files are in the backup.
func (b Backup) Saved() (names []string) {
	for _, n := range b.Nodes {
		if n.Error == "" {
			names = append(names, n.Name)
		}
	}
	return names
}

// node is what was saved of the node.
func (b Backup) node(name string) (Node, error) {
	i := slices.IndexFunc(b.Nodes, func(n Node) bool { return n.Name == name })
	switch {
	case i < 0:
		return Node{}, config.Unknown("node", name, "backup "+b.ID+" has", b.Saved())
	case b.Nodes[i].Error != "":
		return Node{}, fmt.Errorf("backup %s has nothing of %s, which could not be read then: %s; next: see labctl undo list for another", b.ID, name,
			b.Nodes[i].Error)
	}
	return b.Nodes[i], nil
}

const (
	directory = "backups"    // in the lab's state
	indexFile = "index.json" // written last
	partial   = ".part"      // ends the name of a directory that is not complete
	kept      = 20
)

// List are the backups of the lab, the newest first. One that cannot be read is in the error, and the others are returned all the same.
func List(d state.Dir) (all []Backup, err error) {
	ids, err := complete(d.Path(directory))
	for _, id := range slices.Backward(ids) {
		b, bad := read(d, id)
		if bad != nil {
			err = errors.Join(err, bad)
			continue
		}
		all = append(all, b)
	}
	return all, err
}

// Load is the backup of the ID.
func Load(d state.Dir, id string) (Backup, error) {
	ids, err := complete(d.Path(directory))
	if err != nil {
		return Backup{}, err
	}
	if len(ids) == 0 {
		return Backup{}, errors.New("there is no backup: labctl makes one before it changes machines that exist; see `labctl undo --help`")
	}
	if !slices.Contains(ids, id) {
		return Backup{}, config.Unknown("backup", id, "there are", ids)
	}
	return read(d, id)
}

func read(d state.Dir, id string) (Backup, error) {
	dir := d.Path(directory, id)
	var b Backup
	text, err := os.ReadFile(filepath.Join(dir, indexFile))
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	if err != nil {
		return b, fmt.Errorf("backup %s is damaged: %w; next: its archives may still be whole, see %s", id, err, dir)
	}
	b.ID, b.Path = id, dir
	if b.Etcd != nil {
		b.Etcd.File = filepath.Join(dir, filepath.Base(b.Etcd.File))
	}
	return b, nil
}

// complete are the IDs of the backups, the oldest first.
func complete(dir string) (ids []string, err error) {
	entries, err := os.ReadDir(dir) // sorted
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasSuffix(e.Name(), partial) {
			ids = append(ids, e.Name())
		}
	}
	return ids, err
}

// sweep removes backups that are not complete. Its caller has the lab's lock, so that nobody works on them.
func sweep(dir string) error {
	parts, err := filepath.Glob(filepath.Join(dir, "*"+partial))
	for _, p := range parts {
		err = errors.Join(err, os.RemoveAll(p))
	}
	return err
}

// prune removes the oldest backups.
func prune(dir string) error {
	ids, err := complete(dir)
	for ; len(ids) > kept; ids = ids[1:] {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, ids[0])))
	}
	return err
}
