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

// Install installs the packages that this computer lacks for machines of the URI's kind ("" for none), and the extra ones. Without the
// permission to, the error has the exact command.
func Install(ctx context.Context, uri string, extra []string, events *event.Stream) error {
	wanted := append(slices.Clone(packages[uri]), extra...)
	if _, err := exec.LookPath("dpkg-query"); err != nil {
		return missingByHand(exec.LookPath, uri)
	}
	missing, err := missingPackages(ctx, wanted)
	if err != nil || len(missing) == 0 {
		return err
	}
	install := append([]string{"apt-get", "install", "--yes", "--no-install-recommends"}, missing...)
	if os.Geteuid() != 0 {
		return fmt.Errorf("this computer lacks packages; install them with:\n  sudo apt-get update && sudo %s", strings.Join(install, " "))
	}
	step := events.Start("", "packages", 0)
	step.Progress("installing %s", strings.Join(missing, " "))
	// An error is ignored: third-party sources may fail as long as the distribution's work. The installation will tell.
	_, updateErr := command.Run(ctx, "apt-get", "update")
	_, err = command.Command{
		Argv: install,
		// Installing a package must not start its service: the lab has a daemon of its own, or uses one that already runs.
		Env:  []string{"DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"},
		Line: func(line string) { step.Progress("%s", line) },
	}.Run(ctx)
	if err != nil {
		return step.End(errors.Join(err, updateErr))
	}
	return step.End(nil)
}

func missingPackages(ctx context.Context, wanted []string) ([]string, error) {
	var out strings.Builder
	_, err := command.Command{Argv: append([]string{"dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\n"}, wanted...), Stdout: &out}.Run(ctx)
	// It exits with 1 if it does not know one of the packages, and still lists the others.
	if exit, ended := errors.AsType[*exec.ExitError](err); err != nil && (!ended || exit.ExitCode() != 1) {
		return nil, err
	}
	return slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(wanted))), func(p string) bool {
		return strings.Contains("\n"+out.String(), "\n"+p+" installed\n")
	}), nil
}

// program is a program that a lab needs, and the packages that have it on distributions other than Debian and Ubuntu. Labs there are
// untested.
type program struct {
	name, dnf, pacman string
	when              func(uri string) bool // nil: always
}

var programs = []program{
	{name: "mmdebstrap", dnf: "mmdebstrap debian-keyring", pacman: "mmdebstrap debian-archive-keyring"},
	{name: "mkfs.ext4", dnf: "e2fsprogs", pacman: "e2fsprogs"},
	{name: "qemu-img", dnf: "qemu-img", pacman: "qemu-img"},
	{name: "dnsmasq", dnf: "dnsmasq", pacman: "dnsmasq", when: func(uri string) bool { return uri != "" }},
	{name: "libvirtd", dnf: "libvirt-daemon libvirt-daemon-driver-network libvirt-daemon-lxc", pacman: "libvirt", when: func(uri string) bool { return uri == Containers }},
	{name: "qemu-system-x86_64", dnf: "qemu-system-x86 libvirt-daemon-kvm", pacman: "qemu-system-x86 libvirt", when: func(uri string) bool { return uri == VirtualMachines }},
}

// missingByHand says which programs a computer without dpkg lacks, and how its own package manager may get them.
func missingByHand(look func(program string) (string, error), uri string) error {
	var missing, dnf, pacman []string
	for _, p := range programs {
		if p.when != nil && !p.when(uri) {
			continue
		}
		if _, err := look(p.name); err != nil {
			missing, dnf, pacman = append(missing, p.name), append(dnf, p.dnf), append(pacman, p.pacman)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	how := "install them"
	if _, err := look("dnf"); err == nil {
		how = "sudo dnf install " + strings.Join(dnf, " ")
	} else if _, err := look("pacman"); err == nil {
		how = "sudo pacman -S " + strings.Join(pacman, " ")
	}
	return fmt.Errorf("this computer has no dpkg, and lacks %s; next: %s", strings.Join(missing, ", "), how)
}
