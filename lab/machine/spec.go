package machine

// Spec is one machine.
type Spec struct {
	Node      string
	MachineID string // systemd's
	CPUs      int
	Memory    int    // MiB
	Disk      int    // GiB
	Seed      string // directory of the node's own files
	Boot      Boot
}

// Boot is what a machine starts from: Root for a container, the rest for a virtual machine. Without a kernel Base is a stock image, whose
// own boot loader the firmware starts, and the seed is for cloud-init.
type Boot struct {
	Root                          string
	Base, Kernel, Initrd, Cmdline string
	ID                            string // of what is in those files: others of the same have the same
}

func (b Boot) stock() bool { return b.Kernel == "" }
