package scenarios

import "k8slab/lab/symptom"

var staleCNI = Fault{
	Name:    "stale-cni",
	Story:   "an earlier pod network's configuration sorts first and wins (worker-cni-join-fix)",
	Roles:   everyRole,
	Symptom: symptom.CNIStaleConfig,
	Inject: script(`
		cat > /etc/cni/net.d/00-old.conflist <<'END'
{"cniVersion": "1.0.0", "name": "old", "plugins": [{"type": "bridge", "bridge": "old0", "ipam": {"type": "host-local", "subnet": "10.99.0.0/24"}}]}
END`),
	Restore: script(`rm -f /etc/cni/net.d/00-old.conflist*`),
	Join:    &Join{Cause: symptom.CNIStaleConfig},
}
