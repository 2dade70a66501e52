package scenarios

import "k8slab/lab/symptom"

var cniConfigMoved = Fault{
	Name:    "cni-config-moved",
	Story:   "the CNI configuration was moved away and back, and containerd does not notice a file that is moved in (containerd#11715)",
	Roles:   everyRole,
	Symptom: symptom.CNINotInitialized,
	// On the same file system, because a move from another one is a copy, which containerd notices.
	Inject: script(`
		rm -rf /etc/cni/net.fault
		mkdir /etc/cni/net.fault
		mv /etc/cni/net.d/*.conflist /etc/cni/net.fault/
		for _ in $(seq 100); do
			! crictl --timeout 3s info | grep -q 'cni plugin not initialized' || break
			sleep 0.1
		done
		mv /etc/cni/net.fault/* /etc/cni/net.d/
		rmdir /etc/cni/net.fault`),
	Effect:  networkDown,
	Recover: repair,
	Restore: script(`
		for file in /etc/cni/net.fault/*; do
			! test -f "$file" || cp "$file" /etc/cni/net.d/
		done
		rm -rf /etc/cni/net.fault`),
}
