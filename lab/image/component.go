package image

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// component is one set of programs built together from pinned Go modules.
type component struct {
	name    string
	modules []module          // the first gives the component its version
	tools   []string          // main packages
	main    []string          // instead of tools: files of the first module that are the main package, see mainpackage.go
	without []string          // packages that main does not import
	ldflags string            // beside -s -w
	replace []string          // go.mod replace directives that the upstream go.mod needs and a dependency does not inherit
	tags    string            // build tags, separated by commas
	rename  map[string]string // built name → name in the image
}

type module struct{ path, version string }

func (c component) version() string { return c.modules[0].version }

// sums pins the content of every module of a component at one version: <name>@<version>.sum has go.sum's format. A version without
// a file here is verified by Go's checksum database instead.
//
//go:embed sums
var sums embed.FS

func (c component) sum() []byte {
	data, err := sums.ReadFile(fmt.Sprintf("sums/%s@%s.sum", c.name, c.version()))
	if err != nil {
		return nil
	}
	return data
}

const (
	kubernetesModule = "k8s.io/kubernetes"
)

// kubernetes is what runs the cluster, at any version that the module registry has.
func kubernetes(version string) component {
	c := component{name: kubernetesName, modules: []module{{kubernetesModule, version}}}
	for _, cmd := range slices.Concat(hostPrograms, imagePrograms) {
		c.tools = append(c.tools, kubernetesModule+"/cmd/"+cmd)
	}
	// kubeadm compares versions, so the binaries must know their own; upstream's build sets the same variables.
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for key, value := range map[string]string{"gitVersion": version, "gitMajor": parts[0], "gitMinor": parts[1], "gitTreeState": "clean"} {
			c.ldflags += fmt.Sprintf(" -X %s.%s=%s", pkg, key, value)
		}
	}
	c.ldflags = sortedFields(c.ldflags)
	return c
}

func etcd(version string) component {
	return component{
		name: "etcd",
		modules: []module{
			{"go.etcd.io/etcd/server/v3", version}, {"go.etcd.io/etcd/etcdctl/v3", version}, {"go.etcd.io/etcd/etcdutl/v3", version},
		},
		tools:  []string{"go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/etcdctl/v3", "go.etcd.io/etcd/etcdutl/v3"},
		rename: map[string]string{"server": "etcd"},
	}
}

// coredns is without the plugins that ask clouds, and so without their libraries.
func coredns(version string) component {
	c := component{
		name:    "coredns",
		modules: []module{{corednsModule, version}},
		main:    []string{"coredns.go", "core/plugin/zplugin.go"},
		without: []string{corednsModule + "/core/plugin"},
	}
	for _, plugin := range []string{"azure", "clouddns", "nomad", "route53", "trace"} {
		if plugin == "nomad" && semver.Compare(version, "v1.13.0") < 0 { // it has none yet
			continue
		}
		c.without = append(c.without, corednsModule+"/plugin/"+plugin)
	}
	return c
}

const corednsModule = "github.com/coredns/coredns"

const (
	containerdName   = "containerd"
	containerdModule = "github.com/containerd/containerd/v2"
	containerdTags   = "no_btrfs,no_devmapper,no_tracing,no_zfs"
)

func containerd(version string) component {
	return component{
		name:    containerdName,
		modules: []module{{containerdModule, version}},
		tools:   []string{containerdModule + "/cmd/containerd", containerdModule + "/cmd/containerd-shim-runc-v2", containerdModule + "/cmd/ctr"},
		ldflags: "-X " + containerdModule + "/version.Version=" + version,
		tags:    containerdTags,
	}
}

// fixed are the components whose version does not depend on Kubernetes'.
func fixed() []component {
	const (
		plugins = "github.com/containernetworking/plugins"
		flannel = "github.com/flannel-io/flannel"
		tencent = "github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common"
	)
	cni := component{name: "cni-plugins", modules: []module{{plugins, "v1.9.1"}}}
	for _, p := range []string{"main/bridge", "main/host-device", "main/loopback", "main/ptp", "ipam/host-local", "meta/bandwidth", "meta/firewall", "meta/portmap", "meta/tuning"} {
		cni.tools = append(cni.tools, plugins+"/plugins/"+p)
	}
	return []component{
		containerd("v2.4.2"),
		cni,
		{
			name:    "cri-tools",
			modules: []module{{"sigs.k8s.io/cri-tools", "v1.37.0"}},
			tools:   []string{"sigs.k8s.io/cri-tools/cmd/crictl"},
			ldflags: "-X sigs.k8s.io/cri-tools/pkg/version.Version=v1.37.0",
		},
		{
			name:    "flannel",
			modules: []module{{flannel, "v0.28.4"}},
			// Without a cloud's backend, and without the one that a C compiler is needed for.
			main:    []string{"main.go"},
			without: []string{flannel + "/pkg/backend/tencentvpc", flannel + "/pkg/backend/udp"},
			// No registry has the version of this module that flannel asks for.
			replace: []string{tencent + " => " + tencent + " v1.3.78"},
			ldflags: "-X " + flannel + "/pkg/version.Version=v0.28.4",
			rename:  map[string]string{"flannel": "flanneld"},
		},
	}
}
