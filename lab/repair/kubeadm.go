package repair

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8slab/config"
	"k8slab/lab/cluster"
	"k8slab/lab/session"
	"k8slab/lab/symptom"
)

// The scripts get kubeadm's configuration on standard input, keep it where only root reads it, and leave nothing of it.
const (
	inPrivate = `umask 077; d=$(mktemp -d) || exit 1; trap 'rm -rf "$d"' EXIT; cat >"$d/config" || exit 1
`
	// makeScript prints the files that kubeadm's phases would write. Each argument is a phase of `kubeadm init`.
	makeScript = inPrivate + `mkdir "$d/made" || exit 1
for phase in "$@"; do
	KUBEADM_INIT_DRYRUN_DIR="$d/made" kubeadm init phase $phase --config "$d/config" --dry-run >"$d/said" 2>&1 ||
		{ cat "$d/said" >&2; exit 1; }
done
cd "$d/made" && for f in *; do echo "==> $f <=="; cat "$f"; echo; done`
	// kubeadmScript runs kubeadm with the arguments.
	kubeadmScript = inPrivate + `kubeadm "$@" --config "$d/config"`
	// readScript prints files, and nothing for those that are missing.
	readScript = `for f in "$@"; do echo "==> $f <=="; cat "$f"; echo; done 2>/dev/null; true`
	// saveScript moves files aside.
	saveScript = `for f in "$@"; do [ ! -e "$f" ] || mv -fT "$f" "$f.k8slab-saved" || exit 1; done`
)

// made are the files that kubeadm's phases would write on the node, by name. It changes nothing. A phase of `kubeadm init` runs only where
// the authority's key is, so for a worker it runs on a control plane: what it makes comes from the configuration alone.
func (r *repairRun) made(ctx context.Context, n config.Node, phases ...string) (map[string]string, error) {
	text, err := cluster.Configuration(ctx, r.Session, r.Admin, n, "", r.isWrong)
	if err != nil {
		return nil, err
	}
	on := n
	if n.Role != config.ControlPlane {
		on = r.Admin.From
	}
	argv := append([]string{"sh", "-c", makeScript, "sh"}, phases...)
	out, err := session.Feed(ctx, r.Nodes[on.Name], true, strings.NewReader(text), argv...)
	if err != nil {
		return nil, err
	}
	// On a machine of another name kubeadm has kubelet told the node's own.
	files := parseFiles(strings.ReplaceAll(out, "--hostname-override="+n.Name+" ", ""))
	files["config.yaml"], err = cluster.OwnKubelet(r.Session, n, files["config.yaml"])
	return files, err
}

// kubeadm runs kubeadm with the arguments and the node's configuration, and returns what it printed. With readOnly it only prints.
func (r *repairRun) kubeadm(ctx context.Context, n config.Node, readOnly bool, args ...string) (string, error) {
	text, err := cluster.Configuration(ctx, r.Session, r.Admin, n, "", r.isWrong)
	if err != nil {
		return "", err
	}
	proxy, err := r.OwnProxy()
	if err != nil {
		return "", err
	}
	return session.Feed(ctx, r.Nodes[n.Name], readOnly, strings.NewReader(text+proxy), append([]string{"sh", "-c", kubeadmScript, "sh"}, args...)...)
}

// readFiles reads files of a node. One that is missing is "".
func readFiles(ctx context.Context, on session.Reader, files ...string) (map[string]string, error) {
	out, err := on.Read(ctx, append([]string{"sh", "-c", readScript, "sh"}, files...)...)
	if err != nil {
		return nil, err
	}
	return parseFiles(out), nil
}

// parseFiles reads what the scripts print.
func parseFiles(out string) map[string]string {
	files, name := map[string]string{}, ""
	for line := range strings.Lines(out) {
		if at, ok := strings.CutPrefix(strings.TrimSuffix(line, " <==\n"), "==> "); ok && strings.HasSuffix(line, " <==\n") {
			name = at
			files[name] = ""
			continue
		}
		files[name] += line
	}
	for name, text := range files {
		files[name] = strings.TrimSuffix(text, "\n") // the scripts' own
	}
	return files
}

// save moves files aside, so that kubeadm makes them anew.
func save(ctx context.Context, on session.Runner, files ...string) error {
	return session.Do(ctx, on, append([]string{"sh", "-c", saveScript, "sh"}, files...)...)
}

// fails tells whether the diagnosis before this pass found a failure on the node, or of the cluster with "".
func (r *repairRun) fails(name string) bool {
	return slices.ContainsFunc(r.before, func(f symptom.Finding) bool { return f.Level == symptom.Fail && f.Node == name })
}

// failsWith tells whether it found one of the causes, on any node.
func (r *repairRun) failsWith(causes []symptom.ID) bool {
	return slices.ContainsFunc(r.before, func(f symptom.Finding) bool { return f.Level == symptom.Fail && slices.Contains(causes, f.Symptom) })
}

// stopGrace, in seconds, is the time before a container is killed. An API server that something watches takes all that it gets.
const stopGrace = "5"

// running are the IDs of a static pod's containers that run.
func running(ctx context.Context, on session.Reader, name string) ([]string, error) {
	ids, err := on.Read(ctx, "crictl", "ps", "--quiet", "--state", "running", "--name", "^"+name+"$")
	all := strings.Fields(ids)
	slices.Sort(all)
	return all, err
}

// restartPods ends the containers of static pods, and restarts kubelet, which starts them again at once.
func restartPods(ctx context.Context, on session.Node, names ...string) error {
	for _, name := range names {
		ids, err := running(ctx, on, name)
		if err == nil {
			err = stop(ctx, on, ids)
		}
		if err != nil {
			return fmt.Errorf("restart %s: %w", name, err)
		}
	}
	return session.Do(ctx, on, "systemctl", "restart", "kubelet")
}

// stop ends containers. kubelet would give them half a minute.
func stop(ctx context.Context, on session.Node, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return session.Do(ctx, on, append([]string{"crictl", "--timeout", "60s", "stop", "--timeout", stopGrace}, ids...)...)
}
