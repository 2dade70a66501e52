package join

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8slab/lab/kube"
)

// Identity is what tells a machine from every other.
type Identity struct {
	Machine string // systemd's machine-id
	UUID    string // the system UUID, "" for none; a container shows its computer's
}

// NamedMachine is a machine that whoever judges a name has in hand: one of the lab's.
type NamedMachine struct {
	Node     string
	Identity Identity
	Running  bool
}

// NameClaim is everything by which the right to a Node's name is judged.
type NameClaim struct {
	Joiner  Identity  // the machine that wants the name
	Node    kube.Node // what the cluster records under it
	Renewed time.Time // of its Lease, zero without one
	Now     time.Time
	Domains []NamedMachine // none, unless the caller runs machines itself
	UUIDs   bool           // system UUIDs count; not among containers, which show their computer's
}

// NameVerdict is whether the recorded Node may be deleted for the joiner.
type NameVerdict struct {
	Delete bool
	Reason string
	// Retry is when a refusal can turn out differently: once the Lease is too old for a machine that is alive. 0 when only a person can
	// settle it.
	Retry time.Duration
}

// AliveFor is how long after its Lease was renewed a Node's machine counts as alive: kubelet's leaseDurationSeconds.
const AliveFor = 40 * time.Second

// JudgeName decides who has the right to a Node's name. The same machine may take it again. Another that is alive keeps it, whatever kubeadm
// said; one is alive when it renewed the Lease lately, or when it is a machine of the lab that runs. Only a Node whose machine is neither
// may be deleted.
func JudgeName(c NameClaim) NameVerdict {
	joiner, recorded := Identity{Machine: c.Joiner.Machine}, Identity{Machine: c.Node.MachineID}
	if c.UUIDs {
		joiner.UUID, recorded.UUID = strings.ToLower(c.Joiner.UUID), strings.ToLower(c.Node.SystemUUID)
	}
	if joiner.Machine == "" {
		return NameVerdict{Reason: "the joining machine does not tell its machine-id, so whether the Node is its own is unknown"}
	}
	// A virtual machine that was made anew has its old machine-id and another UUID: whoever had that one may be alive.
	if recorded == joiner {
		return NameVerdict{Delete: true, Reason: "the Node is this machine's own, of an earlier join"}
	}
	who := fmt.Sprintf("the machine with machine-id %s", cmp.Or(recorded.Machine, "unknown"))
	if recorded.Machine == joiner.Machine {
		who = fmt.Sprintf("a machine with this one's machine-id and another system UUID, %s", cmp.Or(recorded.UUID, "unknown"))
	}
	for _, d := range c.Domains {
		if d.Running && d.Identity.Machine != joiner.Machine && (d.Node == c.Node.Name || d.Identity.Machine == recorded.Machine) {
			return NameVerdict{Reason: fmt.Sprintf("the Node %s belongs to %s of this lab (machine-id %s), which runs: give the joining machine another name",
				c.Node.Name, d.Node, d.Identity.Machine)}
		}
	}
	lease := "it has no Lease"
	if !c.Renewed.IsZero() {
		age := max(c.Now.Sub(c.Renewed), 0)
		if age < AliveFor {
			return NameVerdict{Retry: AliveFor - age, Reason: fmt.Sprintf("the Node %s belongs to %s, which is alive: it renewed its Lease %s ago; "+
				"give the joining machine another name, or turn the other one off", c.Node.Name, who, age.Round(time.Second))}
		}
		lease = fmt.Sprintf("its Lease was renewed %s ago", age.Round(time.Second))
	}
	return NameVerdict{Delete: true, Reason: fmt.Sprintf("the Node %s was that of %s, which is gone: %s, and no machine of the lab that runs is it",
		c.Node.Name, who, lease)}
}
