// Package bringup is the plan of `labctl up`: its stages, in order, each with what it would do and what it does.
package bringup

import (
	"context"
	"fmt"
	"strings"

	"k8slab/config"
	"k8slab/lab/state"
)

// Stage is a part of the plan, in order. `up --until` ends after one.
type Stage string

// The stages of a plan.
const (
	StageImage         Stage = "image"          // the node image is in the cache
	StageNetwork       Stage = "network"        // a libvirt daemon serves and the lab's network runs
	StageMachines      Stage = "machines"       // every machine is booted and answers over SSH; nothing is joined
	StageInit          Stage = "init"           // the first control plane runs a cluster
	StageNetworkPlugin Stage = "network-plugin" // the pod network and the probe are deployed
	StageJoin          Stage = "join"           // every node has joined
	StageReconfigure   Stage = "reconfigure"    // every node has the options that cluster.yaml describes
	StageResize        Stage = "resize"         // every machine has the size that cluster.yaml describes
	StageAddons        Stage = "addons"         // cluster.yaml's add-ons are ready
	StageProof         Stage = "proof"          // the whole cluster is proven healthy
)

// stage is a part of the plan: describe says what it would do, run does it.
type stage struct {
	name     Stage
	describe func(state.Lab) []Step
	run      func(*upRun, context.Context) error
}

// stages are the plan: `labctl plan` prints it, up runs it.
var stages = []stage{
	{StageImage, of(describeImage), (*upRun).image},
	{StageNetwork, of(describeNetwork), (*upRun).network},
	{StageMachines, of(describeMachines), (*upRun).machines},
	{StageInit, of(describeInit), (*upRun).initialise},
	{StageNetworkPlugin, of(describeNetworkPlugin), (*upRun).networkPlugin},
	{StageJoin, of(describeJoins), (*upRun).join},
	{StageReconfigure, describeReconfigure, (*upRun).reconfigure},
	{StageResize, describeResizes, (*upRun).resize},
	{StageAddons, of(describeAddons), (*upRun).addons},
	{StageProof, of(describeProof), (*upRun).proof},
}

// of describes a stage that is the same in every lab of the cluster.
func of(describe func(*config.Cluster) []Step) func(state.Lab) []Step {
	return func(l state.Lab) []Step { return describe(l.Cluster) }
}

// Stages are the names of all stages in order.
func Stages() (names []Stage) {
	for _, s := range stages {
		names = append(names, s.name)
	}
	return names
}

// Step is one thing that up does.
type Step struct {
	Stage  Stage  `json:"stage"`
	Node   string `json:"node,omitempty"`
	Action string `json:"action"`
	After  string `json:"after,omitempty"` // what it waits for
	Done   bool   `json:"done,omitempty"`  // already, in the lab that exists

	done func(present) bool
}

// NewPlan lists what up does for the lab, in order: first Prune, then the stages with what it leaves. It reads nothing but the description.
// Up verifies steps that are already done.
func NewPlan(l state.Lab) (steps []Step) {
	steps = describeRemovals(l)
	l.Cluster = l.After
	for _, s := range stages {
		for _, step := range s.describe(l) {
			step.Stage = s.name
			steps = append(steps, step)
		}
	}
	for _, n := range l.Cluster.Nodes {
		if n.Onboard {
			steps = append(steps, Step{Stage: "onboard", Node: n.Name, Action: "not made by up: labctl onboard adds it later"})
		}
	}
	return steps
}

func describeImage(c *config.Cluster) []Step {
	return append([]Step{{
		Action: "build the node image for Kubernetes " + c.Kubernetes.Version + ", unless it is in the cache",
		done:   func(s present) bool { return s.made(c) },
	}}, describeCheck(c)...)
}

func describeNetwork(c *config.Cluster) []Step {
	return []Step{{
		Action: fmt.Sprintf("network %s on %s, virtual IP %s", c.Network.CIDR, c.Libvirt.URI, c.Network.VirtualIP), After: "image",
		done: func(s present) bool { return s.network },
	}}
}

func describeMachines(c *config.Cluster) (steps []Step) {
	staggered := c.Staggered(c.Members())
	for _, n := range c.Members() {
		if !config.HasNode(staggered, n.Name) {
			steps = append(steps, describeMachine(c, n, "network")...)
		}
	}
	return steps
}

func describeMachine(c *config.Cluster, n config.Node, after string) []Step {
	r := c.Resource(n.Role)
	steps := []Step{{
		Node: n.Name, Action: fmt.Sprintf("machine with %d CPUs, %d MiB, %s at %s", r.CPUs, r.Memory, disks(c, n), n.IP), After: after,
		done: func(s present) bool { return s.runs(n) },
	}}
	if c.Image.Base != "" {
		steps = append(steps, Step{Node: n.Name, Action: "provision " + c.Image.Base + " over SSH with the contents of the node image", After: "its machine", done: func(s present) bool { return s.has(n) }})
	}
	return steps
}

func describeInit(c *config.Cluster) []Step {
	first := c.ControlPlanes()[0]
	return []Step{{
		Node: first.Name, Action: with("kubeadm init", append(clusterOptions(c.Kubernetes), nodeOptions(c, first, "init")...)...),
		After: "every control plane's machine answers, so that up never makes a second cluster beside an existing one",
		done:  joined(c.ControlPlanes()...),
	}}
}

func joined(nodes ...config.Node) func(present) bool {
	return func(s present) bool { return s.joined(nodes...) }
}

func describeNetworkPlugin(c *config.Cluster) []Step {
	return []Step{{Action: "deploy flannel and the probe", After: "API server of " + c.ControlPlanes()[0].Name, done: func(s present) bool { return s.plugin }}}
}

// describeJoins lists the control planes one after another: etcd allows one learner at a time (--max-learners), and a join fails while a
// member is unhealthy. Workers only need an API server.
func describeJoins(c *config.Cluster) (steps []Step) {
	cps := c.ControlPlanes()
	staggered := c.Staggered(c.Members())
	for i, n := range cps[1:] {
		healthy := cps[i].Name + " and every etcd member healthy"
		if config.HasNode(staggered, n.Name) {
			steps = append(steps, describeMachine(c, n, healthy)...)
		}
		steps = append(steps, Step{Node: n.Name, Action: with("kubeadm join as control plane", nodeOptions(c, n, "join")...), After: healthy, done: joined(n)})
	}
	for _, n := range c.Workers() {
		steps = append(steps, Step{Node: n.Name, Action: with("kubeadm join as worker", nodeOptions(c, n, "join")...), After: "API server of " + cps[0].Name, done: joined(n)})
	}
	return steps
}

func describeAddons(c *config.Cluster) []Step {
	if len(c.Addons) == 0 {
		return nil
	}
	return []Step{{Action: "add-ons " + strings.Join(c.Addons, ", ") + ", and those they need", After: "all joins", done: func(s present) bool { return s.addons }}}
}

func describeProof(c *config.Cluster) []Step {
	after := "all joins"
	if len(c.Addons) > 0 {
		after = "add-ons ready"
	}
	return []Step{{Action: "nodes Ready, etcd voters healthy, CoreDNS up, pods reach pods and a Service by name across all nodes", After: after, done: func(s present) bool { return s.healthy }}}
}

// ParseStage reads the name of a stage; "" is the last.
func ParseStage(s string) (Stage, error) {
	if s == "" {
		return StageProof, nil
	}
	var names []string
	for _, name := range Stages() {
		if string(name) == s {
			return name, nil
		}
		names = append(names, string(name))
	}
	return "", config.Unknown("step", s, "steps are", names)
}
