package etcdadmin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"k8slab/lab/etcd"
	"k8slab/lab/session"
	"k8slab/lab/wait"
)

const (
	// ParkDir is where manifests are kept out of kubelet's sight.
	ParkDir       = "/etc/kubernetes/k8slab-parked"
	restoreSource = "/var/lib/k8slab/restore.db"
)

// stopBudget bounds the stop of an API server and an etcd. stopGrace, in seconds, is the time before they are killed: an API server whose
// etcd has no quorum does not stop by itself.
const (
	stopBudget = time.Minute
	stopGrace  = "5"
)

// Park moves the manifests of etcd and the API server out of kubelet's sight, and stops both, and kubelet. kubelet would need minutes to
// stop them: it first tries to delete their mirror Pods, and each attempt waits half a minute for an API server whose etcd has no quorum.
// Manifests that an interrupted restore parked are only used if kubelet has none.
func Park(ctx context.Context, n session.Shell, pace time.Duration) error {
	if err := session.Do(ctx, n, "systemctl", "start", "kubelet"); err != nil {
		return fmt.Errorf("%w: %w", ErrNoKubelet, err)
	}
	if err := session.Do(ctx, n, "systemctl", "stop", "kubelet"); err != nil {
		return err
	}
	if err := session.Do(ctx, n, "mkdir", "-p", ParkDir); err != nil {
		return err
	}
	err := session.Do(ctx, n, "find", session.ManifestDir, "-maxdepth", "1", "(", "-name", "etcd.yaml", "-o", "-name", "kube-apiserver.yaml", ")",
		"-exec", "mv", "-f", "-t", ParkDir, "{}", "+")
	if err != nil {
		return err
	}
	return wait.For(ctx, "etcd and the API server to end", stopBudget, pace, func(ctx context.Context) error {
		out, err := n.Read(ctx, "crictl", "ps", "--quiet", "--state", "running", "--name", "^(etcd|kube-apiserver)$")
		if ids := strings.Fields(out); err == nil && len(ids) > 0 {
			err = errors.Join(errors.New("they still run"), session.Do(ctx, n, append([]string{"crictl", "stop", "--timeout", stopGrace}, ids...)...))
		}
		return err
	})
}

// ErrNoKubelet is a node on which kubelet cannot be started.
var ErrNoKubelet = errors.New("kubelet does not start, and without it neither does etcd")

// unpark moves the manifests back, etcd's first, and starts kubelet.
func unpark(ctx context.Context, n session.Shell) error {
	for _, name := range []string{"etcd.yaml", "kube-apiserver.yaml"} {
		err := session.Do(ctx, n, "find", ParkDir, "-maxdepth", "1", "-name", name, "-exec", "mv", "-f", "-t", session.ManifestDir, "{}", "+")
		if err != nil {
			return err
		}
	}
	return session.Do(ctx, n, "systemctl", "start", "kubelet")
}

// unparkAfter is unpark with a time limit of its own, so that it also runs after an interruption.
func unparkAfter(ctx context.Context, n session.Shell) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return unpark(ctx, n)
}

// restoration is a restore on one node.
type restoration struct {
	content  io.Reader // a verified snapshot; nil for the node's own data
	stamp    string    // unique to this restore
	pace     time.Duration
	replaced func() error // called when the new data is in place, before anything uses it
	progress func(string)
}

// restoreOn makes a new etcd cluster with one member on the node and starts it. It returns where the earlier data is kept, "" if there was
// none. If it fails, the node has its earlier data, and everything is started again.
func restoreOn(ctx context.Context, n session.Shell, r restoration) (kept string, err error) {
	id, version, err := etcdOn(ctx, n)
	if err != nil {
		return "", err
	}
	form := etcd.Restoration{
		Identity: id, Version: version, Token: "k8slab-" + r.stamp, Into: id.DataDir + ".new",
		Source: path.Join(id.DataDir, "member/snap/db"),
	}
	if r.content != nil {
		r.progress("copying the snapshot")
		form.Source, form.Checksum = restoreSource, true
		if err := n.Copy(ctx, restoreSource, 0o600, r.content); err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, session.Do(context.WithoutCancel(ctx), n, "rm", "-f", restoreSource)) }()
	}
	defer func() { err = errors.Join(err, unparkAfter(ctx, n)) }()
	r.progress("stopping its API server and etcd")
	if err := Park(ctx, n, r.pace); err != nil {
		return "", err
	}
	r.progress("etcdutl snapshot restore")
	if err := session.Do(ctx, n, "rm", "-rf", form.Into); err != nil { // of an interrupted restore
		return "", err
	}
	if err := session.Do(ctx, n, form.Argv()...); err != nil {
		return "", err
	}
	if kept, err = swap(ctx, n, form.Into, id.DataDir, id.DataDir+".before-"+r.stamp); err != nil {
		return kept, err
	}
	return kept, r.replaced()
}

// etcdOn reads the identity of the node's etcd from its manifest, which an interrupted restore may have parked, and the version of etcdutl.
func etcdOn(ctx context.Context, n session.Shell) (etcd.Identity, string, error) {
	text, err := n.Read(ctx, "cat", path.Join(session.ManifestDir, "etcd.yaml"))
	if err != nil {
		parked, parkedErr := n.Read(ctx, "cat", path.Join(ParkDir, "etcd.yaml"))
		if parkedErr != nil {
			return etcd.Identity{}, "", fmt.Errorf("it has no etcd to restore: only a control plane that has joined can be restored: %w", err)
		}
		text = parked
	}
	id, err := etcd.ParseManifest(text)
	if err != nil {
		return id, "", err
	}
	out, err := n.Read(ctx, "etcdutl", "version")
	if err != nil {
		return id, "", err
	}
	version, err := etcd.ParseVersion(out)
	return id, version, err
}

// swap replaces a directory by a new one, and keeps the old one.
func swap(ctx context.Context, n session.Shell, made, place, aside string) (kept string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second) // both moves or none
	defer cancel()
	out, err := n.Read(ctx, "find", path.Dir(place), "-maxdepth", "1", "-name", path.Base(place))
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(out) != "" {
		if err := session.Do(ctx, n, "mv", "-T", place, aside); err != nil {
			return "", err
		}
		kept = aside
	}
	err = session.Do(ctx, n, "mv", "-T", made, place)
	if err != nil && kept != "" {
		return "", errors.Join(err, session.Do(ctx, n, "mv", "-T", aside, place))
	}
	return kept, err
}
