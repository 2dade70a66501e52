package host

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"go/version"
	"net/netip"
	"runtime"
	"slices"
	"strings"
)

// kind says whether the nodes are virtual machines or containers, and the reason if labctl chose.
func (c computer) kind(_ context.Context, p Plan) Check {
	daemon := "in this computer's libvirt"
	if p.Own {
		daemon = "in a libvirt of the lab's own"
	}
	if uri, why := kvm(c.root).choose(); uri == p.URI {
		return fine(daemon + ", " + why)
	}
	return fine(daemon + ", " + p.URI + " as cluster.yaml asks")
}

func (c computer) privileges(_ context.Context, p Plan) Check {
	if c.user == 0 {
		return fine("this is root")
	}
	seen := fmt.Sprintf("this is user %d", c.user)
	if p.URI == Containers {
		return Check{Result: Fails, Seen: seen, Why: "containers share this computer's kernel, so only root may run them", Do: "sudo labctl up"}
	}
	if !p.Own {
		return fine(seen + ", whom libvirt serves")
	}
	return Check{Result: Fails, Seen: seen + ", and no libvirt daemon answers to it", Why: "without one of its own, a lab uses this computer's",
		Do: "sudo usermod --append --groups libvirt \"$(id -un)\", and log in again; or sudo labctl up"}
}

func (c computer) packages(ctx context.Context, p Plan) Check {
	const why = "libvirt runs the machines, and other programs make their image and disks"
	wanted := append(slices.Clone(packages[p.URI]), p.Packages...)
	if _, err := c.look("dpkg-query"); err != nil {
		if err := missingByHand(c.look, p.URI); err != nil {
			seen, do, _ := strings.Cut(err.Error(), "; next: ")
			return Check{Result: Fails, Seen: seen, Why: why, Do: do}
		}
		return fine("this computer has no dpkg; the programs are there")
	}
	missing, err := missingPackages(ctx, wanted)
	switch {
	case err != nil:
		return Check{Result: Fails, Seen: err.Error(), Why: why, Do: "dpkg-query --show"}
	case len(missing) == 0:
		return fine(fmt.Sprintf("all %d are installed", len(wanted)))
	case c.user != 0:
		return Check{Result: Fails, Seen: "not installed: " + strings.Join(missing, " "), Why: why, Do: "sudo labctl host install"}
	}
	return Check{Result: Mends, Seen: "not installed: " + strings.Join(missing, " "), Why: why}
}

// golang looks for the go command, which builds the image.
func (c computer) golang(ctx context.Context, p Plan) Check {
	if !p.Build {
		return fine("not needed: Kubernetes is compiled")
	}
	const why = "the node image has Kubernetes in it, which is compiled once"
	if _, err := c.look("go"); err != nil {
		return Check{Result: Fails, Seen: "there is no go command in PATH", Why: why, Do: "install Go: https://go.dev/dl"}
	}
	out, err := c.run(ctx, "go", "env", "GOVERSION")
	if err != nil {
		return Check{Result: Fails, Seen: "go env GOVERSION: " + err.Error(), Why: why, Do: "go version"}
	}
	// "go1.26.1 X:nodwarf5" of a build with an experiment.
	has, needed := cmp.Or(strings.Fields(out)...), cmp.Or(strings.Fields(runtime.Version())...)
	if version.Compare(has, needed) < 0 {
		return Check{Result: Mends, Seen: fmt.Sprintf("%s, older than %s; the build fetches that one", has, needed), Why: why}
	}
	return fine(has)
}

func (c computer) hierarchy(_ context.Context, p Plan) Check {
	seen := "cgroup " + cgroups(c.root)
	missing := missingControllers(c.root)
	if p.URI != Containers || len(missing) == 0 {
		return fine(seen)
	}
	return Check{Result: Fails, Seen: seen + " without " + strings.Join(missing, ", "), Why: "libvirt and kubelet limit containers by them",
		Do: "switch them on at the kernel's command line (cgroup_enable=memory), or boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1)"}
}

func (c computer) modules(_ context.Context, p Plan) Check {
	if p.URI != Containers {
		return fine("not needed: virtual machines have a kernel of their own")
	}
	const why = "container nodes share this computer's kernel, and cannot load modules into it"
	loadable, hopeless, _ := c.says().MissingModules()
	if len(hopeless) > 0 {
		return Check{Result: Fails, Seen: "this kernel has no module " + strings.Join(hopeless, ", "), Why: why,
			Do: "reboot, if a newer kernel was installed since the last boot; else install its modules (Ubuntu: linux-modules-extra-" +
				c.says().Release() + ")"}
	}
	if len(loadable) > 0 {
		return Check{Result: Mends, Seen: "not loaded: " + strings.Join(loadable, ", "), Why: why}
	}
	return fine("loaded or compiled in")
}

func (c computer) inotify(_ context.Context, p Plan) Check {
	if p.URI != Containers {
		return fine("not needed: virtual machines have limits of their own")
	}
	const why = "all container nodes share these limits"
	var low []string
	for _, limit := range kernelLimits {
		now, err := limit.value(c.root)
		if err != nil {
			return Check{Result: Fails, Seen: err.Error(), Why: why, Do: "sysctl " + limit.name}
		}
		if now < limit.enough {
			low = append(low, fmt.Sprintf("%s is %d, fewer than %d", limit.name, now, limit.enough))
		}
	}
	if len(low) > 0 {
		return Check{Result: Mends, Seen: strings.Join(low, "; "), Why: why}
	}
	return fine("enough for a dozen nodes")
}

func (c computer) swap(_ context.Context, p Plan) Check {
	areas := c.says().SwapAreas()
	switch {
	case len(areas) == 0:
		return fine("off")
	case p.URI == Containers:
		return fine("on (" + strings.Join(areas, ", ") + "): kubelet of the nodes is told to live with it")
	}
	return fine("on (" + strings.Join(areas, ", ") + "): no matter to virtual machines")
}

func (c computer) processor(_ context.Context, p Plan) Check {
	able := kvm(c.root)
	switch {
	case p.URI == VirtualMachines && !able.OK:
		return Check{Result: Warn, Seen: able.Why, Why: "virtual machines are emulated, about ten times slower", Do: "libvirt: {uri: lxc:///system} in cluster.yaml, for containers"}
	case able.OK:
		return fine(able.Why)
	}
	return fine("no hardware virtualization; containers need none")
}

// apparmor warns of libvirt's profile of virtual machines, which denies them every file below a hidden directory of a home.
func (c computer) apparmor(_ context.Context, p Plan) Check {
	on := strings.HasPrefix(c.says().Line("/sys/module/apparmor/parameters/enabled"), "Y")
	switch {
	case !on:
		return fine("off")
	case p.URI != VirtualMachines, p.Own:
		return fine("on; libvirt does not confine these machines")
	}
	return fine("on, and disks are in a storage pool, where libvirt's profile allows them")
}

// network looks for what else uses the machines' addresses.
func (c computer) network(_ context.Context, p Plan) Check {
	if p.Own && !p.Uplink || !p.Network.IsValid() {
		return fine("the lab has a network namespace of its own, or its network already")
	}
	for _, r := range c.routes() {
		switch {
		case !r.to.Overlaps(p.Network):
		case r.to.Bits() >= p.Network.Bits():
			return Check{Result: Fails, Seen: fmt.Sprintf("network.cidr %s overlaps with %s at %s", p.Network, r.to, r.device),
				Why: "this computer reaches other machines there", Do: "remove network.cidr, and the addresses in it, from cluster.yaml, so that labctl chooses free ones"}
		default:
			return Check{Result: Warn, Seen: fmt.Sprintf("network.cidr %s is a part of %s at %s", p.Network, r.to, r.device),
				Why: "while the lab is up, this computer does not reach machines of that network that have these addresses", Do: "choose another network.cidr in cluster.yaml, if you need them"}
		}
	}
	return fine(p.Network.String() + " is free")
}

type route struct {
	to     netip.Prefix
	device string
}

// Routes are the networks to which this computer has a route, without the default route.
func Routes() []netip.Prefix {
	var all []netip.Prefix
	for _, r := range (computer{computerKernel: thisKernel}).routes() {
		all = append(all, r.to)
	}
	return all
}

// routes are this computer's, but the default: device, destination, gateway, flags, two counters, metric and mask, addresses in hexadecimal
// with their first byte last (proc_net_route(5)).
func (c computer) routes() []route {
	var all []route
	for line := range strings.Lines(c.says().Line("/proc/thread-self/net/route")) {
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		to, err := hex.DecodeString(f[1])
		mask, maskErr := hex.DecodeString(f[7])
		if err != nil || maskErr != nil || len(to) != 4 || len(mask) != 4 {
			continue // the heading
		}
		slices.Reverse(to)
		bits := 0
		for _, b := range mask {
			for ; b != 0; b &= b - 1 {
				bits++
			}
		}
		if bits > 0 {
			all = append(all, route{netip.PrefixFrom(netip.AddrFrom4([4]byte(to)), bits), f[0]})
		}
	}
	return all
}

// forwarding looks for a firewall that drops packets from one machine to another, such as Docker's, which also filters frames on a bridge.
func (c computer) forwarding(ctx context.Context, p Plan) Check {
	if p.Own {
		return fine("the lab has a network namespace of its own")
	}
	const why = "nodes may not reach each other"
	if _, err := c.look("iptables"); err != nil {
		return fine("not dropped: there is no iptables")
	}
	rules, err := c.run(ctx, "iptables", "--list-rules", "FORWARD")
	if err != nil {
		return Check{Result: Warn, Seen: "iptables' chain FORWARD could not be read: " + err.Error(), Why: "if it drops, " + why, Do: "sudo iptables --list-rules FORWARD"}
	}
	if !strings.Contains(rules, "-P FORWARD DROP") {
		return fine("not dropped")
	}
	if c.says().Line("/proc/sys/net/bridge/bridge-nf-call-iptables") != "1" {
		return fine("dropped, but not between machines on one bridge")
	}
	chain := "FORWARD"
	if strings.Contains(rules, "-j DOCKER-USER") {
		chain = "DOCKER-USER" // Docker inserts its own rules before others in FORWARD
	}
	return Check{Result: Warn, Seen: "iptables' chain FORWARD drops (Docker does so), and sees frames between machines on one bridge", Why: why,
		Do: "sudo iptables --insert " + chain + " --in-interface k8slab+ --out-interface k8slab+ --jump ACCEPT"}
}

// firewall looks for a firewall that blocks the machines' access to this computer's DHCP and DNS.
func (c computer) firewall(_ context.Context, p Plan) Check {
	if p.Own || !strings.Contains(c.says().Line("/etc/ufw/ufw.conf"), "ENABLED=yes") {
		return fine("none that keeps machines from this computer")
	}
	return Check{Result: Warn, Seen: "ufw is on", Why: "machines may not ask this computer for names, nor Vagrant's for addresses",
		Do: "sudo ufw allow from " + p.Network.String()}
}
