package join

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

const (
	// placeholderConf sorts behind every real configuration: containerd takes the first.
	placeholderConf = cniConfigs + "/99-k8slab-placeholder.conflist"
	placeholderLink = cniPlugins + "/" + PlaceholderPlugin
)

// PlaceholderPlugin is the CNI plugin of the placeholder: labnode, called by this name. It refuses pods until the pod network is there.
const PlaceholderPlugin = "k8slab-placeholder"

// ensureCNI gives containerd a configuration to start with where there is none, if labnode is installed for good, and takes the placeholder
// away where there is a real one.
// It is written in place: containerd does not notice a file that is moved into the directory.
func (m Machine) ensureCNI() error {
	if len(m.cniConfigurations()) > 0 {
		return m.removePlaceholder()
	}
	if restored, err := m.restoreCNI(); err != nil || len(restored) > 0 {
		return errors.Join(err, m.removePlaceholder())
	}
	self := m.Find("labnode")
	if self == "" || m.Exists(placeholderConf) { // a labnode that is only here for a while could not stand for a plugin
		return nil
	}
	text, err := placeholder(m.Line("/etc/machine-id"))
	if err != nil {
		return err
	}
	for _, dir := range []string{cniConfigs, cniPlugins} {
		if err := os.MkdirAll(m.Path(dir), 0o755); err != nil {
			return fmt.Errorf("prepare the pod network: %w", err)
		}
	}
	link := m.Path(placeholderLink)
	err = errors.Join(remove(link), os.Symlink(self, link), os.WriteFile(m.Path(placeholderConf), text, 0o644))
	if err != nil {
		return fmt.Errorf("write the placeholder of the pod network: %w", err)
	}
	return nil
}

// removePlaceholder removes the placeholder once the real configuration is there, and leaves the directory.
func (m Machine) removePlaceholder() error {
	if len(m.cniConfigurations()) == 0 {
		return nil
	}
	return errors.Join(remove(m.Path(placeholderConf)), remove(m.Path(cniPlugins+"/"+PlaceholderPlugin)))
}

// cniConfigurations are the files that containerd would read, without the placeholder.
func (m Machine) cniConfigurations() []string {
	return slices.DeleteFunc(m.List(cniConfigs), func(name string) bool {
		known := slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(name))
		return !known || name == filepath.Base(placeholderConf)
	})
}

// placeholder is the configuration. Its CNI version has STATUS: containerd 2 asks for it and keeps the Node NotReady; an older runtime gets
// an error for each pod. So no pod gets an address from it. Each machine has a subnet of its own all the same, in a range that no pod
// network uses (198.18.0.0/15, for benchmarks, RFC 2544): even if another plugin took its place, no address would be given twice.
func placeholder(machineID string) ([]byte, error) {
	sum := sha256.Sum256([]byte(machineID))
	n := binary.BigEndian.Uint16(sum[:]) % 512
	return json.MarshalIndent(object{
		"cniVersion": "1.1.0",
		"name":       "k8slab-placeholder",
		"plugins": []any{object{
			"type": PlaceholderPlugin,
			"ipam": object{"type": "host-local", "subnet": fmt.Sprintf("198.%d.%d.0/24", 18+n/256, n%256)},
		}},
	}, "", "  ")
}
