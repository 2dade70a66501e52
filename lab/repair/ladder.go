package repair

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8slab/lab/symptom"
)

// Rung is how much of a node a repair replaces. Each replaces what the rung before it replaces, and more.
type Rung int

// The rungs, narrower first.
const (
	Component Rung = iota // the part that fails, in place
	Services              // containerd and kubelet are restarted
	Restart               // the machine is turned off and on
	Rejoin                // the node is reset and joins again
	Recreate              // the machine is deleted with its disk; a new one joins
)

// rungs have their name, what they would do and did, and how long after it the cluster may take to show that it helped. Each waits itself
// for what it starts.
var rungs = map[Rung]struct {
	name, do, did string
	settle        time.Duration
}{
	Services: {"services", "restart containerd and kubelet", "restarted containerd and kubelet", 30 * time.Second},
	Restart:  {"restart", "restart its machine", "restarted its machine", time.Minute},
	Rejoin:   {"rejoin", "reset it and join it again", "reset it and joined it again", time.Minute},
	Recreate: {"recreate", "delete its machine with the disk and join a new one", "deleted its machine with the disk and joined a new one",
		time.Minute},
}

func (g Rung) String() string { return rungs[g].name }

// Limits are the rungs that a person may name as the highest that a repair takes alone.
var Limits = []Rung{Restart, Rejoin, Recreate}

// ParseRung reads one of Limits.
func ParseRung(text string) (Rung, error) {
	var names []string
	for _, g := range Limits {
		if g.String() == text {
			return g, nil
		}
		names = append(names, g.String())
	}
	return 0, fmt.Errorf("%q is none of %s", text, strings.Join(names, ", "))
}

// lowest are the narrowest rungs that can take a cause away, for causes that need more than Services. Whoever set a packet filter, a mount
// or a proxy on a machine may want it, so only a new machine, which somebody must ask for, comes without it.
var lowest = map[symptom.ID]Rung{
	symptom.DuplicateMachineIdentity: Restart, // it gets its machine-id when it starts

	symptom.EtcdDataCorrupt:      Rejoin,
	symptom.EtcdMemberMismatch:   Rejoin,
	symptom.X509UnknownAuthority: Rejoin,
	symptom.CACertHashMismatch:   Rejoin,
	symptom.CertificateExpired:   Rejoin,

	symptom.FirewallBlocked:           Recreate,
	symptom.ProxyInterference:         Recreate,
	symptom.DNSResolutionFailure:      Recreate,
	symptom.PortInUse:                 Recreate,
	symptom.DiskFull:                  Recreate,
	symptom.ReadOnlyFilesystem:        Recreate,
	symptom.ImageFilesystemZero:       Recreate,
	symptom.KubeBinariesMissing:       Recreate,
	symptom.HostToolsMissing:          Recreate,
	symptom.RuntimeVersionUnsupported: Recreate,
	symptom.HostnameInvalid:           Recreate,
	symptom.AdvertiseAddressWrong:     Recreate,
}

// outside are causes that no rung takes away: they are not in the machine, or a person decides.
var outside = []symptom.ID{
	kubeadmRunning, symptom.MachineNotRunning, symptom.MachinePaused, symptom.EtcdNoQuorum, symptom.EtcdSlow, symptom.ClockSkew,
	symptom.InsufficientResources, symptom.OutOfMemory, symptom.NodeNameExists, symptom.VersionSkew,
	symptom.CgroupControllerMissing, symptom.CgroupV1Unsupported,
}

// ailing is a node that fails, as the choice of a rung sees it.
type ailing struct {
	symptoms []symptom.ID
	joined   bool // kubeadm finished on it
	answers  bool // labnode does
	runs     bool // its machine is on
	taken    Rung // the highest rung that was taken
}

// next is the narrowest rung that was not taken and can help; none, if no rung can.
func (a ailing) next() (Rung, bool) {
	if !a.runs || len(a.symptoms) == 0 || slices.ContainsFunc(a.symptoms, func(id symptom.ID) bool { return slices.Contains(outside, id) }) {
		return 0, false
	}
	from := max(Services, a.taken+1)
	for _, id := range a.symptoms {
		from = max(from, lowest[id])
	}
	switch {
	case !a.answers && from < Restart:
		from = Restart
	case !a.answers && from == Rejoin, a.answers && !a.joined: // a join has just failed on it
		from = max(from, Recreate)
	}
	return from, from <= Recreate
}

// rest are the rungs that would be taken one after another, up to the highest that is allowed.
func (a ailing) rest(upTo Rung) (all []Rung) {
	for g, ok := a.next(); ok && g <= upTo; g, ok = a.next() {
		all = append(all, g)
		a.taken = g
	}
	return all
}

// would is what the rungs would do.
func would(all []Rung) string {
	var text []string
	for _, g := range all {
		text = append(text, rungs[g].do)
	}
	return strings.Join(text, "; if it still fails, ")
}

// did is what the rungs did.
func did(all []Rung) string {
	var text []string
	for _, g := range all {
		text = append(text, rungs[g].did)
	}
	return strings.Join(text, ", then ")
}
