package join

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path"
	"strings"
	"time"

	"k8slab/lab/atomicfile"
	"k8slab/lab/wait"
)

// reloadLimit is how long containerd may take to load a changed configuration. Usually it takes milliseconds.
const reloadLimit = 2 * time.Second

// notLoaded is what the runtime says when it has no network although the configuration is there: containerd watches the directory, but does
// not notice a file that is moved into it. It is "" when all is well, when the complaint is not of containerd's own loader, and on a
// machine that has not joined and keeps no copy, because its network add-on may still bring a configuration.
func (p *preflight) notLoaded(ctx context.Context, n cniNetwork) string {
	if n.file == path.Base(placeholderConf) || !p.m.Exists(kubeletConf) && len(p.m.List(pristineCNI)) == 0 {
		return ""
	}
	facts, err := p.cri(ctx)
	if err != nil || facts.socket != containerdSocket || !strings.Contains(facts.network, "cni plugin not initialized") {
		return ""
	}
	return facts.network
}

// reloadCNI makes containerd read the configuration: it notices one that is renamed in its directory. A containerd that watches no more is
// started anew.
func (p *preflight) reloadCNI(ctx context.Context, file string) (string, error) {
	info, err := os.Lstat(p.m.Path(file))
	if err != nil {
		return "", err
	}
	if info.Mode().IsRegular() { // a link's target may serve others
		text, err := p.m.Read(file)
		if err == nil {
			err = atomicfile.Write(p.m.Path(file), info.Mode().Perm(), []byte(text))
		}
		if err != nil {
			return "", err
		}
		if wait.For(ctx, "containerd to load "+file, reloadLimit, 50*time.Millisecond, p.networkServes) == nil {
			return "wrote " + file + " again in its place, so that containerd noticed it", nil
		}
	}
	if _, err := p.restarts(ctx, p.networkServes); err != nil {
		return "", err
	}
	return "restarted containerd, which watched its CNI directory no more", nil
}

// networkServes is what a wait for containerd's network asks.
func (p *preflight) networkServes(ctx context.Context) error {
	facts, err := p.m.talkCRI(ctx, containerdSocket)
	if said := cmp.Or(facts.problem, facts.network); err == nil && said != "" { // without a status there is no network's status
		err = errors.New(said)
	}
	return err
}
