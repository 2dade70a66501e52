package diagnose

import "k8slab/lab/diagnose/fact"

// In a large cluster, a worker dials its control planes and some of the other workers: all would be a quarter of a million ways among 500.
const (
	dialsAll     = 32 // most peers of which every one is dialled
	dialledPeers = 16 // workers that a worker dials in a larger cluster, each dialled by as many
)

// peersOf are the peers that the machine dials: all, or for a worker in a large cluster the control planes and the workers that follow it.
func (s Sources) peersOf(m Machine) []fact.Peer {
	var others, workers []fact.Peer
	at := 0 // how many workers come before it
	for _, p := range s.Peers {
		switch {
		case p.Name == m.Name:
			at = len(workers)
		case p.Role == roleControlPlane:
			others = append(others, p)
		default:
			workers = append(workers, p)
		}
	}
	if m.Role == roleControlPlane || len(s.Peers)-1 <= dialsAll {
		return append(others, workers...)
	}
	for i := range min(dialledPeers, len(workers)) {
		others = append(others, workers[(at+i)%len(workers)])
	}
	return others
}
