package lab

import (
	"fmt"
	"slices"
	"strings"

	"k8slab/config"
)

// Stage is a part of the plan, in order. `up --until` ends after one.
type Stage string

// The stages of a plan.
const (
	StageImage    Stage = "image"    // the node image is in the cache
	StageNetwork  Stage = "network"  // a libvirt daemon serves and the lab's network runs
	StageMachines Stage = "machines" // every machine is booted and answers over SSH; nothing is joined
	StageInit     Stage = "init"     // the first control plane runs a cluster
	StageAddons   Stage = "addons"   // the pod network and the probe are deployed
	StageJoin     Stage = "join"     // every node has joined
	StageProof    Stage = "proof"    // cluster.yaml's add-ons are ready, and the whole cluster is proven healthy
)

// Stages are all stages in order.
var Stages = []Stage{StageImage, StageNetwork, StageMachines, StageInit, StageAddons, StageJoin, StageProof}

// Step is one thing that up does.
type Step struct {
	Stage  Stage  `json:"stage"`
	Node   string `json:"node,omitempty"`
	Action string `json:"action"`
	After  string `json:"after,omitempty"` // what it waits for
}

// NewPlan lists what up does for the cluster, in order. It is pure: nothing is looked at. Steps that are done already are verified instead.
func NewPlan(c *config.Cluster) []Step {
	cps := c.ControlPlanes()
	first := cps[0].Name
	steps := []Step{
		{StageImage, "", "build the node image for Kubernetes " + c.Kubernetes.Version + ", unless it is in the cache", ""},
		{StageNetwork, "", fmt.Sprintf("network %s on %s, virtual IP %s", c.Network.CIDR, c.Libvirt.URI, c.Network.VirtualIP), "image"},
	}
	staggered := c.Staggered(c.Members())
	machineOf := func(stage Stage, n config.Node, after string) {
		r := c.Resource(n.Role)
		steps = append(steps, Step{stage, n.Name, fmt.Sprintf("machine with %d CPUs, %d MiB, %d GiB at %s", r.CPUs, r.Memory, r.Disk, n.IP), after})
		if c.Image.Base != "" {
			steps = append(steps, Step{stage, n.Name, "provision " + c.Image.Base + " over SSH with the contents of the node image", "its machine"})
		}
	}
	for _, n := range c.Members() {
		if !slices.Contains(staggered, n) {
			machineOf(StageMachines, n, "network")
		}
	}
	steps = append(steps,
		Step{StageInit, first, "kubeadm init", "every control plane's machine answers, so that up never makes a second cluster beside an existing one"},
		Step{StageAddons, "", "deploy flannel and the probe", "API server of " + first})
	// etcd takes one learner at a time (--max-learners), and a join that finds an unhealthy member fails: so one after another.
	before := first
	for _, n := range cps[1:] {
		healthy := before + " and every etcd member healthy"
		if slices.Contains(staggered, n) {
			machineOf(StageJoin, n, healthy)
		}
		steps = append(steps, Step{StageJoin, n.Name, "kubeadm join as control plane", healthy})
		before = n.Name
	}
	// Workers need no more than an API server.
	for _, n := range c.Workers() {
		steps = append(steps, Step{StageJoin, n.Name, "kubeadm join as worker", "API server of " + first})
	}
	proofAfter := "all joins"
	if len(c.Addons) > 0 {
		steps = append(steps, Step{StageProof, "", "add-ons " + strings.Join(c.Addons, ", ") + ", and those they need", proofAfter})
		proofAfter = "add-ons ready"
	}
	steps = append(steps, Step{StageProof, "", "nodes Ready, etcd voters healthy, CoreDNS up, pods reach pods and a Service by name across all nodes", proofAfter})
	for _, n := range c.Nodes {
		if n.Onboard {
			steps = append(steps, Step{"onboard", n.Name, "not made by up: labctl onboard adds it later", ""})
		}
	}
	return steps
}

// ParseStage reads the name of a stage; "" is the last.
func ParseStage(s string) (Stage, error) {
	if s == "" {
		return StageProof, nil
	}
	var names []string
	for _, stage := range Stages {
		if string(stage) == s {
			return stage, nil
		}
		names = append(names, string(stage))
	}
	return "", config.Unknown("step", s, "steps are", names)
}
