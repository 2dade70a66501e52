// Package kernel reads what a Linux kernel says of itself in files: its modules and its swap. It changes nothing. A node reads its own, and a
// computer those that its container nodes share.
package kernel

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Kernel is the kernel whose files are below this root, "" or "/" for the one that runs.
type Kernel string

// modules are what a node's network and containers need, and what shows that the kernel has it, loaded or built in.
var modules = []struct {
	name   string
	proof  []string // any of these paths
	needed bool     // without it the join fails, or no pod gets a network; otherwise it depends on the network add-on
}{
	{"overlay", []string{"/sys/module/overlay"}, true},
	{"br_netfilter", []string{"/sys/module/br_netfilter", "/proc/sys/net/bridge/bridge-nf-call-iptables"}, true}, // flannel refuses to start without
	{"vxlan", []string{"/sys/module/vxlan"}, false},
}

// MissingModules are the modules that the kernel has not loaded and was not compiled with: those that can be loaded, those that a node needs
// and that cannot be, and those of which that depends on its pod network.
func (k Kernel) MissingModules() (loadable, hopeless, unneeded []string) {
	for _, module := range modules {
		switch {
		case slices.ContainsFunc(module.proof, k.exists) || k.builtIn(module.name):
		case k.loadable(module.name):
			loadable = append(loadable, module.name)
		case module.needed:
			hopeless = append(hopeless, module.name)
		default:
			unneeded = append(unneeded, module.name)
		}
	}
	return loadable, hopeless, unneeded
}

// Release is the kernel's version, as in the names of its packages.
func (k Kernel) Release() string { return k.Line("/proc/sys/kernel/osrelease") }

// SwapAreas lists the areas of /proc/swaps, whose first line is a heading. A kernel without swap has no such file.
func (k Kernel) SwapAreas() []string {
	var areas []string
	for line := range strings.Lines(k.Line("/proc/swaps")) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "Filename" {
			areas = append(areas, fields[0])
		}
	}
	return areas
}

// Line returns a file's content without the white space around it, "" when it cannot be read.
func (k Kernel) Line(path string) string {
	text, _ := os.ReadFile(k.path(path))
	return strings.TrimSpace(string(text))
}

func (k Kernel) path(path string) string { return filepath.Join(string(k)+"/", path) }

func (k Kernel) exists(path string) bool {
	_, err := os.Lstat(k.path(path))
	return err == nil
}

// builtIn looks into the kernel's list of what was compiled into it: such a module shows in /sys/module only if it has parameters.
func (k Kernel) builtIn(module string) bool {
	return listsModule(k.Line("/lib/modules/"+k.Release()+"/modules.builtin"), module) || module == "overlay" && k.hasFilesystem("overlay")
}

// Unloaded reports whether the kernel has a module that is not loaded: what needs it would load it.
func (k Kernel) Unloaded(module string) bool {
	return !k.exists("/sys/module/"+module) && k.loadable(module)
}

func (k Kernel) loadable(module string) bool {
	return listsModule(k.Line("/lib/modules/"+k.Release()+"/modules.dep"), module)
}

// listsModule looks for kernel/net/bridge/br_netfilter.ko[.xz][: dependencies]; names in files may have dashes for underscores.
func listsModule(list, module string) bool {
	for line := range strings.Lines(list) {
		path, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		name := path[strings.LastIndexByte(path, '/')+1:]
		name, _, isModule := strings.Cut(name, ".ko")
		if isModule && strings.ReplaceAll(name, "-", "_") == module {
			return true
		}
	}
	return false
}

func (k Kernel) hasFilesystem(name string) bool {
	for line := range strings.Lines(k.Line("/proc/filesystems")) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[len(fields)-1] == name {
			return true
		}
	}
	return false
}
