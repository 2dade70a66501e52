package scenarios

var missingCNI = Fault{
	Name:   "missing-cni",
	Story:  "a worker without any CNI configuration never becomes Ready (worker-cni-join-fix)",
	Roles:  everyRole,
	Inject: script(`rm -f /etc/cni/net.d/*`),
}
