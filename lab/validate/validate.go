// Package validate checks a running cluster before and after a node is added: area by area, each with a list of checks, and each check says
// what it saw. It works on any cluster, needs an administrator's rights, and knows nothing of the lab. What is wrong with a cluster is up to
// a diagnosis; the other checks are of what none sees. A check of something that the cluster does not have, such as a storage system, is not
// applicable, never passed.
package validate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"k8slab/lab/diagnose"
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
	"k8slab/lab/wait"
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
	// Findings are those of a diagnosis, if the check is one: of what labctl diagnose says the same.
	Findings []symptom.Finding `json:"findings,omitempty"`
}

// Check is one check of the cluster. Look ends soon after its context, and leaves nothing in the cluster. It sets the finding's Status,
// Detail and Next; an error says that the check could not be made, which counts as a failure.
type Check struct {
	Area Area
	Name string // what holds if it passes, such as "no Node has gone"
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
	// Owner is the value of the label of test namespaces, such as an onboarding's name; "" is labctl. RemoveLeftovers takes away one
	// owner's.
	Owner string
	// Patience is a factor for the time that test pods may take, for machines with emulated processors; 0 is 1.
	Patience int
	// Diagnose is the verdict of those who know the cluster's machines. If it is nil, only the API server is asked.
	Diagnose func(ctx context.Context) (diagnose.Report, error)
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

// shown bounds how many things of a kind a detail lists.
const shown = 5

func pass(format string, args ...any) Finding {
	return Finding{Status: Passed, Detail: fmt.Sprintf(format, args...)}
}

func absent(format string, args ...any) Finding {
	return Finding{Status: NotApplicable, Detail: fmt.Sprintf(format, args...)}
}

func warn(next, format string, args ...any) Finding {
	return Finding{Status: Warned, Detail: fmt.Sprintf(format, args...), Next: next}
}

func fail(next, format string, args ...any) Finding {
	return Finding{Status: Failed, Detail: fmt.Sprintf(format, args...), Next: next}
}

// tally collects what a check saw of several things.
type tally struct {
	faults   []string
	warnings []string
	good     []string
}

// finding is the finding of all: the worst kind decides the status and is the detail.
func (t tally) finding(next string) Finding {
	switch {
	case len(t.faults) > 0:
		return fail(next, "%s", few(t.faults))
	case len(t.warnings) > 0:
		return warn(next, "%s", few(t.warnings))
	}
	return pass("%s", few(t.good))
}

// few lists the first things, and says how many more there are.
func few(all []string) string {
	if len(all) <= shown {
		return strings.Join(all, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(all[:shown], "; "), len(all)-shown)
}

// awaitPace is the time between two runs of awaited checks; awaitBudget bounds a wait whose context has no end.
const (
	awaitPace   = time.Second
	awaitBudget = time.Hour
)

// Await repeats all checks, a second apart, until none fails or the context ends. It returns the findings of the last run that was not cut
// short. say, if not nil, is told what fails whenever that changes. The error says what failed last.
func Await(ctx context.Context, what string, checks []Check, say func(string)) ([]Finding, error) {
	var findings []Finding
	told := ""
	err := wait.For(ctx, what, awaitBudget, awaitPace, func(ctx context.Context) error {
		now := Run(ctx, checks)
		err := failures(now)
		// If the context's end cut this run short, its failures say nothing.
		if err != nil && ctx.Err() != nil && findings != nil {
			return err
		}
		findings = now
		if err != nil && say != nil && told != err.Error() {
			told = err.Error()
			say(told)
		}
		return err
	})
	return findings, err
}

// failures joins the findings that are failures, nil when there is none.
func failures(findings []Finding) error {
	var errs []error
	for _, f := range findings {
		if f.Status == Failed {
			errs = append(errs, fmt.Errorf("%s: %s", f.Check, f.Detail))
		}
	}
	return errors.Join(errs...)
}

// Open makes the clients of a cluster without connecting. The kubeconfig is a file's path, or "" for what kubectl would take ($KUBECONFIG,
// ~/.kube/config); in is one of its contexts, or "" for the current one. As with kubectl the file may name a program that gets
// credentials: it is the user's own. mutated, if not nil, is told of every request that may change the cluster before it is sent, and
// refuses it with an error.
func Open(kubeconfig, in, image string, mutated func(what string) error) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: in}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	kube.Prepare(config, mutated)
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client for %s: %w", config.Host, err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make dynamic client for %s: %w", config.Host, err)
	}
	as := func(user string, groups []string) (kubernetes.Interface, error) {
		other := rest.CopyConfig(config)
		other.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
		return kubernetes.NewForConfig(other)
	}
	authority, err := kube.Authority(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{Kube: set, Dynamic: dyn, Image: image, Impersonate: as, authority: authority}, nil
}

// Identity is a UUID that identifies a cluster. It is made of the UID of the namespace kube-system and the keys that authenticate the
// server, so that another server cannot pretend to be the cluster by repeating its UID.
func (c *Cluster) Identity(ctx context.Context) (string, error) {
	if len(c.authority) == 0 {
		return "", errors.New("the cluster's identity needs what vouches for its server")
	}
	system, err := c.Kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the cluster's identity (the UID of namespace kube-system): %w", err)
	}
	uid, err := uuid.Parse(string(system.UID))
	if err != nil {
		return "", fmt.Errorf("the UID of namespace kube-system, %.80q, is not a UUID", system.UID)
	}
	return uuid.NewSHA1(uid, c.authority).String(), nil
}
