package join

// CheckID names a check. The table of probes has what is known of each.
type CheckID string

// The checks of Preflight and Examine.
const (
	CheckHostname             CheckID = "hostname"
	CheckMachineID            CheckID = "machine-id"
	CheckProductUUID          CheckID = "product-uuid"
	CheckMemory               CheckID = "memory"
	CheckCPU                  CheckID = "cpu"
	CheckDisk                 CheckID = "disk"
	CheckSwap                 CheckID = "swap"
	CheckKernelModules        CheckID = "kernel-modules"
	CheckSysctls              CheckID = "sysctls"
	CheckCgroups              CheckID = "cgroups"
	CheckKubeBinaries         CheckID = "kube-binaries"
	CheckHostTools            CheckID = "host-tools"
	CheckKubeletUnit          CheckID = "kubelet-unit"
	CheckCNIPlugins           CheckID = "cni-plugins"
	CheckCNIConfig            CheckID = "cni-config"
	CheckCRI                  CheckID = "cri"
	CheckImageFilesystem      CheckID = "image-filesystem"
	CheckRuntimeVersion       CheckID = "runtime-version"
	CheckCgroupDriver         CheckID = "cgroup-driver"
	CheckLeftovers            CheckID = "leftovers"
	CheckPorts                CheckID = "ports"
	CheckFirewall             CheckID = "firewall"
	CheckAddress              CheckID = "address"
	CheckEtcdDisk             CheckID = "etcd-disk"
	CheckProxy                CheckID = "proxy"
	CheckEndpointName         CheckID = "endpoint-name"
	CheckEndpointConnect      CheckID = "endpoint-connect"
	CheckClock                CheckID = "clock"
	CheckCAHash               CheckID = "ca-hash"
	CheckEndpointTLS          CheckID = "endpoint-tls"
	CheckEndpointHealth       CheckID = "endpoint-health"
	CheckBootstrapToken       CheckID = "bootstrap-token"
	CheckVersion              CheckID = "version"
	CheckNodeName             CheckID = "node-name"
	CheckControlPlaneEndpoint CheckID = "control-plane-endpoint"
	CheckCertificateKey       CheckID = "certificate-key"
	CheckEtcdPeers            CheckID = "etcd-peers"
	CheckImages               CheckID = "images"
)

// The checks that a repair of a member makes besides.
const (
	CheckKubeletConfig  CheckID = "kubelet-config"
	CheckKubeletService CheckID = "kubelet-service"
)

// The checks of Validate.
const (
	CheckKubelet           CheckID = "kubelet"            // active, and not standalone
	CheckCluster           CheckID = "cluster"            // it serves the cluster of the pinned CA
	CheckRole              CheckID = "role"               // it is what it was to become
	CheckEtcdMember        CheckID = "etcd-member"        // a started voter
	CheckAPIServer         CheckID = "api-server"         // healthy, as the other static pods
	CheckControllerManager CheckID = "controller-manager" //
	CheckScheduler         CheckID = "scheduler"          //
	CheckNode              CheckID = "node"               // present, this machine's, Ready
)

// CheckLabnode is the check that failed where labnode gave no answer at all.
const CheckLabnode CheckID = "labnode"

// Reason is why a check failed, where several failures of it have no symptom of their own.
type Reason string

// The reasons of CheckNode.
const (
	NodeMissing  Reason = "node-missing"   // the cluster has no Node of the name
	NodeOfOther  Reason = "node-of-other"  // it has one, of another machine
	NodeNotReady Reason = "node-not-ready" // it has this machine's, which is not Ready
)

// Phase is a part of an attempt to join: one of these, or kubeadm's own name of one of its phases.
type Phase string

// The phases around kubeadm's own.
const (
	PhasePreflight Phase = "preflight"
	PhasePrepare   Phase = "prepare"
	PhaseCluster   Phase = "cluster" // of an attempt that never came to the node
	PhaseKubeadm   Phase = "kubeadm" // until kubeadm has named one of its own
	PhaseValidate  Phase = "validate"
	PhaseRepair    Phase = "repair" // between two attempts
	PhaseClean     Phase = "clean"  // in records of earlier versions
)

// Phases of kubeadm of which kubeadm tells in its log only, and prints nothing.
const (
	phaseEtcd      Phase = "etcd"
	phaseDiscovery Phase = "discovery"
)

// WithoutKubeadm reports whether kubeadm had not started yet in this phase, or had ended.
func (p Phase) WithoutKubeadm() bool {
	return p == PhasePreflight || p == PhasePrepare || p == PhaseCluster || p == PhaseValidate
}
