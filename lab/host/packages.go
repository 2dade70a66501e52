package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"k8slab/lab/command"
	"k8slab/lab/event"
)

// packages are the Debian and Ubuntu packages that running machines of each kind needs.
var packages = map[string][]string{
	Containers:      {"libvirt-daemon", "libvirt-daemon-driver-lxc", "libvirt-daemon-system", "libvirt-clients", "dnsmasq-base", "iptables", "iproute2", "e2fsprogs", "util-linux"},
	VirtualMachines: {"libvirt-daemon", "libvirt-daemon-driver-qemu", "libvirt-daemon-system", "libvirt-clients", "qemu-system-x86", "qemu-utils", "dnsmasq-base", "iptables", "iproute2", "util-linux"},
}

// Install installs the packages that machines of the URI's kind and the extra ones need and this computer lacks. Where it may not, the
// error has the exact command.
func Install(ctx context.Context, uri string, extra []string, events *event.Stream) error {
	wanted := append(slices.Clone(packages[uri]), extra...)
	if _, err := exec.LookPath("dpkg-query"); err != nil {
		return missingByHand(wanted)
	}
	missing := missingPackages(ctx, wanted)
	if len(missing) == 0 {
		return nil
	}
	install := append([]string{"apt-get", "install", "--yes", "--no-install-recommends"}, missing...)
	if os.Geteuid() != 0 {
		return fmt.Errorf("this computer lacks packages; install them with:\n  sudo apt-get update && sudo %s", strings.Join(install, " "))
	}
	step := events.Start("", "packages", 0)
	step.Progress("installing %s", strings.Join(missing, " "))
	// Third-party sources that do not answer are no obstacle as long as the distribution's do: the install tells.
	_, updateErr := command.Run(ctx, "apt-get", "update")
	_, err := command.Command{
		Argv: install,
		// A service must not start by being installed: the lab has a daemon of its own, or uses the one that already runs.
		Env:  []string{"DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"},
		Line: func(line string) { step.Progress("%s", line) },
	}.Run(ctx)
	if err != nil {
		return step.End(errors.Join(err, updateErr))
	}
	return step.End(nil)
}

func missingPackages(ctx context.Context, wanted []string) []string {
	// dpkg-query fails when it does not know one of them, and still lists the others.
	var out strings.Builder
	_, _ = command.Command{Argv: append([]string{"dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\n"}, wanted...), Stdout: &out}.Run(ctx)
	return slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(wanted))), func(p string) bool {
		return strings.Contains("\n"+out.String(), "\n"+p+" installed\n")
	})
}

func missingByHand(wanted []string) error {
	for _, program := range []string{"libvirtd", "mmdebstrap"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is missing and this computer has no dpkg to install it with; install the equivalents of these Debian packages: %s", program, strings.Join(wanted, " "))
		}
	}
	return nil
}
