package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8slab/lab/host"
	"k8slab/lab/kube"
	"k8slab/lab/machine"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// machineIdentity identifies a machine.
type machineIdentity struct {
	Machine string // systemd's machine-id
	UUID    string // the system UUID of a virtual machine; "" for a container, which shows this computer's
}

// labDomain is one of the lab's machines.
type labDomain struct {
	Node     string
	Identity machineIdentity
	Running  bool
}

// nameClaim is what decides whether a joining machine may take a Node's name.
type nameClaim struct {
	Joiner  machineIdentity // the machine that wants the name
	Node    kube.Node       // the Node that has it
	Renewed time.Time       // of its Lease, zero without one
	Now     time.Time
	Domains []labDomain
	Virtual bool // virtual machines: their system UUIDs differ
}

// nameVerdict is whether the recorded Node may be deleted for the joiner.
type nameVerdict struct {
	Delete bool
	Reason string
	// Retry is how long after a refusal to ask again: when the Lease has run out. 0 when only a person can settle it.
	Retry time.Duration
}

// aliveFor is how long after its Lease was renewed a Node's machine counts as alive: kubelet's leaseDurationSeconds.
const aliveFor = 40 * time.Second

// judgeName decides whether the joiner may take the Node's name. It may if it is the Node's own machine, or if that machine is gone. A
// machine that renewed its Lease lately, or that runs in this lab, is not gone, whatever kubeadm says.
func judgeName(c nameClaim) nameVerdict {
	recorded := machineIdentity{Machine: c.Node.MachineID}
	if c.Virtual {
		recorded.UUID = strings.ToLower(c.Node.SystemUUID)
	} else {
		c.Joiner.UUID = ""
	}
	if c.Joiner.Machine == "" {
		return nameVerdict{Reason: "the joining machine does not tell its machine-id, so whether the Node is its own is unknown"}
	}
	if c.sameMachine(recorded) {
		return nameVerdict{Delete: true, Reason: "the Node is this machine's own, of an earlier join"}
	}
	who := fmt.Sprintf("the machine with machine-id %s", orUnknown(recorded.Machine))
	if recorded.Machine == c.Joiner.Machine {
		who = fmt.Sprintf("a machine with this one's machine-id and another system UUID, %s", orUnknown(recorded.UUID))
	}
	for _, d := range c.Domains {
		if d.Running && d.Identity.Machine != c.Joiner.Machine && (d.Node == c.Node.Name || d.Identity.Machine == recorded.Machine) {
			return nameVerdict{Reason: fmt.Sprintf("the Node %s belongs to %s of this lab (machine-id %s), which runs: give the joining machine another name",
				c.Node.Name, d.Node, d.Identity.Machine)}
		}
	}
	if age := c.Now.Sub(c.Renewed); !c.Renewed.IsZero() && age < aliveFor {
		return nameVerdict{
			Reason: fmt.Sprintf("the Node %s belongs to %s, which is alive: it renewed its Lease %s ago; give the joining machine another name, or turn the other one off",
				c.Node.Name, who, max(age, 0).Round(time.Second)),
			Retry: aliveFor - max(age, 0),
		}
	}
	return nameVerdict{Delete: true, Reason: fmt.Sprintf("the Node %s was that of %s, which is gone: %s, and no machine of the lab that runs is it",
		c.Node.Name, who, leaseAge(c.Renewed, c.Now))}
}

// sameMachine tells whether the recorded machine is the joiner. A virtual machine that was made again keeps its machine-id, but its UUID is
// new. It then counts as another machine, and judgeName asks whether the old one is alive.
func (c nameClaim) sameMachine(recorded machineIdentity) bool {
	return recorded.Machine == c.Joiner.Machine && recorded.UUID == strings.ToLower(c.Joiner.UUID)
}

func leaseAge(renewed, now time.Time) string {
	if renewed.IsZero() {
		return "it has no Lease"
	}
	return fmt.Sprintf("its Lease was renewed %s ago", now.Sub(renewed).Round(time.Second))
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// leases reads when a Node's Lease was renewed.
type leases interface {
	NodeLeaseRenewed(ctx context.Context, name string) (time.Time, error)
}

// domains lists the lab's machines.
type domains interface {
	List(ctx context.Context) ([]machine.Machine, error)
}

// claimOf collects the claim of the joiner.
func claimOf(ctx context.Context, s *session.Session, api leases, machines domains, joiner machineIdentity, recorded kube.Node) (nameClaim, error) {
	c := nameClaim{Joiner: joiner, Node: recorded, Virtual: s.URI == host.VirtualMachines}
	var err error
	if c.Renewed, err = api.NodeLeaseRenewed(ctx, recorded.Name); err != nil {
		return c, err
	}
	c.Now = time.Now()
	list, err := machines.List(ctx)
	if err != nil {
		return c, err
	}
	for _, m := range list {
		c.Domains = append(c.Domains, labDomain{
			Node: m.Node, Identity: machineIdentity{Machine: state.MachineID(s.ID, m.Node), UUID: m.ID},
			Running: m.State == machine.Running || m.State == machine.Paused, // it may be resumed
		})
	}
	return c, nil
}
