package cluster

import (
	"time"

	"k8slab/config"
	"k8slab/lab/host"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/machine"
	"k8slab/lab/state"
)

// machineID is the machine-id of a node's machine: labctl gave it to a lab's; another's is "" where the machine did not answer.
func (c *Run) machineID(name string) string {
	if c.Cluster.OverSSH() {
		return c.Fact(config.Node{Name: name}).MachineID
	}
	return state.MachineID(c.ID, name)
}

// claimOf is by what the right to the recorded Node's name is judged: of the machine with this machine-id, in a lab of these machines.
func (c *Run) claimOf(machines []machine.Machine, machineID string, recorded kube.Node, renewed time.Time) join.NameClaim {
	claim := join.NameClaim{
		Joiner: join.Identity{Machine: machineID}, Node: recorded, Renewed: renewed, Now: time.Now(), UUIDs: c.URI == host.VirtualMachines,
	}
	for _, m := range machines {
		if m.Node == recorded.Name { // the joiner itself, whatever machine-id somebody gave it
			claim.Joiner.UUID = m.ID
			continue
		}
		claim.Domains = append(claim.Domains, join.NamedMachine{
			Node: m.Node, Identity: join.Identity{Machine: c.machineID(m.Node), UUID: m.ID},
			Running: m.State == machine.Running || m.State == machine.Paused, // a paused one goes on where it was
		})
	}
	return claim
}
