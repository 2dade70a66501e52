package fact

import "k8slab/lab/join"

// Organ is one thing that a node or the cluster lives by, measured from end to end: whatever breaks it, the measurement fails.
type Organ struct {
	Name    string        `json:"name"`
	Node    string        `json:"node,omitempty"`  // where it was measured, or what it shows to be ill; "" for the whole cluster
	Detail  string        `json:"detail"`          // what exactly was measured
	Error   string        `json:"error,omitempty"` // what failed; "" works
	Named   []join.Defect `json:"named,omitempty"` // what was found, as far as the measurement itself shows the cause
	Lines   []string      `json:"lines,omitempty"` // the last lines of logs that mention it, without secrets
	Elapsed float64       `json:"elapsed"`         // seconds
	Late    bool          `json:"-"`               // it had too little time, and might work with more
}

// The organs.
const (
	OrganSandbox      = "sandbox"
	OrganKubelet      = "kubelet restart"
	OrganCertificates = "certificates"
	OrganStaticPods   = "static pods"
	OrganForwarding   = "forwarding"
	OrganDNS          = "DNS"
	OrganFileSystems  = "file systems"
)
