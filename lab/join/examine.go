package join

import "context"

// Examine makes the checks that mean something on any machine, member or not: of the host, the runtime, kubelet's unit and the way to the
// target's endpoint. On a machine that has joined it adds those that RepairMember can repair. It changes nothing. The result is sorted as
// Preflight's.
func Examine(ctx context.Context, m Machine, t Target) []Check {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	joined := m.Exists(kubeletConf)
	list := probes(func(pr probe) bool {
		return pr.scope == anywhere && (pr.when == nil || pr.when(t)) || joined && pr.id == CheckKubeletConfig // Validate tells of the service
	})
	checks := newPreflight(ctx, m, t).all(ctx, list, nil)
	if joined {
		onMember(checks)
		rank(checks)
	}
	return checks
}
