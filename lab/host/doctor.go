package host

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"sync"

	"k8slab/lab/command"
)

// Result is what a check of this computer came to.
type Result string

// What a check can come to.
const (
	OK    Result = "ok"    // nothing to do
	Mends Result = "mends" // `labctl up` mends it
	Warn  Result = "warn"  // a lab works, with a drawback
	Fails Result = "fails" // no lab comes up before somebody mends it
)

// Check is one thing of this computer that a lab depends on.
type Check struct {
	ID     string `json:"id"` // kebab-case: docs/hosts.md lists all
	Result Result `json:"result"`
	Seen   string `json:"seen"`
	Why    string `json:"why,omitempty"` // it matters, unless OK
	Do     string `json:"do,omitempty"`  // the command that mends it; empty where up does
}

// Plan is the lab that this computer is to carry.
type Plan struct {
	URI      string       // of its machines: Containers or VirtualMachines
	Own      bool         // it has a libvirt daemon of its own, in a network namespace of its own
	Build    bool         // Kubernetes must be compiled for its node image
	Packages []string     // that it needs beside libvirt
	Network  netip.Prefix // of its machines; none is checked of a lab that has its network already
}

// computer is this computer as the checks see it, so that tests can put a directory and a table of answers in its place.
type computer struct {
	computerKernel
	user int
	look func(program string) (string, error)
	run  func(ctx context.Context, argv ...string) (string, error)
}

// Examine checks this computer in well under a second, and changes nothing. The worst comes first, and among equals what comes first in a
// bring-up.
func Examine(ctx context.Context, p Plan) []Check {
	return computer{computerKernel: thisKernel, user: os.Geteuid(), look: exec.LookPath, run: command.Run}.examine(ctx, p)
}

func (c computer) examine(ctx context.Context, p Plan) []Check {
	all := []struct {
		id  string
		run func(context.Context, Plan) Check
	}{
		{"machines", c.kind}, {"root", c.privileges}, {"packages", c.packages}, {"go", c.golang}, {"cgroups", c.hierarchy}, {"kernel-modules", c.modules},
		{"inotify", c.inotify}, {"swap", c.swap}, {"processor", c.processor}, {"apparmor", c.apparmor},
		{"network", c.network}, {"forwarding", c.forwarding}, {"firewall", c.firewall},
	}
	checks := make([]Check, len(all))
	var wg sync.WaitGroup
	for i, check := range all {
		wg.Go(func() {
			checks[i] = check.run(ctx, p)
			checks[i].ID = check.id
		})
	}
	wg.Wait()
	severity := []Result{Fails, Warn, Mends, OK}
	slices.SortStableFunc(checks, func(a, b Check) int { return slices.Index(severity, a.Result) - slices.Index(severity, b.Result) })
	return checks
}

func fine(seen string) Check { return Check{Result: OK, Seen: seen} }
