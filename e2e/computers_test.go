//go:build e2e

package e2e

import (
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Computers as users have them, which are emulated here: each is a row with what is special about it. docs/hosts.md says which risk a row holds off.
var _ = Describe("a computer that users have", Label("hosts", "Slow"), Serial, func() {
	for _, c := range computers {
		It("carries a lab: "+c.name, Label(c.label), func(ctx SpecContext) {
			disk := c.makeDisk(ctx, GinkgoT().TempDir())
			var seen string
			for n := range c.boots {
				begun := time.Now()
				console := c.boot(ctx, disk, n+1)
				AddReportEntry("boot "+time.Since(begun).Round(time.Second).String(), console, ReportEntryVisibilityFailureOrVerbose)
				seen += console
			}
			for _, want := range c.wants {
				Expect(seen).To(ContainSubstring("k8slab: " + want + "\n"))
			}
		}, SpecTimeout(60*time.Minute))
	}
})

// computer is one that QEMU emulates, with systemd and cgroup v2.
type computer struct {
	name, label string
	suite       string   // Debian's release
	kernel      string   // its package
	packages    []string // beside hostPackages
	cmdline     string   // of its kernel, beside what each gets
	cluster     string   // cluster.yaml
	disk        bool     // the node image's disk is in the cache, for virtual machines
	boots       []string // what it does each time that it is switched on; after plug it is switched off hard
	wants       []string // lines on its console
}

const (
	oneContainer = "name: small\nnodes:\n  - {name: cp1, role: control-plane}\n"
	oneVM        = "name: small\nlibvirt: {uri: 'qemu:///system'}\nresources: {control_plane: {memory: 1700}}\nnodes:\n  - {name: cp1, role: control-plane}\n"
)

var computers = []computer{
	{
		name:  "Debian 12 with AppArmor, a swap file, its libvirtd running, systemd's daemon-reload, a package installed, power loss, a reboot",
		label: "debian12", suite: "bookworm", kernel: "linux-image-cloud-amd64", packages: []string{"apparmor"}, cmdline: "apparmor=1 security=apparmor",
		cluster: oneContainer,
		boots: []string{`
fallocate --length 64M /swap && chmod 600 /swap && mkswap -q /swap && swapon /swap && say "swap $(swapon --noheadings --show=NAME)"
say "cgroups $(stat --file-system --format %T /sys/fs/cgroup), libvirtd $(systemctl is-active libvirtd.socket), AppArmor $(cat /sys/module/apparmor/parameters/enabled)"
lab doctor
lab up || /root/labctl -c /root/cluster.yaml diagnose
systemctl daemon-reload
dpkg --install /root/nothing.deb >/dev/null && say "installed $(dpkg-query --show --showformat '${db:Status-Status}' nothing)"
systemctl daemon-reexec
say "controllers: $(cat /sys/fs/cgroup/machine.slice/k8slab-small-*.scope/nodes.partition/cgroup.controllers)"
lab status
identity >/root/identity
lab autostart
systemctl daemon-reload
plug
`, `
awaitAutostart
lab status
identity | diff /root/identity - && say "the same cluster after power loss"
`, `
awaitAutostart
lab status
identity | diff /root/identity - && say "the same cluster after a reboot"
lab down
say "left: $(leftovers)"
`},
		wants: []string{
			"swap /swap", "cgroups cgroup2fs, libvirtd active, AppArmor Y", "doctor: exit status 0", "up: exit status 0", "installed installed",
			"controllers: cpuset cpu io memory pids", "status: exit status 0", "autostart: exit status 0",
			"autostart has exited", "the same cluster after power loss", "the same cluster after a reboot", "down: exit status 0", "left: ",
		},
	},
	{
		name: "Debian 13 with its generic kernel, zram, a clock that jumps, Docker started beside the lab", label: "debian13", suite: "trixie", kernel: "linux-image-amd64", packages: []string{"docker.io"},
		cluster: oneContainer,
		boots: []string{`
modprobe zram && echo 64M >/sys/block/zram0/disksize && mkswap -q /dev/zram0 && swapon /dev/zram0 && say "swap $(swapon --noheadings --show=NAME)"
say "br_netfilter loaded before: $(grep -c ^br_netfilter /proc/modules)"
lab doctor
jump 'proof: started' '1 hour' || /root/labctl -c /root/cluster.yaml diagnose
lab up
jump '' '1 hour ago'
lab up
systemctl --quiet unmask docker.socket docker.service && systemctl start docker
say "Docker: $(iptables --list-rules FORWARD | head -n 1)"
lab status
lab down
say "left: $(leftovers)"
`},
		wants: []string{"swap /dev/zram0", "br_netfilter loaded before: 0", "doctor: exit status 0", "a jump of 1 hour: up: exit status 0", "up: exit status 0", "a jump of 1 hour ago: up: exit status 0", "up: exit status 0", "Docker: -P FORWARD DROP", "status: exit status 0", "down: exit status 0", "left: "},
	},
	{
		name:  "Debian 12 with AppArmor, virtual machines of its libvirtd, a user in group libvirt",
		label: "debian12-vms", suite: "bookworm", kernel: "linux-image-cloud-amd64", cmdline: "apparmor=1 security=apparmor",
		packages: []string{"apparmor", "libvirt-daemon-driver-qemu", "qemu-system-x86", "uidmap"}, cluster: oneVM, disk: true,
		boots: []string{`
systemctl start libvirtd
before=$(objects)
cd /root/.cache/k8slab/disk-* && mkdir -p /root/.local/disks && qemu-img create -q -f qcow2 -b "$PWD/root.qcow2" -F qcow2 /root/.local/disks/hidden.qcow2
virsh --quiet define /root/hidden.xml && say "in a hidden directory: $(virsh start --paused hidden 2>&1 | grep --only-matching 'Permission denied' | head -n 1)"
virsh --quiet undefine hidden
useradd --create-home --groups libvirt me && cp --archive --link /root/.cache /root/labctl /root/cluster.yaml /home/me && chown me /home/me/.cache /home/me/.cache/k8slab && rm -rf /home/me/.cache/k8slab/labnode-*
paused me runuser --login me --command '/home/me/labctl up --until machines'
runuser --login me --command '/home/me/labctl down' && say "a user's lab is removed"
paused root /root/labctl -c /root/cluster.yaml up --until machines
lab down
labctl=/root/labctl; $labctl image list; $labctl image prune --unused-for 0s >/dev/null
test "$before" = "$(objects)" && say "everything as before"
`},
		wants: []string{
			"in a hidden directory: Permission denied", "me: libvirt-qemu, enforced", "a user's lab is removed", "root: libvirt-qemu, enforced", "down: exit status 0", "everything as before",
		},
	},
}

// hostFunctions are what boots are written with. Who cannot be waited for is a line on the console that is missing.
const hostFunctions = `#!/bin/sh
say() { echo "k8slab: $*"; }
lab() { /root/labctl -c /root/cluster.yaml "$@"; status=$?; say "$1: exit status $status"; return $status; }
plug() { sync; say "pull the plug"; sleep infinity; }
identity() {
    /root/labctl -c /root/cluster.yaml kubectl -- get node cp1 -o 'jsonpath={.metadata.uid} {.metadata.creationTimestamp}'
    /root/labctl -c /root/cluster.yaml etcd members -o json | grep -E '"(id|name)"'
}
# jump has the clock jump while up is where it says the words.
jump() {
    /root/labctl -c /root/cluster.yaml up >/root/up.log 2>&1 & up=$!
    until grep -q "$1" /root/up.log; do kill -0 $up 2>/dev/null || break; sleep 0.2; done
    date --set "$2" >/dev/null
    wait $up; status=$?
    cat /root/up.log; say "a jump of $2: up: exit status $status"; return $status
}
awaitAutostart() {
    unit=$(systemctl list-unit-files --no-legend 'k8slab-small-*.service' | cut -d ' ' -f 1)
    while systemctl show --property=SubState --value "$unit" | grep -qE 'start|running'; do sleep 1; done
    say "autostart has $(systemctl show --property=SubState --value "$unit")"
}
leftovers() {
    find /sys/fs/cgroup /etc/systemd/system /etc/modules-load.d /run/k8slab /root/.local/state/k8slab -name '*k8slab-*' 2>/dev/null
    ip netns
}
objects() {
    for kind in list net-list pool-list; do virsh --quiet $kind --all --name; done
    ls -A /var/lib/libvirt/images
    nft list ruleset | grep -E ' 10[.][34][0-9][.]'
}
# paused runs labctl in the background until libvirt has started the machine, whose processor takes an age here, and says whom QEMU runs as.
paused() {
    who=$1; shift
    "$@" & up=$!
    for _ in $(seq 600); do virsh --quiet list --name | grep -q small-cp1 && break; sleep 1; done
    virsh --quiet suspend small-cp1
    pid=$(cat /run/libvirt/qemu/small-cp1.pid)
    say "$who: $(ps -o user= -p "$pid"), $(grep -q enforce "/proc/$pid/attr/current" && echo enforced)"
    kill -INT $up; wait $up
}
`

// hiddenXML is a machine with its disk below a hidden directory, whose QEMU is root, so that only libvirt's AppArmor profile is in its way.
const hiddenXML = `<domain type="qemu"><name>hidden</name><memory unit="MiB">64</memory><os><type arch="x86_64">hvm</type></os>
<devices><disk type="file"><driver name="qemu" type="qcow2"/><source file="/root/.local/disks/hidden.qcow2"/><target dev="vda" bus="virtio"/></disk></devices>
<seclabel type="static" model="dac" relabel="yes"><label>+0:+0</label></seclabel></domain>
`

// hostFiles are a computer's own. The unit does what the boot's number says, and switches it off.
func (c computer) hostFiles() map[string]string {
	files := map[string]string{
		"etc/fstab": "/dev/vda / ext4 rw 0 1\n", "etc/hostname": "host\n",
		"root/cluster.yaml": c.cluster, "root/hidden.xml": hiddenXML, "root/functions": hostFunctions,
		"root/try": `#!/bin/sh
for word in $(cat /proc/cmdline); do case $word in k8slab.boot=*) n=${word#*=};; esac; done
. /root/functions
. "/root/boot$n"
systemctl poweroff
`,
		"etc/systemd/system/try.service": `[Unit]
After=multi-user.target
[Service]
Environment=HOME=/root
ExecStart=sh -c '/root/try 2>&1 | cat >/dev/ttyS0'
[Install]
WantedBy=multi-user.target
`,
	}
	for n, script := range c.boots {
		files[filepath.Join("root", "boot"+string(rune('1'+n)))] = script
	}
	return files
}
