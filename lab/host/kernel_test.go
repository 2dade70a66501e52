package host

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8slab/lab/event"
)

// fakeKernel has the limits of Linux' own defaults, and the files besides, below a root of its own.
func fakeKernel(t *testing.T, files map[string]string) computerKernel {
	t.Helper()
	all := map[string]string{
		"proc/sys/fs/inotify/max_user_instances": "128\n", "proc/sys/fs/inotify/max_user_watches": "8192\n",
		"proc/sys/kernel/osrelease": "6.12.0-1-cloud-amd64\n", "proc/filesystems": "nodev\ttmpfs\n",
	}
	maps.Copy(all, files)
	root := fakeRoot(t, all)
	return computerKernel{root: root, modprobe: func(_ context.Context, modules ...string) error {
		for _, m := range modules {
			if err := os.MkdirAll(filepath.Join(root, "sys/module", m), 0o755); err != nil {
				return err
			}
		}
		return nil
	}}
}

func TestRaiseLimits(t *testing.T) {
	const instances, watches = "proc/sys/fs/inotify/max_user_instances", "proc/sys/fs/inotify/max_user_watches"
	for _, tt := range []struct {
		name, instances, watches         string
		wantInstances, wantWatches, fail string
	}{
		{name: "Linux' defaults", instances: "128\n", watches: "8192\n", wantInstances: "1024", wantWatches: "524288"},
		{name: "enough", instances: "8192\n", watches: "600000\n", wantInstances: "8192\n", wantWatches: "600000\n"},
		{name: "no number", instances: "many\n", watches: "8192\n", wantInstances: "many\n", wantWatches: "8192\n", fail: "invalid syntax"},
	} {
		k := fakeKernel(t, map[string]string{instances: tt.instances, watches: tt.watches})
		err := k.raiseLimits(event.NewStream())
		if (err == nil) != (tt.fail == "") || err != nil && !strings.Contains(err.Error(), tt.fail) {
			t.Errorf("%s: %v", tt.name, err)
		}
		for path, want := range map[string]string{instances: tt.wantInstances, watches: tt.wantWatches} {
			if got, _ := os.ReadFile(filepath.Join(k.root, path)); string(got) != want {
				t.Errorf("%s: %s is %q", tt.name, path, got)
			}
		}
	}
}

// A computer of users runs another kernel than the node image, so no node can load its modules.
func TestLoadModules(t *testing.T) {
	const (
		dep     = "lib/modules/6.12.0-1-cloud-amd64/modules.dep"
		builtin = "lib/modules/6.12.0-1-cloud-amd64/modules.builtin"
		systemd = "run/systemd/system/x"
		bootDir = "etc/modules-load.d/README"
		all     = "kernel/fs/overlayfs/overlay.ko.xz:\nkernel/net/bridge/br_netfilter.ko.xz: kernel/net/bridge/bridge.ko.xz\nkernel/drivers/net/vxlan/vxlan.ko.xz:\n"
	)
	for _, tt := range []struct {
		name         string
		files        map[string]string
		loaded, boot string
		fail         string
	}{
		{name: "Debian with systemd", files: map[string]string{dep: all, systemd: "", bootDir: ""}, loaded: "overlay br_netfilter vxlan", boot: "overlay\nbr_netfilter\nvxlan\n"},
		{name: "without systemd", files: map[string]string{dep: all}, loaded: "overlay br_netfilter vxlan"},
		{name: "Docker loaded one", files: map[string]string{dep: all, "sys/module/overlay/x": "", systemd: "", bootDir: ""}, loaded: "overlay br_netfilter vxlan", boot: "br_netfilter\nvxlan\n"},
		{name: "all compiled in", files: map[string]string{builtin: strings.ReplaceAll(all, ".xz", ""), systemd: "", bootDir: ""}},
		{name: "a kernel that shows neither", files: map[string]string{"proc/filesystems": "nodev\toverlay\n", "proc/sys/net/bridge/bridge-nf-call-iptables": "1\n"}},
		{name: "updated since the last boot", files: map[string]string{"lib/modules/6.13/modules.dep": all}, fail: "need the kernel module overlay, br_netfilter"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := fakeKernel(t, tt.files)
			err := k.loadModules(t.Context(), "abc", event.NewStream())
			if (err == nil) != (tt.fail == "") || err != nil && !strings.Contains(err.Error(), tt.fail) {
				t.Fatal(err)
			}
			for module := range strings.FieldsSeq(tt.loaded) {
				if !exists(filepath.Join(k.root, "sys/module", module)) {
					t.Errorf("%s is not loaded", module)
				}
			}
			if got, _ := os.ReadFile(k.modulesFile("abc")); string(got) != tt.boot {
				t.Errorf("at boot %q, want %q", got, tt.boot)
			}
		})
	}
}

func TestModulesThatMayNotBeLoaded(t *testing.T) {
	k := fakeKernel(t, map[string]string{"lib/modules/6.12.0-1-cloud-amd64/modules.dep": "kernel/fs/overlay.ko:\nkernel/net/br_netfilter.ko:\n"})
	k.modprobe = func(context.Context, ...string) error { return errors.New("Operation not permitted") }
	err := k.loadModules(t.Context(), "abc", event.NewStream())
	if err == nil || !strings.HasSuffix(err.Error(), "run: sudo modprobe --all overlay br_netfilter") {
		t.Error(err)
	}
}
