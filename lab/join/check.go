package join

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// quick is the limit of a check that reads a few files or runs one program. It is generous, for emulated machines under load.
const quick = 3 * time.Second

// grace is the time that a check gets after its limit, to notice that its time is up.
const grace = 200 * time.Millisecond

// preflight is one run of the checks. Facts that several checks need are found once: the first check that asks starts it, the others wait.
type preflight struct {
	m   Machine
	t   Target
	run context.Context // of the whole run: connections outlive the check that opened them

	patience      time.Duration // see Machine.Patience
	units         func(context.Context) (units, error)
	cri           func(context.Context) (criFacts, error)
	api           func(context.Context) (apiFacts, error)
	info          func(context.Context) (kube.ClusterInfo, error)
	cluster       func(context.Context) (*trusted, error)
	clusterConfig func(context.Context) (kube.ClusterConfiguration, error)
	kubeletConfig func(context.Context) (kube.KubeletConfiguration, error)
	versions      func(context.Context) (versions, error)
}

// lazily makes a function that looks for something at its first call. The search has the time of the whole run; a caller stops waiting when
// its own context ends.
func lazily[T any](run context.Context, limit time.Duration, find func(context.Context) (T, error)) func(context.Context) (T, error) {
	var once sync.Once
	var value T
	var err error
	done := make(chan struct{})
	look := func() {
		defer close(done)
		defer func() {
			if broken := recover(); broken != nil {
				err = fmt.Errorf("this program failed: %v", broken)
			}
		}()
		ctx, cancel := context.WithTimeout(run, limit)
		defer cancel()
		value, err = find(ctx)
	}
	return func(ctx context.Context) (T, error) {
		once.Do(func() { go look() })
		select {
		case <-done:
			return value, err
		case <-ctx.Done():
			var nothing T
			return nothing, context.Cause(ctx)
		}
	}
}

// ignores says whether the configuration tells kubeadm to ignore its check of this name.
func (p *preflight) ignores(name string) bool {
	return slices.ContainsFunc(p.t.Ignore, func(ignored string) bool {
		return strings.EqualFold(ignored, name) || strings.EqualFold(ignored, "all")
	})
}

var severity = map[Result]int{Blocked: 0, Fixable: 1, Warn: 2, OK: 3}

// rank sorts from worst to best. Checks with the same result keep their order, which is from cause to effect.
func rank(checks []Check) {
	slices.SortStableFunc(checks, func(a, b Check) int { return severity[a.Result] - severity[b.Result] })
}

// Verdict is the worst result of the checks.
func Verdict(checks []Check) Result {
	worst := OK
	for _, c := range checks {
		if severity[c.Result] < severity[worst] {
			worst = c.Result
		}
	}
	return worst
}

func ok(format string, args ...any) Check {
	return Check{Result: OK, Evidence: fmt.Sprintf(format, args...)}
}

func warn(cause symptom.ID, hint, format string, args ...any) Check {
	return Check{Result: Warn, Symptom: cause, Hint: hint, Evidence: fmt.Sprintf(format, args...)}
}

func fixable(cause symptom.ID, hint, format string, args ...any) Check {
	return Check{Result: Fixable, Symptom: cause, Hint: hint, Evidence: fmt.Sprintf(format, args...)}
}

func blocked(cause symptom.ID, hint, format string, args ...any) Check {
	return Check{Result: Blocked, Symptom: cause, Hint: hint, Evidence: fmt.Sprintf(format, args...)}
}

// because says which of the check's failures it is.
func (c Check) because(reason Reason) Check {
	c.Reason = reason
	return c
}

// unmade is a check that could not run because another one failed. That other check names the cause.
func unmade(err error) Check {
	hint := "see the check that failed"
	if errors.Is(err, errNotAsked) {
		return ok("not asked for: %v", err)
	}
	return warn("", hint, "not checked: %v", err)
}

// errNotAsked means that the target lacks the data for a check.
var errNotAsked = errors.New("no cluster or credential is given")

// refusal is a repair that would not be safe.
type refusal struct{ why, hint string }

func (r *refusal) Error() string { return r.why }

func refuse(why, hint string) error { return &refusal{why: why, hint: hint} }

// trusted is the cluster once its CA is known to be the pinned one.
type trusted struct {
	roots   *x509.CertPool
	visitor *kube.Visitor // with the bootstrap token; nil without one
}

// criFacts are what the container runtime says of itself.
type criFacts struct {
	socket       string
	version      string // "containerd v2.4.2"
	problem      string // why it says that it is not ready; "" when it is
	network      string // why it says that it has no network for pods; "" when it has
	driver       string // the cgroup driver it uses: "systemd" or "cgroupfs"; "" when it is too old to tell
	images       []string
	imagesErr    error
	imageFS      string // where images are; "" when it does not know yet
	imageFSSize  uint64
	imageFSError error
}

// apiFacts are what the API server showed when it was asked, as a stranger, whether it lives.
type apiFacts struct {
	visitor *kube.Visitor
	live    kube.Live
	at      time.Time // this machine's clock at the answer
}

// unit is what systemd knows of one of its units: properties of `systemctl show`, by name.
type unit map[string]string

// units are those that a node is about.
type units struct{ kubelet, runtime unit }

// release is a Kubernetes version, of which the skew rules use the minor number; major is 1.
type release struct {
	text  string
	minor int
}

func (r release) String() string { return r.text }

// versions are those of the installed programs; a zero one could not be found out.
type versions struct{ kubeadm, kubelet release }
