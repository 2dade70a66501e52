package cluster

import (
	"context"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/join"
	"k8slab/lab/session"
)

// replaceScript has kubelet end a static pod and start at once what its manifest says now. Left alone, kubelet looks again 10 s after the old one has
// ended, and first tells the API server of that: one whose etcd is gone gives no answer for 34 s. One that is gone too refuses, which is an answer, and
// its clients go to another. kubelet waits longer and longer for it, so it is started again when the API server is back.
const replaceScript = `replace() { # NAME CONTAINER...
	name=$1
	shift
	[ "$name" != etcd ] || set -- "$@" $(running kube-apiserver)
	[ $# = 0 ] || crictl stop --timeout 5 "$@" >/dev/null 2>&1 || true
	systemctl restart kubelet
	[ "$name" = etcd ] || [ "$name" = kube-apiserver ] || return 0
	tries=0
	until curl -sfk --max-time 2 https://127.0.0.1:6443/readyz >/dev/null || [ $tries = 200 ]; do
		sleep 0.3
		tries=$((tries + 1))
	done
	systemctl restart kubelet
}
running() { crictl ps --quiet --state running --name "^$1$"; }
yield() { ! systemctl --quiet is-active keepalived || systemctl stop keepalived; } # the virtual IP, to another control plane
unyield() { ! systemctl --quiet is-enabled keepalived 2>/dev/null || systemctl start keepalived; }
`

// manifestScript replaces the manifest of the static pod $1 in the directory $2 by standard input. $3 is as $5 of upgradeScript.
const manifestScript = replaceScript + `set -eu
umask 077
old=$(running "$1")
cat >"$2/.$1.new"
if [ "$3" = yield ]; then
	trap unyield EXIT
	yield
fi
mv -fT -- "$2/.$1.new" "$2/$1.yaml"
replace "$1" $old`

// upgradeScript runs kubeadm upgrade with the configuration in $1: $2 is apply or node, $3 the version, which it notes in $4 at the end. With yield
// in $5 the virtual IP is elsewhere meanwhile. Asked whether to go on, it says yes. A manifest that kubeadm replaces is seen by its inode.
const upgradeScript = replaceScript + `set -eu
umask 077
manifests=/etc/kubernetes/manifests
hasten() {
	for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do
		[ -e $manifests/$name.yaml ] || continue
		( was=$(stat -c %i $manifests/$name.yaml)
		old=$(running $name)
		until is=$(stat -c %i $manifests/$name.yaml 2>/dev/null) && [ "$is" != "$was" ]; do sleep 0.2; done
		replace $name $old ) &
	done
	wait
}
hasten &
hastener=$!
trap 'rm -f "$1"; pkill -P $hastener 2>/dev/null || true; kill $hastener 2>/dev/null || true; [ "$5" != yield ] || unyield' EXIT
trap 'exit 143' TERM
[ "$5" != yield ] || yield
mkdir -p "$(dirname "$4")"
rm -f "$4"
echo y | kubeadm upgrade "$2" --config "$1"
echo "$3" >"$4"
sync -f "$4"`

// upgradedMark has the version that kubeadm has upgraded the machine to, once it has succeeded.
const upgradedMark = "/var/lib/k8slab/upgraded"

// upgradedScript prints what the mark $1 says, unless a manifest of Kubernetes has an image with another tag than $2.
const upgradedScript = `for manifest in /etc/kubernetes/manifests/kube-*.yaml; do
	[ ! -e "$manifest" ] || grep -q "image: .*:$2\$" "$manifest" || exit 0
done
cat "$1" 2>/dev/null || true`

// upgradeBudget is longer than kubeadm's own time limits for the four static pods of a control plane, of which each is upgradeManifests.
const upgradeBudget = 15 * time.Minute

// KubeadmUpgrade has the node's kubeadm upgrade what it made there to the version of the run's lab, and with first what the cluster has of it
// too. Done again, it does what an earlier one has not done. kubeadm runs in a unit of its own: a labctl that is killed does not end it.
func (c *Run) KubeadmUpgrade(ctx context.Context, n config.Node, first bool, step *event.Step) error {
	s, verb := c.Session, "node"
	if first {
		verb = "apply"
	}
	succeeded := func(ctx context.Context, _ join.Facts) (bool, error) { return c.KubeadmUpgraded(ctx, n) }
	if done, err := c.KubeadmUpgraded(ctx, n); done || err != nil { // by a kubeadm whose labctl was killed
		return err
	}
	text, err := marshal([]any{upgradeConfiguration(s, n)})
	if err != nil {
		return err
	}
	script := []string{"/bin/sh", "-c", upgradeScript, "sh", kubeadmConfig, verb, s.Cluster.Kubernetes.Version, upgradedMark, yields(s, n)}
	if err := startKubeadm(ctx, s, n.Name, text, script); err != nil {
		return err
	}
	return awaitKubeadm(ctx, s, n.Name, upgradeBudget*time.Duration(s.TimeScale()), step, succeeded)
}

// KubeadmUpgraded tells whether kubeadm has upgraded the node to the version of the run's lab, and the node still has what it made.
func (c *Run) KubeadmUpgraded(ctx context.Context, n config.Node) (bool, error) {
	version := c.Cluster.Kubernetes.Version
	is, err := c.Nodes[n.Name].Read(ctx, "sh", "-c", upgradedScript, "sh", upgradedMark, strings.ReplaceAll(version, "+", "_"))
	return strings.TrimSpace(is) == version, err
}

// yields is yield for a control plane of a lab that has another one, to have the virtual IP.
func yields(s *session.Session, n config.Node) string {
	if s.Cluster.OverSSH() || n.Role != config.ControlPlane || len(s.Cluster.ControlPlanes()) == 1 {
		return ""
	}
	return "yield"
}

// ReplaceManifest replaces the manifest of a static pod of the node, and has kubelet start what it says at once.
func (c *Run) ReplaceManifest(ctx context.Context, n config.Node, name, text string) error {
	_, err := session.Feed(ctx, c.Nodes[n.Name], false, strings.NewReader(text), "sh", "-c", manifestScript, "sh", name, session.ManifestDir, yields(c.Session, n))
	return err
}

// upgradeConfiguration is what `kubeadm upgrade` is told on the node.
func upgradeConfiguration(s *session.Session, n config.Node) object {
	each := func() object {
		o := patched(s, n, object{"imagePullPolicy": "IfNotPresent"})
		if ignored := ignoredChecks(s); len(ignored) > 0 {
			o["ignorePreflightErrors"] = ignored
		}
		return o
	}
	apply := each()
	apply["kubernetesVersion"] = s.Cluster.Kubernetes.Version
	limits := timeouts(s)
	limits["upgradeManifests"] = (3 * time.Minute * time.Duration(s.TimeScale())).String()
	return object{"apiVersion": kubeadmAPI, "kind": "UpgradeConfiguration", "apply": apply, "node": each(), "timeouts": limits}
}
