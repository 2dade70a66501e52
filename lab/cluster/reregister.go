package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/health"
	"k8slab/lab/kube"
	"k8slab/lab/node"
	"k8slab/lab/session"
	"k8slab/lab/wait"
)

// reregister restarts kubelet on nodes that have joined but whose Node somebody deleted. kubelet registers its Node only when it starts.
func (c *Run) reregister(ctx context.Context, nodes []kube.Node) ([]kube.Node, error) {
	lost := slices.DeleteFunc(c.Cluster.Members(), func(n config.Node) bool { return !c.hasJoined(n) || session.FindNode(nodes, n.Name) != nil })
	if len(lost) == 0 {
		return nodes, nil
	}
	err := session.ForEachNode(lost, func(n config.Node) error {
		step := c.Events.Start(n.Name, "register again", time.Minute)
		err := c.Nodes[n.Name].Run(ctx, node.Command{Argv: []string{"systemctl", "restart", "kubelet"}})
		if err != nil {
			return step.End(err)
		}
		subnet := ""
		err = wait.For(ctx, n.Name+" to register", time.Minute, c.Pace(), func(ctx context.Context) error {
			registered, err := c.Admin.Kube.Node(ctx, n.Name)
			switch {
			case err != nil:
				return err
			case registered == nil:
				return errors.New("no such Node yet")
			case registered.PodCIDR == "":
				return errors.New("the Node has no podCIDR yet")
			}
			subnet = registered.PodCIDR
			return nil
		})
		if err == nil {
			err = c.RenewNetwork(ctx, n, subnet, step)
		}
		return step.End(err)
	})
	if err != nil {
		return nil, err
	}
	return c.Admin.Kube.Nodes(ctx)
}

// RenewNetwork gives the node's pods addresses of the new Node's subnet. flannel, the bridge and running pods still use the deleted Node's
// subnet, where nobody reaches them. The pods stay; only their sandboxes are recreated.
func (c *Run) RenewNetwork(ctx context.Context, n config.Node, subnet string, step *event.Step) error {
	on := c.Nodes[n.Name]
	renewed := func(ctx context.Context) bool {
		text, err := on.Read(ctx, "cat", health.SubnetFile)
		return err == nil && FlannelSubnet(text) == subnet
	}
	if renewed(ctx) {
		return nil
	}
	step.Progress("its pods move to the new Node's subnet %s", subnet)
	if err := on.Run(ctx, node.Command{Argv: []string{"rm", "--force", health.SubnetFile}}); err != nil {
		return err
	}
	pods, err := c.Admin.Kube.Pods(ctx, "", "")
	if err != nil {
		return err
	}
	for _, p := range pods {
		if p.Node == n.Name && p.Namespace == health.FlannelNamespace && !p.Deleting {
			if err := c.Admin.Kube.DeletePod(ctx, p.Namespace, p.Name); err != nil {
				return err
			}
		}
	}
	err = wait.For(ctx, "flannel on "+n.Name+" to take its subnet", time.Minute, c.Pace(), func(ctx context.Context) error {
		if !renewed(ctx) {
			return fmt.Errorf("%s does not have %s", health.SubnetFile, subnet)
		}
		return nil
	})
	if err != nil {
		return err
	}
	// The bridge has an address of the old subnet. The CNI plugin recreates it with the new one.
	if err := on.Run(ctx, node.Command{Argv: []string{"sh", "-c", "! test -e /sys/class/net/cni0 || ip link delete cni0"}}); err != nil {
		return err
	}
	return c.restartSandboxes(ctx, n, subnet, pods)
}

// restartSandboxes stops the sandboxes of the node's pods that have an address of another node's subnet; kubelet recreates them.
func (c *Run) restartSandboxes(ctx context.Context, n config.Node, subnet string, pods []kube.Pod) error {
	own, err := netip.ParsePrefix(subnet)
	if err != nil {
		return fmt.Errorf("%s: podCIDR of its Node: %w", n.Name, err)
	}
	on := c.Nodes[n.Name]
	for _, p := range pods {
		address, err := netip.ParseAddr(p.IP)
		if err != nil || p.Node != n.Name || !c.Cluster.Network.PodSubnet.Contains(address) || own.Contains(address) {
			continue
		}
		if err := EndSandboxes(ctx, on, p); err != nil {
			return err
		}
	}
	return nil
}

// sandboxTime bounds the stop of a pod's sandboxes, and each call of crictl, whose default of 2 s is too short on a busy computer.
const sandboxTime = 30 * time.Second

// EndSandboxes stops the pod's sandboxes. kubelet makes a new one, with a new address, and starts the containers there. It retries, because
// kubelet may stop the same sandbox at the same time, and then one of the two calls fails.
func EndSandboxes(ctx context.Context, on session.Shell, p kube.Pod) error {
	ready := func(ctx context.Context) ([]string, error) {
		ids, err := on.Read(ctx, "crictl", "pods", "--quiet", "--state", "ready", "--namespace", p.Namespace, "--name", "^"+p.Name+"$")
		return strings.Fields(ids), err
	}
	old, err := ready(ctx)
	if err != nil {
		return err
	}
	return wait.For(ctx, fmt.Sprintf("the sandbox of pod %s/%s to end", p.Namespace, p.Name), sandboxTime, 300*time.Millisecond, func(ctx context.Context) error {
		now, err := ready(ctx)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(now, func(id string) bool { return !slices.Contains(old, id) })
		if len(left) == 0 {
			return nil
		}
		return on.Run(ctx, node.Command{Argv: append([]string{"crictl", "--timeout", sandboxTime.String(), "stopp"}, left...)})
	})
}

// FlannelSubnet is the subnet in flannel's subnet.env, "" when there is none.
func FlannelSubnet(text string) string {
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), "FLANNEL_SUBNET="); found {
			if p, err := netip.ParsePrefix(value); err == nil {
				return p.Masked().String()
			}
		}
	}
	return ""
}
