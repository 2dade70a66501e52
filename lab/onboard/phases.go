// Package onboard adds one node to a running cluster in nine phases, and removes it again. It keeps what it has done in a file, so that
// another process can continue after any interruption, undo everything, or show the state. It knows neither Kubernetes nor the lab: what
// the phases do, how changes are undone, and the state's directory are given to it.
package onboard

import (
	"slices"
	"time"
)

// PhaseID names a phase in the state, in events and in the configuration.
type PhaseID string

// The phases, in their order.
const (
	PreValidation         PhaseID = "pre_validation"
	GitOpsActivation      PhaseID = "gitops_activation"
	NodeJoinMonitoring    PhaseID = "node_join_monitoring"
	StorageIntegration    PhaseID = "storage_integration"
	NetworkValidation     PhaseID = "network_validation"
	MonitoringIntegration PhaseID = "monitoring_integration"
	SecurityValidation    PhaseID = "security_validation"
	PostValidation        PhaseID = "post_validation"
	HealthVerification    PhaseID = "health_verification"
)

// Phase is what people are told of a phase. What it does is its Runner's.
type Phase struct {
	ID      PhaseID       `json:"id"`
	Title   string        `json:"title"`
	Purpose string        `json:"purpose"`
	Checks  []string      `json:"checks,omitempty"`
	Actions []string      `json:"actions,omitempty"`
	Needs   []PhaseID     `json:"needs,omitempty"` // phases that must be completed before
	Timeout time.Duration `json:"-"`               // of one attempt, unless Engine.Timeouts has another
	Impact  string        `json:"impact"`          // what a failure means for the node
}

// phases has the order in which phases run. Only the join's time-out is a given figure: five minutes, which a worker needs and a control
// plane may exceed. The others bound waits for controllers that look every minute or two.
var phases = []Phase{
	{
		ID: PreValidation, Title: "Pre-validation", Timeout: 2 * time.Minute,
		Purpose: "check that the cluster can take the node",
		Checks: []string{
			"the control plane is healthy", "Flux runs and is reconciled", "the components that everything else needs are ready",
			"there are resources for the node", "the node can reach what it needs", "the storage system is ready",
		},
		Impact: "nothing was started: fix the cluster first",
	},
	{
		ID: GitOpsActivation, Title: "GitOps activation", Timeout: 5 * time.Minute, Needs: []PhaseID{PreValidation},
		Purpose: "activate the node's configuration in the Git repository",
		Actions: []string{
			"add the node's configuration to the kustomization", "commit it", "push the commit", "make Flux reconcile it",
		},
		Impact: "Flux does not apply the node's configuration",
	},
	{
		ID: NodeJoinMonitoring, Title: "Node join monitoring", Timeout: 5 * time.Minute, Needs: []PhaseID{GitOpsActivation},
		Purpose: "wait until the node has joined the cluster",
		Checks:  []string{"the Node appears", "the Node becomes Ready", "its details are as requested"},
		Impact:  "the node is not a member: check its first boot and its network",
	},
	{
		ID: StorageIntegration, Title: "Storage integration", Timeout: 5 * time.Minute, Needs: []PhaseID{NodeJoinMonitoring},
		Purpose: "check that the storage system uses the node",
		Checks: []string{
			"it has a record of the node", "the record says ready", "the node's disks are found and configured", "their capacity is counted",
		},
		Impact: "volumes have no replicas on the node",
	},
	{
		ID: NetworkValidation, Title: "Network validation", Timeout: 3 * time.Minute, Needs: []PhaseID{NodeJoinMonitoring, StorageIntegration},
		Purpose: "check that nodes reach each other",
		Checks: []string{
			"the pod network is healthy on old nodes and the new one", "kube-proxy works", "pods reach pods of other nodes",
			"services are found by name and routed",
		},
		Impact: "pods on the node may have no network",
	},
	{
		ID: MonitoringIntegration, Title: "Monitoring integration", Timeout: 5 * time.Minute, Needs: []PhaseID{NetworkValidation},
		Purpose: "check that the monitoring has the node's metrics",
		Checks: []string{
			"a node-exporter runs on the node", "Prometheus has found it", "Grafana's dashboards are ready", "metrics of the node arrive",
		},
		Impact: "the node is on no dashboard",
	},
	{
		ID: SecurityValidation, Title: "Security validation", Timeout: 2 * time.Minute, Needs: []PhaseID{MonitoringIntegration},
		Purpose: "check that the node has the rights of a node, and no more",
		Checks: []string{
			"the node's rights are those of a node", "secrets that SOPS encrypted are decrypted", "network policies are in force",
			"pods have security contexts",
		},
		Impact: "the node may be a security risk",
	},
	{
		ID: PostValidation, Title: "Post-validation", Timeout: 5 * time.Minute, Needs: []PhaseID{SecurityValidation},
		Purpose: "run the cluster's own validations",
		Checks:  []string{"the cluster is ready", "the storage is healthy", "the monitoring works", "the network works"},
		Impact:  "there may be undetected faults",
	},
	{
		ID: HealthVerification, Title: "Health verification", Timeout: 5 * time.Minute, Needs: []PhaseID{PostValidation},
		Purpose: "check that the whole cluster works with the node",
		Checks: []string{
			"all nodes are healthy", "volumes are redundant", "applications are spread over the nodes", "the network works",
			"the monitoring has everything", "Flux is reconciled",
		},
		Impact: "the onboarding is not complete",
	},
}

// Phases lists the phases in their order.
func Phases() []Phase { return slices.Clone(phases) }

func known(id PhaseID) bool {
	return slices.ContainsFunc(phases, func(p Phase) bool { return p.ID == id })
}
