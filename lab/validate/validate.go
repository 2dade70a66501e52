// Package validate looks at a running cluster as its administrator does before and after a node is taken in: area by area, each a list of
// checks, each of which says what it saw. It works on any cluster, with an administrator's rights and nothing of the lab; what a cluster
// does not have (a storage system, a monitoring) is not applicable, which is never called passed.
package validate

import (
	"context"
	"net"
	"sync"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// Area is a part of a cluster that can be validated alone.
type Area string

// The areas, in the order in which they depend on each other.
const (
	AreaCluster    Area = "cluster"
	AreaGitOps     Area = "gitops"
	AreaNetwork    Area = "network"
	AreaStorage    Area = "storage"
	AreaMonitoring Area = "monitoring"
	AreaSecurity   Area = "security"
)

// Status is what came of a check.
type Status string

// What can come of a check.
const (
	Passed        Status = "passed"
	Warned        Status = "warned" // a fault that is no reason to stop
	Failed        Status = "failed"
	NotApplicable Status = "not-applicable" // the cluster has not what is checked
)

// Finding is what one check saw.
type Finding struct {
	Area   Area   `json:"area"`
	Check  string `json:"check"`
	Status Status `json:"status"`
	Detail string `json:"detail"`         // the evidence, or why it is not applicable
	Next   string `json:"next,omitempty"` // the next step, of a warning or a failure
}

// Check is one look at the cluster. It ends soon after its context, and leaves nothing in the cluster. It sets the finding's Status, Detail
// and Next; an error is that the check could not look, which is a failure.
type Check struct {
	Area Area
	Name string // what holds if it passes, such as "every Node is Ready"
	Look func(ctx context.Context) (Finding, error)
	// Tries tells a check that makes test objects. They are gone when Look returns, but for those of a process that was killed.
	Tries bool
}

// Cluster is the cluster that is looked at, with an administrator's rights.
type Cluster struct {
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	// Image is a container image of labnode, for test pods. Every node that is tested must have it or be able to pull it.
	Image string
	// Owner is the value of the label of test namespaces, such as an onboarding's name; "" is labctl. RemoveLeftovers takes away one owner's.
	Owner string
	// Patience is how many times longer than usual test pods may take, for machines with emulated processors; 0 is 1.
	Patience int
	// Etcd says what is wrong with etcd's members, such as alarms. With nil, what the API server and etcd's pods say is all that is known.
	Etcd func(ctx context.Context) (problems []string, err error)
	// Impersonate makes a client that acts as another user; with nil, what needs one is not tested.
	Impersonate func(user string, groups []string) (kubernetes.Interface, error)
	// Dial reaches the addresses of nodes, such as a kubelet's; with nil, what needs it is not tested.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	authority []byte // what vouches for the server
}

// Run makes all checks at once. The findings are in the checks' order.
func Run(ctx context.Context, checks []Check) []Finding {
	findings := make([]Finding, len(checks))
	var wg sync.WaitGroup
	for i, c := range checks {
		wg.Go(func() {
			f, err := c.Look(ctx)
			if err != nil {
				f.Status, f.Detail = Failed, err.Error()
			}
			f.Area, f.Check = c.Area, c.Name
			findings[i] = f
		})
	}
	wg.Wait()
	return findings
}
