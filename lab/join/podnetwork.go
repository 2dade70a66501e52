package join

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
)

const (
	cniPlugins = "/opt/cni/bin" // unless the runtime's configuration names another directory
	cniConfigs = "/etc/cni/net.d"
)

// cniNetwork is a network configuration as a runtime reads it: one plugin, or a list.
type cniNetwork struct {
	file  string
	types []string
	ipam  []string
	err   error
}

// networks are in the order in which runtimes look; they use the first. A configuration with nothing but loopback does not count:
// runtimes have loopback by themselves, and pods could reach nobody.
func (m Machine) networks() []cniNetwork {
	var found []cniNetwork
	for _, name := range m.List(cniConfigs) {
		if !slices.Contains([]string{".conf", ".conflist", ".json"}, path.Ext(name)) {
			continue
		}
		text, err := m.Read(path.Join(cniConfigs, name))
		n := cniNetwork{file: name, err: err}
		if err == nil {
			n.types, n.ipam, n.err = pluginTypes(text)
		}
		if n.err == nil && !slices.ContainsFunc(n.types, func(t string) bool { return t != "loopback" }) {
			continue
		}
		found = append(found, n)
	}
	return found
}

// PodNetwork are the plugins of the network configuration in use, none where there is none that can be read.
func (m Machine) PodNetwork() []string {
	if used := m.networks(); len(used) > 0 {
		return used[0].types
	}
	return nil
}

func pluginTypes(text string) (types, ipam []string, err error) {
	type plugin struct {
		Type string `json:"type"`
		IPAM struct {
			Type string `json:"type"`
		} `json:"ipam"`
	}
	var list struct {
		plugin
		Plugins []plugin `json:"plugins"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, nil, err
	}
	if len(list.Plugins) == 0 {
		list.Plugins = []plugin{list.plugin}
	}
	for _, p := range list.Plugins {
		types = append(types, p.Type)
		if p.IPAM.Type != "" {
			ipam = append(ipam, p.IPAM.Type)
		}
	}
	return types, ipam, nil
}

// addOnPlugins are the plugins whose daemon gives each node a pod network of its own.
var addOnPlugins = []string{"flannel", "calico", "cilium-cni", "weave-net", "kube-router", "ptp-antrea", "antrea"}

// plainPlugins connect a pod by what their configuration says, and ask nobody. With one of them as the main plugin every node gives out the
// same addresses, unless somebody configures them apart.
var plainPlugins = []string{"bridge", "ptp", "macvlan", "ipvlan", "vlan", "host-device", "dummy"}

// chained plugins change what a main plugin has made.
var chainedPlugins = []string{"portmap", "bandwidth", "firewall", "tuning", "sbr", "vrf", "loopback"}

func (n cniNetwork) has(plugins []string) bool {
	return slices.ContainsFunc(n.types, func(t string) bool { return slices.Contains(plugins, t) })
}

func (n cniNetwork) addOn() bool { return n.has(addOnPlugins) }

// plain reports whether no daemon is behind the network, also of one that cannot be read. A plugin that nobody here knows may have one: a
// meta-plugin such as multus hands pods on to the add-on's.
func (n cniNetwork) plain() bool { return n.err != nil || n.has(plainPlugins) && !n.addOn() }

// SubnetEnv is what flannel wrote of its network, nil when it has not.
func (m Machine) SubnetEnv() map[string]string {
	text, err := m.Read("/run/flannel/subnet.env")
	if err != nil {
		return nil
	}
	return parseEnvironment(text)
}

// Flannel reports whether the pod network is flannel's, as far as the machine knows: by the configuration in use, or behind a meta-plugin by
// what flannel wrote.
func (m Machine) Flannel() bool {
	used := m.networks()
	if len(used) > 0 && (used[0].addOn() || used[0].plain()) {
		return slices.Contains(used[0].types, "flannel")
	}
	return m.SubnetEnv() != nil
}

// MayBeFlannel reports whether no other pod network than flannel is known to be in use.
func (m Machine) MayBeFlannel() bool { return len(m.networks()) == 0 || m.Flannel() }

// bridged reports whether pods are, or may be, behind a bridge, whose packets the kernel must show to the packet filter. Calico, Cilium and
// most others connect each pod by a route of its own.
func (m Machine) bridged() bool {
	used := m.networks()
	return m.MayBeFlannel() || used[0].has([]string{"bridge", "weave-net", "kube-router"})
}

// asksNobody reports whether the network connects any sandbox. Other networks look for its pod in the cluster, and refuse one without.
// What a sandbox leaves of flannel's and the bridge plugin's is the bridge, so that it must be there.
func (m Machine) asksNobody() bool {
	used := m.networks()
	if len(used) == 0 || used[0].err != nil {
		return true // the runtime itself says that it has none
	}
	known := slices.Concat([]string{"flannel"}, plainPlugins, chainedPlugins)
	return m.Exists(linkDir+bridgeLink) && !slices.ContainsFunc(used[0].types, func(t string) bool { return !slices.Contains(known, t) })
}

// calledPlugins are the programs that the network in use calls. Before one is known they are those that most call.
func (m Machine) calledPlugins() []string {
	used := m.networks()
	if len(used) == 0 || used[0].err != nil {
		return []string{"bridge", "host-local", "loopback", "portmap"}
	}
	needed := slices.Concat(used[0].types, used[0].ipam)
	if slices.Contains(needed, "flannel") {
		needed = append(needed, "bridge", "host-local") // which it hands the pod to
	}
	if m.runtime(Target{}).unit == "containerd" { // CRI-O has loopback built in
		needed = append(needed, "loopback")
	}
	slices.Sort(needed)
	return slices.Compact(needed)
}

// pluginDirectory is where containerd (bin_dir, bin_dirs) and CRI-O (plugin_dirs) look for plugins.
var (
	pluginDirectory = regexp.MustCompile(`(?m)^\s*(?:bin_dirs?|plugin_dirs)\s*=\s*(\[[^\]]*\]|["'][^"'\n]*["'])`)
	quotedEntry     = regexp.MustCompile(`["']([^"']*)["']`)
)

// pluginDirs are the directories in which the runtime looks for plugins. Debian's containerd has its own.
func (m Machine) pluginDirs() []string {
	var dirs []string
	for _, text := range m.runtime(Target{}).configuration(m) {
		for _, setting := range pluginDirectory.FindAllStringSubmatch(text, -1) {
			for _, entry := range quotedEntry.FindAllStringSubmatch(setting[1], -1) {
				if dir := path.Clean(entry[1]); path.IsAbs(dir) && !slices.Contains(dirs, dir) {
					dirs = append(dirs, dir)
				}
			}
		}
	}
	if len(dirs) == 0 {
		return []string{cniPlugins}
	}
	return dirs
}

// Plugins are the network plugins that the runtime finds.
func (m Machine) Plugins() []string {
	var names []string
	for _, dir := range m.pluginDirs() {
		names = append(names, m.List(dir)...)
	}
	return names
}
