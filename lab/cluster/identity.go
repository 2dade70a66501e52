package cluster

import (
	"time"

	"k8slab/lab/host"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/machine"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// claimOf is by what the right to the recorded Node's name is judged: of the machine with this machine-id, in a lab of these machines.
func claimOf(s *session.Session, machines []machine.Machine, machineID string, recorded kube.Node, renewed time.Time) join.NameClaim {
	c := join.NameClaim{
		Joiner: join.Identity{Machine: machineID}, Node: recorded, Renewed: renewed, Now: time.Now(), UUIDs: s.URI == host.VirtualMachines,
	}
	for _, m := range machines {
		if m.Node == recorded.Name { // the joiner itself, whatever machine-id somebody gave it
			c.Joiner.UUID = m.ID
			continue
		}
		c.Domains = append(c.Domains, join.NamedMachine{
			Node: m.Node, Identity: join.Identity{Machine: state.MachineID(s.ID, m.Node), UUID: m.ID},
			Running: m.State == machine.Running || m.State == machine.Paused, // a paused one goes on where it was
		})
	}
	return c
}
