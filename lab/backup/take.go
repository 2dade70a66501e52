package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/atomicfile"
	"k8slab/lab/etcdadmin"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// nodeBudget bounds the saving of one node.
const nodeBudget = time.Minute

// Take saves the files of every member, and a snapshot of etcd unless admin is nil. It comes before the first change of the verb, whose
// caller has the lab's lock. nodes are those that the verb will change: it is an error if one of them cannot be saved. Another one that does
// not answer is noted in the backup, and so is an etcd without an answer.
func Take(ctx context.Context, s *session.Session, admin *session.Admin, verb string, nodes []config.Node) (Backup, error) {
	step := s.Events.Start("", "backup", 0)
	b, err := take(ctx, s, admin, verb, nodes)
	if err != nil {
		return b, step.End(fmt.Errorf("no backup, so nothing was changed: %w", err))
	}
	said := fmt.Sprintf("%s: %s", b.Path, strings.Join(b.Saved(), ", "))
	if b.Etcd != nil {
		said += fmt.Sprintf(", etcd at revision %d", b.Etcd.Revision)
	}
	step.EndWith(said)
	return b, nil
}

func take(ctx context.Context, s *session.Session, admin *session.Admin, verb string, nodes []config.Node) (b Backup, err error) {
	root := s.Path(directory)
	if err := errors.Join(os.MkdirAll(root, 0o700), sweep(root)); err != nil {
		return b, err
	}
	b = Backup{Time: time.Now().UTC(), Verb: verb, Who: state.Operator(), Cluster: s.Cluster.Name, Kubernetes: s.Cluster.Kubernetes.Version}
	if b.ID, err = newID(root, b.Time, verb); err != nil {
		return b, err
	}
	part := filepath.Join(root, b.ID+partial)
	if err := os.Mkdir(part, 0o700); err != nil {
		return b, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(part))
		}
	}()
	if b.Nodes, err = saveNodes(ctx, s, part, nodes); err != nil {
		return b, err
	}
	if err := b.saveCluster(ctx, admin, part); err != nil {
		return b, err
	}
	index, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return b, err
	}
	if err := atomicfile.Write(filepath.Join(part, indexFile), atomicfile.Private, index); err != nil {
		return b, err
	}
	b.Path = filepath.Join(root, b.ID)
	if err := atomicfile.Rename(part, b.Path); err != nil {
		return b, err
	}
	if b.Etcd != nil {
		b.Etcd.File = filepath.Join(b.Path, b.Etcd.File)
	}
	if err := atomicfile.SyncDir(root); err != nil {
		return b, err
	}
	return b, prune(root)
}

var noWord = regexp.MustCompile(`[^a-z0-9]+`)

// newID is a name that sorts behind those of all earlier backups, also when the clock was set back.
func newID(root string, now time.Time, verb string) (string, error) {
	word := strings.Trim(noWord.ReplaceAllString(strings.ToLower(strings.TrimPrefix(verb, "labctl ")), "-"), "-")
	ids, err := complete(root)
	if len(ids) > 0 {
		stamp, _, _ := strings.Cut(ids[len(ids)-1], "-")
		if last, err := time.Parse(etcdadmin.StampFormat, stamp); err == nil && !now.Truncate(time.Second).After(last) {
			now = last.Add(time.Second)
		}
	}
	return now.Format(etcdadmin.StampFormat) + "-" + word, err
}

func saveNodes(ctx context.Context, s *session.Session, part string, must []config.Node) ([]Node, error) {
	has := func(nodes []config.Node, n config.Node) bool { return slices.Contains(config.Names(nodes), n.Name) }
	all := s.Cluster.Members()
	for _, n := range must {
		if !has(all, n) {
			all = append(all, n)
		}
	}
	return session.FromEachNode(all, func(n config.Node) (Node, error) {
		limited, cancel := s.Within(ctx, nodeBudget)
		defer cancel()
		saved, err := saveNode(limited, s.Nodes[n.Name], n.Name, part)
		if err != nil && (has(must, n) || ctx.Err() != nil || isLocal(err)) {
			return saved, fmt.Errorf("save the files of %s: %w; next: see that it answers and has space: labctl ssh %[1]s df -h /", n.Name, err)
		}
		if err != nil {
			saved.Error = err.Error()
		}
		return saved, nil
	})
}

// isLocal tells whether an error is this computer's, such as a full disk.
func isLocal(err error) bool {
	_, is := errors.AsType[*fs.PathError](err)
	return is
}

// saveNode writes the node's archive.
func saveNode(ctx context.Context, from session.Node, name, part string) (Node, error) {
	saved := Node{Name: name}
	if from == nil {
		return saved, errors.New("labctl has no connection to it")
	}
	file := name + ".tar.gz"
	path := filepath.Join(part, file)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, atomicfile.Private)
	if err != nil {
		return saved, err
	}
	sum := sha256.New()
	packed := gzip.NewWriter(io.MultiWriter(f, sum))
	archive := tar.NewWriter(packed)
	files := 0
	skipped, err := collect(ctx, from, func(h *tar.Header, content io.Reader) error {
		files++
		return add(archive, h, content)
	})
	err = errors.Join(err, archive.Close(), packed.Close())
	var size int64
	if info, statErr := f.Stat(); statErr == nil {
		size = info.Size()
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return saved, errors.Join(err, os.Remove(path))
	}
	return Node{Name: name, File: file, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil)), Files: files, Skipped: skipped}, nil
}

// add writes one entry of an archive.
func add(archive *tar.Writer, h *tar.Header, content io.Reader) error {
	written := *h
	if h.Typeflag == tar.TypeDir {
		written.Name += "/"
	}
	if err := archive.WriteHeader(&written); err != nil {
		return err
	}
	_, err := io.Copy(archive, content)
	return err
}

// saveCluster saves etcd's data, and notes the API server's version.
func (b *Backup) saveCluster(ctx context.Context, admin *session.Admin, part string) error {
	if admin == nil {
		b.EtcdError = "the cluster did not answer"
		return nil
	}
	if admin.Kube != nil {
		if is, err := admin.Kube.Version(ctx); err == nil {
			b.Kubernetes = is
		}
	}
	const file = "etcd.db"
	saved, err := etcdadmin.SaveSnapshot(ctx, admin.Etcd, filepath.Join(part, file))
	switch {
	case err == nil:
		saved.File = file
		b.Etcd = &saved
	case ctx.Err() != nil || isLocal(err):
		return err
	default:
		b.EtcdError = err.Error()
	}
	return nil
}
