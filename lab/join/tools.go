package join

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// without are those of the programs that the machine does not have.
func (m Machine) without(programs ...string) []string {
	return slices.DeleteFunc(programs, func(program string) bool { return m.Find(program) != "" })
}

func checkKubeBinaries(_ context.Context, p *preflight) Check {
	missing := p.m.without("kubeadm", "kubelet")
	if slices.Equal(missing, []string{"kubeadm"}) && p.m.Exists(kubeletConf) && !p.m.made() {
		return ok("kubelet is installed; kubeadm, which a member does not run, is not")
	}
	if len(missing) > 0 {
		return blocked(symptom.KubeBinariesMissing, "install the packages kubeadm and kubelet of the cluster's version",
			"%s: not in %s", strings.Join(missing, " and "), strings.Join(programDirs, ":"))
	}
	return ok("kubeadm and kubelet are installed")
}

// checkHostTools looks for what kubeadm's preflight wants in PATH: conntrack only before 1.32, whose kube-proxy called it.
func checkHostTools(ctx context.Context, p *preflight) Check {
	missing := p.m.without("mount", "losetup", "cp")
	if p.m.Find("conntrack") == "" {
		if found, err := p.versions(ctx); err == nil && found.kubeadm.minor > 0 && found.kubeadm.minor < 32 {
			missing = append(missing, "conntrack")
		}
	}
	if len(missing) > 0 {
		return blocked(symptom.HostToolsMissing, "apt-get install mount coreutils conntrack, or your distribution's packages of them",
			"missing: %s", strings.Join(missing, ", "))
	}
	return ok("all there")
}

func (p *preflight) findVersions(ctx context.Context) (versions, error) {
	var found versions
	var failures [2]error
	var wg sync.WaitGroup
	wg.Go(func() { found.kubeadm, failures[0] = p.versionOf(ctx, "kubeadm", "version", "--output=short") })
	wg.Go(func() { found.kubelet, failures[1] = p.versionOf(ctx, "kubelet", "--version") })
	wg.Wait()
	return found, errors.Join(failures[:]...)
}

// versionOf prefers what the linker wrote into the program: to start a program of this size takes an emulated machine a second.
func (p *preflight) versionOf(ctx context.Context, program string, args ...string) (release, error) {
	path := p.m.Find(program)
	if path == "" {
		return release{}, fmt.Errorf("%s is not installed", program)
	}
	if r, ok := builtVersion(p.m.Path(path)); ok {
		return r, nil
	}
	out, err := p.m.Run(ctx, append([]string{path}, args...)...)
	if err != nil {
		return release{}, err
	}
	r, ok := parseRelease(strings.TrimPrefix(strings.TrimSpace(out), "Kubernetes "))
	if !ok {
		return release{}, fmt.Errorf("%s says that its version is %q", program, strings.TrimSpace(out))
	}
	return r, nil
}

// builtVersion reads the version of Kubernetes that the linker wrote into a program.
func builtVersion(path string) (release, bool) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return release{}, false
	}
	return moduleVersion(info)
}

// moduleVersion is the release of the Kubernetes module that a Go program was built from. A development version does not count.
func moduleVersion(info *debug.BuildInfo) (release, bool) {
	const module = "k8s.io/kubernetes"
	if info.Main.Path == module {
		return exactRelease(info.Main.Version)
	}
	for _, dep := range info.Deps {
		if dep.Path == module && dep.Replace == nil {
			return exactRelease(dep.Version)
		}
	}
	return release{}, false
}

var releaseShape = regexp.MustCompile(`^v1\.(\d{1,4})\.\d+`)

func parseRelease(text string) (release, bool) {
	m := releaseShape.FindStringSubmatch(text)
	if m == nil {
		return release{}, false
	}
	minor, err := strconv.Atoi(m[1])
	return release{text: text, minor: minor}, err == nil
}

func exactRelease(text string) (release, bool) {
	r, ok := parseRelease(text)
	return r, ok && releaseShape.FindString(text) == text
}

// checkVersion applies Kubernetes' skew policy: kubeadm of the cluster's minor version or one newer, kubelet not newer than the cluster and
// at most three minor versions older.
func checkVersion(ctx context.Context, p *preflight) Check {
	found, err := p.versions(ctx)
	if err != nil {
		return unmade(err)
	}
	config, err := p.clusterConfig(ctx)
	if err != nil {
		return p.forbidden(err, unmade(err))
	}
	return judgeVersions(found, config)
}

func judgeVersions(found versions, config kube.ClusterConfiguration) Check {
	cluster, known := parseRelease(config.KubernetesVersion)
	if !known {
		return unmade(fmt.Errorf("the cluster's kubeadm-config names version %q", config.KubernetesVersion))
	}
	evidence := fmt.Sprintf("kubeadm %s, kubelet %s, cluster %s", found.kubeadm, found.kubelet, cluster)
	hint := fmt.Sprintf("install kubeadm and kubelet %s", cluster)
	switch adm, let := found.kubeadm.minor-cluster.minor, found.kubelet.minor-cluster.minor; {
	case adm < 0 || adm > 1:
		return blocked(symptom.VersionSkew, hint, "%s: kubeadm must be of the cluster's minor version or one newer", evidence)
	case let > 0:
		return blocked(symptom.VersionSkew, hint, "%s: kubelet must not be newer than the cluster", evidence)
	case let < -3:
		return blocked(symptom.VersionSkew, hint, "%s: kubelet is more than three minor versions older", evidence)
	}
	return ok("%s", evidence)
}
