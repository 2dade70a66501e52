package inventory

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// The directories in which a file that no image made changes what a component does.
const (
	administratorsUnits = "/etc/systemd/system"
	packagedUnits       = "/usr/lib/systemd/system"
	networks            = "/etc/cni/net.d"
	runtimeParts        = "/etc/containerd/conf.d" // containerd reads it by default
)

// extras are the files that the list does not have and that change what a component does. An empty list knows no component.
func (l List) extras(root string) []Difference {
	if len(l.Files) == 0 {
		return nil
	}
	found := l.unitExtras(root)
	first, _ := l.firstNetwork()
	for _, name := range namesIn(root, networks) {
		// containerd uses the first that it finds.
		if slices.Contains([]string{".conf", ".conflist", ".json"}, path.Ext(name)) && name < first {
			found = l.extra(found, path.Join(networks, name), "pod network", "containerd uses it instead of "+first)
		}
	}
	for _, name := range namesIn(root, runtimeParts) {
		if path.Ext(name) == ".toml" {
			found = l.extra(found, path.Join(runtimeParts, name), "containerd", "containerd reads it besides its configuration")
		}
	}
	return found
}

// extra adds a file, unless the list has it.
func (l List) extra(found []Difference, at, component, what string) []Difference {
	if _, listed := l.find(at); listed {
		return found
	}
	return append(found, Difference{Path: at, Kind: Extra, What: "the image does not have it: " + what, Component: component})
}

// firstNetwork is the name of the network configuration that containerd should use.
func (l List) firstNetwork() (string, bool) {
	for _, f := range l.Files {
		if path.Dir(f.Path) == networks && f.Type == Plain {
			return path.Base(f.Path), true
		}
	}
	return "", false
}

// unitExtras are masks, overrides and parts of the units of the image that have a component.
func (l List) unitExtras(root string) (found []Difference) {
	for _, name := range namesIn(root, administratorsUnits) {
		at := path.Join(administratorsUnits, name)
		if _, listed := l.find(at); listed {
			continue
		}
		unit, isParts := strings.CutSuffix(name, ".d")
		packaged, known := l.find(path.Join(packagedUnits, unit))
		switch {
		case !known || packaged.Component == "":
		case isParts:
			for _, part := range namesIn(root, at) {
				if path.Ext(part) == ".conf" {
					found = l.extra(found, path.Join(at, part), packaged.Component, "systemd reads it besides "+unit)
				}
			}
		case masks(filepath.Join(root, at)):
			found = append(found, Difference{Path: at, Kind: Masks, What: "it masks the unit, which cannot start", Component: packaged.Component})
		default:
			found = l.extra(found, at, packaged.Component, "systemd reads it instead of "+path.Join(packagedUnits, unit))
		}
	}
	return found
}

// masks tells whether systemd takes the file for a mask: a link to /dev/null, or an empty file.
func masks(file string) bool {
	if target, err := os.Readlink(file); err == nil {
		return target == os.DevNull
	}
	info, err := os.Lstat(file)
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}

// namesIn are the names in a directory of the tree, sorted; none where it cannot be read.
func namesIn(root, dir string) []string {
	entries, _ := os.ReadDir(filepath.Join(root, dir))
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.Type()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice) == 0 {
			names = append(names, e.Name())
		}
	}
	return names
}
