package cluster

import (
	"time"

	"k8slab/lab/host"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/machine"
	"k8slab/lab/session"
)

// claimOf is by what the right to the recorded Node's name is judged: of the machine with this machine-id, in a lab of these machines. idOf
// tells the machine-ids of the others.
func claimOf(s *session.Session, machines []machine.Machine, machineID string, recorded kube.Node, renewed time.Time, idOf func(node string) string) join.NameClaim {
	claim := join.NameClaim{
		Joiner: join.Identity{Machine: machineID}, Node: recorded, Renewed: renewed, Now: time.Now(), UUIDs: s.URI == host.VirtualMachines,
	}
	for _, m := range machines {
		if m.Node == recorded.Name { // the joiner itself, whatever machine-id somebody gave it
			claim.Joiner.UUID = m.ID
			continue
		}
		claim.Domains = append(claim.Domains, join.NamedMachine{
			Node: m.Node, Identity: join.Identity{Machine: idOf(m.Node), UUID: m.ID},
			Running: m.State == machine.Running || m.State == machine.Paused, // a paused one goes on where it was
		})
	}
	return claim
}
