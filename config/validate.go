package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// validate checks the values of a decoded cluster. Fields that already have a
// problem are left alone, and so are the checks that rely on them.
func (d *document) validate(c *Cluster) {
	d.checkLabel("name", c.Name, 20)
	d.checkMachines(c)
	d.checkVersion(c.Kubernetes, c.OverSSH(), c.Image.From)
	switch {
	case !d.trusted("machines"): // what may be there is not known
	case c.OverSSH():
		d.checkExistingNetwork(c.Network)
	default:
		d.checkSource(c.Kubernetes.Source)
		d.checkPrograms(c.Kubernetes, c.Components(), c.Image.From)
		d.checkRelease(c.Kubernetes.Release)
		d.checkBase(c.Image.Base)
		d.checkFrom(c.Image)
		d.checkDistribution(c.Image)
		d.checkURI(c.Libvirt.URI)
		d.checkPool(c.Libvirt.Pool)
		d.checkNetwork(c)
		d.checkRegistries(c.Registries, c.Addons)
		d.checkResources(c.Resources)
		d.checkOptions(c)
		d.checkAddons(c.Addons)
	}
	d.checkTuning(c.Tuning)
	d.checkOnboarding(c.Onboarding)
	d.checkNodes(c)
}

// checkLabel keeps everything with a meaning to a shell, a path or XML out of
// names: they end up in all three.
func (d *document) checkLabel(field, name string, limit int) {
	if !d.trusted(field) {
		return
	}
	if !label.MatchString(name) {
		d.report(field, "%s is not a valid name: use lowercase letters, digits and inner dashes, at most %d characters", quote(name), limit)
	} else if len(name) > limit {
		d.report(field, "%s has %d characters; use at most %d", quote(name), len(name), limit)
	}
}

var registryPath = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)

func (d *document) checkRelease(r Release) {
	const server, images = "kubernetes.release.server", "kubernetes.release.images"
	if why := urlProblem(r.Server); why != "" && d.trusted(server) {
		d.report(server, "%s; use the URL of a release server such as https://mirror.example/release", why)
	}
	if d.trusted(images) && !registryPath.MatchString(r.Images) {
		d.report(images, "%s is not a registry; use HOST, HOST:PORT or HOST/PATH, without https://", quote(r.Images))
	}
}

var imageReference = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+@sha256:[0-9a-f]{64}$`)

func (d *document) checkFrom(image Image) {
	const field = "image.from"
	switch {
	case image.From == "" || !d.trusted(field):
	case !imageReference.MatchString(image.From):
		d.report(field, "%s is not the reference of an image by its digest; use HOST/NAME@sha256:HEX, as labctl image push and pull print it", quote(image.From))
	case image.Base != "":
		d.report(field, "image.base says to use another image; keep one of them")
	}
}

func (d *document) checkBase(base string) {
	const field = "image.base"
	why := ""
	switch {
	case base == "": // the lab's own image
	case strings.HasPrefix(base, "/"):
		why = plainPathProblem(base)
	default:
		why = "is not an absolute path"
	}
	if why != "" && d.trusted(field) {
		d.report(field, "%s; use the absolute path of a qcow2 image such as /srv/images/debian-12-generic-amd64.qcow2", why)
	}
}

func (d *document) checkDistribution(image Image) {
	const field = "image.distribution"
	known := []string{Bookworm, Trixie}
	switch {
	case image.Distribution == "" || !d.trusted(field):
	case !slices.Contains(known, image.Distribution):
		d.report(field, "%s is not known%s; use bookworm or trixie", quote(image.Distribution), DidYouMean(image.Distribution, known))
	case image.From != "":
		d.report(field, "the image that image.from fetches has a distribution already; keep one of them")
	}
}

func (d *document) checkURI(uri string) {
	const field = "libvirt.uri"
	if why := uriProblem(uri); why != "" && d.trusted(field) {
		d.report(field, "%s %s; use auto, qemu:///system or lxc:///system", quote(uri), why)
	}
}

var poolName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$`)

func (d *document) checkPool(name string) {
	const field = "libvirt.pool"
	if d.trusted(field) && !poolName.MatchString(name) {
		d.report(field, "%s is not a name for a storage pool: use at most 64 letters and digits, and inside them also . _ -", quote(name))
	}
}

// uriProblem says why a URI is refused, or "" when it is accepted.
func uriProblem(uri string) string {
	switch uri {
	case "auto", "qemu:///system", "lxc:///system":
		return ""
	}
	u, err := url.Parse(uri)
	if err != nil || u.Scheme == "" {
		return "is not a libvirt URI that this version knows"
	}
	_, transport, hasTransport := strings.Cut(u.Scheme, "+")
	switch {
	case hasTransport:
		return fmt.Sprintf("has the transport +%s: remote libvirt is out of scope in this version, disks and networks are made on this host", transport)
	case u.Host != "" || u.User != nil:
		return fmt.Sprintf("has the host part %s: remote libvirt is out of scope in this version, disks and networks are made on this host", quote(u.Host))
	case u.Path == "/session":
		return "is a session libvirt, out of scope in this version: it may not create the network the nodes need"
	case u.RawQuery != "" || u.ForceQuery:
		return "has parameters, which are out of scope in this version"
	}
	return "is not a libvirt URI that this version knows"
}

// number is an integer field and the values accepted for it.
type number struct {
	field           string
	value, min, max int
	unit            string
}

func (d *document) checkNumbers(numbers []number) {
	for _, n := range numbers {
		if d.trusted(n.field) && (n.value < n.min || n.value > n.max) {
			d.report(n.field, "%d is out of range; use %d to %d %s", n.value, n.min, n.max, n.unit)
		}
	}
}

// checkResources refuses what kubeadm refuses (a control plane under 1700 MiB)
// or what cannot hold the images. The upper bounds only catch a wrong unit.
func (d *document) checkResources(r Resources) {
	const cp, w = "resources.control_plane", "resources.worker"
	d.checkNumbers([]number{
		{cp + ".cpus", r.ControlPlane.CPUs, 1, 256, "CPUs"},
		{cp + ".memory", r.ControlPlane.Memory, 1700, 1 << 20, "MiB"},
		{cp + ".disk", r.ControlPlane.Disk, 5, 4096, "GiB"},
		{w + ".cpus", r.Worker.CPUs, 1, 256, "CPUs"},
		{w + ".memory", r.Worker.Memory, 1024, 1 << 20, "MiB"},
		{w + ".disk", r.Worker.Disk, 5, 4096, "GiB"},
	})
}

func (d *document) checkTuning(t Tuning) {
	const (
		wait     = "tuning.join_max_wait_seconds"
		sleep    = "tuning.cp_join_retry_sleep_seconds"
		maxSleep = "tuning.cp_join_retry_max_sleep_seconds"
		maxTotal = "tuning.cp_join_retry_max_total_seconds"
		day      = 24 * 60 * 60
	)
	d.checkNumbers([]number{
		{wait, t.JoinMaxWaitSeconds, 1, day, "seconds"},
		{"tuning.cp_join_retry_attempts", t.CPJoinRetryAttempts, 1, 100, "attempts"},
		{sleep, t.CPJoinRetrySleepSeconds, 1, day, "seconds"},
		{maxSleep, t.CPJoinRetryMaxSleepSeconds, 1, day, "seconds"},
		{maxTotal, t.CPJoinRetryMaxTotalSeconds, 1, day, "seconds"},
		{"tuning.cp_stabilize_timeout_seconds", t.CPStabilizeTimeoutSeconds, 1, day, "seconds"},
		{"tuning.worker_join_timeout_seconds", t.WorkerJoinTimeoutSeconds, 1, day, "seconds"},
		{"tuning.worker_join_retry_attempts", t.WorkerJoinRetryAttempts, 1, 100, "attempts"},
	})
	if stagger := "tuning.stagger"; t.Stagger != StaggerJoin && t.Stagger != StaggerMachine && d.trusted(stagger) {
		d.report(stagger, "%s is not known; use join or machine", quote(string(t.Stagger)))
	}
	d.checkNotBelow(maxSleep, t.CPJoinRetryMaxSleepSeconds, sleep, t.CPJoinRetrySleepSeconds)
	d.checkNotBelow(maxTotal, t.CPJoinRetryMaxTotalSeconds, wait, t.JoinMaxWaitSeconds)
}

func (d *document) checkNotBelow(field string, value int, floor string, min int) {
	if d.trusted(field, floor) && value < min {
		d.report(field, "%d%s is below %s; use at least %d seconds", value, d.ifDefault(field), floor, min)
	}
}

func (d *document) checkAddons(names []string) {
	seen := map[string]string{}
	for i, name := range names {
		at := fmt.Sprintf("addons[%d]", i)
		if !d.trusted(at) {
			continue
		}
		if !slices.Contains(AddonNames, name) {
			near := ""
			if n := Nearest(name, AddonNames); n != "" {
				near = "; did you mean " + n + "?"
			}
			d.report(at, "%s is not an add-on%s; use %s", quote(name), near, strings.Join(AddonNames, ", "))
		} else if first, ok := seen[name]; ok {
			d.report(at, "%s is already %s on line %d; keep one of them", quote(name), first, d.line(first))
		} else {
			seen[name] = at
		}
	}
}

// checkNodes checks each node by itself and against the ones before it.
func (d *document) checkNodes(c *Cluster) {
	names, addrs := map[string]int{}, map[netip.Addr]int{}
	for i, n := range c.Nodes {
		at := fmt.Sprintf("nodes[%d]", i)
		d.checkNodeName(at+".name", n.Name, c)
		if first, ok := names[n.Name]; ok && d.trusted(at+".name") {
			other := fmt.Sprintf("nodes[%d].name", first)
			d.report(at+".name", "%s is already %s on line %d; give each node its own name", quote(n.Name), other, d.line(other))
		} else if !ok {
			names[n.Name] = i
		}
		d.checkRole(at+".role", n.Role)
		d.checkAddress(at+".ip", n, c)
		if first, ok := addrs[n.IP]; ok && d.trusted(at+".ip") {
			other := fmt.Sprintf("nodes[%d].ip", first)
			d.report(at+".ip", "%s is already %s on line %d; give each node its own address", n.IP, other, d.line(other))
		} else if !ok {
			addrs[n.IP] = i
		}
	}
	d.checkControlPlanes(c)
}

func (d *document) checkNodeName(field, name string, c *Cluster) {
	if !d.trusted(field) {
		return
	}
	if name == "" {
		d.report(field, "missing; give the node a name such as cp1")
		return
	}
	if c.OverSSH() {
		d.checkExistingName(field, name)
		return
	}
	d.checkLabel(field, name, 63)
}

func (d *document) checkRole(field string, r Role) {
	switch {
	case !d.trusted(field) || r == ControlPlane || r == Worker:
	case r == "":
		d.report(field, "missing; use %s or %s", ControlPlane, Worker)
	default:
		d.report(field, "%s is not a role; use %s or %s", quote(string(r)), ControlPlane, Worker)
	}
}

// checkControlPlanes runs last: its reports make all of nodes untrusted.
func (d *document) checkControlPlanes(c *Cluster) {
	firstOnboard := -1
	for i, n := range c.Nodes {
		at := fmt.Sprintf("nodes[%d]", i)
		if !d.trusted(at, at+".role", at+".onboard") {
			return // it may be the control plane that seems to be missing
		}
		if n.Role == ControlPlane && firstOnboard < 0 {
			firstOnboard = i
		}
	}
	count := len(c.ControlPlanes())
	switch {
	case !d.trusted("nodes"):
	case count == 0 && firstOnboard >= 0:
		d.report(fmt.Sprintf("nodes[%d].onboard", firstOnboard), "true on the only control plane leaves none to start the cluster with; use false, or add a control plane without it")
	case count == 0:
		d.report("nodes", "no control plane; give at least one node with role: %s", ControlPlane)
	case count%2 == 0:
		d.warn("nodes", "%d control planes are no safer than %d, because etcd needs a majority; use %d or %d", count, count-1, count-1, count+1)
	case count > 7:
		d.warn("nodes", "%d control planes make every write to etcd slower; use at most 7", count)
	}
}
