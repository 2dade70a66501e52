package join

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"k8slab/lab/symptom"
)

// What an init or join writes, in the order in which it is removed: first what would start something again.
var (
	leftKubeconfigs = []string{
		"/etc/kubernetes/bootstrap-kubelet.conf", "/etc/kubernetes/kubelet.conf", "/etc/kubernetes/admin.conf",
		"/etc/kubernetes/super-admin.conf", "/etc/kubernetes/controller-manager.conf", "/etc/kubernetes/scheduler.conf",
	}
	leftKubelet = []string{kubeletConfig, instanceConfig, kubeletFlags, "/var/lib/kubelet/pki"}
	leftNetwork = []string{"/run/flannel"} // the subnet of a Node that is no more: pods would get its addresses until flannel runs again
	leftLinks   = []string{"cni0", "flannel.1"}
)

// leftovers are what earlier inits and joins left on a machine that is no member.
type leftovers struct {
	files  []string // kubeconfigs, manifests, kubelet's state, certificates
	links  []string
	held   []listener // ports that Kubernetes' own programs still hold
	etcd   bool       // data of an etcd member
	member bool       // no leftovers at all: the machine seems to be a member
	alien  bool       // the private key of another cluster's CA
}

func (l leftovers) none() bool {
	return len(l.files)+len(l.links)+len(l.held) == 0 && !l.etcd
}

func (l leftovers) String() string {
	parts := slices.Clone(l.files)
	for _, link := range l.links {
		parts = append(parts, "link "+link)
	}
	for _, held := range l.held {
		parts = append(parts, "port "+held.String())
	}
	if l.etcd {
		parts = append(parts, "etcd data")
	}
	return strings.Join(parts, ", ")
}

func (p *preflight) findLeftovers(ctx context.Context) leftovers {
	found := leftovers{etcd: p.m.Exists(p.m.etcdData()) && !p.ignores("diravailable--var-lib-etcd")}
	for _, file := range slices.Concat(leftKubeconfigs, p.leftManifests(), leftKubelet, leftNetwork, p.leftCertificates()) {
		if p.m.Exists(file) && !p.ignores("fileavailable-"+strings.ReplaceAll(file, "/", "-")) {
			found.files = append(found.files, file)
		}
	}
	for _, link := range leftLinks {
		if p.m.Exists(linkDir + link) {
			found.links = append(found.links, link)
		}
	}
	for _, l := range p.m.listeners(neededPorts(p.t)) {
		if slices.Contains(ownPrograms, l.program) && !p.ignores(fmt.Sprintf("port-%d", l.port)) {
			found.held = append(found.held, l)
		}
	}
	found.alien = p.alienCA()
	u, err := p.units(ctx)
	found.member = p.m.Exists("/etc/kubernetes/kubelet.conf") && (err == nil && u.kubelet.active() ||
		slices.ContainsFunc(found.held, func(l listener) bool { return l.port == 10250 }))
	return found
}

func (p *preflight) leftManifests() []string {
	var files []string
	for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"} {
		files = append(files, path.Join(manifestsDir, component+".yaml"))
	}
	return files
}

// leftCertificates are the cluster's files in the pki directory. For a control plane that joins without a certificate key somebody has
// copied them there by hand, so they are no leftovers.
func (p *preflight) leftCertificates() []string {
	if p.t.ControlPlane && p.t.CertificateKey == "" {
		return nil
	}
	var files []string
	for _, name := range p.m.List(pkiDir) {
		if p.t.ControlPlane && name == "ca.crt" {
			continue // a control plane's join uses it; a worker's join refuses it
		}
		files = append(files, path.Join(pkiDir, name))
	}
	return files
}

// alienCA says whether the CA key here may be of another cluster, and its only copy.
func (p *preflight) alienCA() bool {
	if !p.m.Exists(pkiDir + "/ca.key") {
		return false
	}
	text, _ := p.m.Read(pkiDir + "/ca.crt")
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return true
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return true
	}
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return !slices.ContainsFunc(p.t.CACertHashes, func(pin string) bool {
		return strings.EqualFold(pin, "sha256:"+hex.EncodeToString(sum[:]))
	})
}

const resetHint = "labnode reset, or: kubeadm reset --force"

func checkLeftovers(ctx context.Context, p *preflight) Check {
	found := p.findLeftovers(ctx)
	switch {
	case found.none():
		return ok("none")
	case found.member:
		return blocked(symptom.LeftoverState, "labnode validate, or to leave the cluster: "+resetHint,
			"this machine is a member already, or still: kubelet runs with /etc/kubernetes/kubelet.conf (%s)", found)
	case found.etcd:
		return blocked(symptom.LeftoverState, resetHint+"; only when its member has left the etcd cluster", "an earlier join left %s", found)
	case found.alien:
		return blocked(symptom.LeftoverState, "save "+pkiDir+" if that cluster still lives; then "+resetHint,
			"an earlier init or join left %s; ca.key is not known to be this cluster's", found)
	case !onlyKubelet(found.held):
		return blocked(symptom.LeftoverState, resetHint, "an earlier join left %s", found)
	}
	return fixable(symptom.LeftoverState, resetHint, "an earlier join left %s", found)
}

// onlyKubelet says whether stopping kubelet frees the ports. Containers go on running without kubelet.
func onlyKubelet(held []listener) bool {
	return !slices.ContainsFunc(held, func(l listener) bool { return l.program != "kubelet" })
}

// repairLeftovers removes what a failed join left, after everything that could make it dangerous is ruled out once more. The CNI directory,
// the runtime's state and etcd's data stay in any case.
func repairLeftovers(ctx context.Context, p *preflight) (string, error) {
	found := p.findLeftovers(ctx)
	if found.member || found.etcd || found.alien || !onlyKubelet(found.held) {
		return "", refuse("this is more than a failed join left: "+found.String(), resetHint)
	}
	if u, err := p.units(ctx); err != nil || !u.kubelet.absent() {
		if _, err := p.m.Run(ctx, "systemctl", "stop", "kubelet.service"); err != nil {
			return "", err
		}
	}
	for _, file := range found.files {
		if err := os.RemoveAll(p.m.Path(file)); err != nil {
			return "", err
		}
	}
	for _, link := range found.links {
		if _, err := p.m.Run(ctx, "ip", "link", "delete", link); err != nil && p.m.Exists(linkDir+link) {
			return "", err
		}
	}
	return "stopped kubelet and removed " + found.String(), nil
}
