package scenarios

var cniDirectoryRemoved = Fault{
	Name:   "cni-directory-removed",
	Story:  "rm -rf of the CNI directory, as many guides advise, ends containerd 2.x (containerd#11209)",
	Roles:  everyRole,
	Inject: on("rm", "--recursive", "--force", "/etc/cni/net.d"),
	Join:   &Join{},
}
