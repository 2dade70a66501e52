package scenarios

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"
)

// More effects of faults, by the rules of observe.go: what the cluster's objects show, and what is served.

// served asks for a path at the node's own address, as a client that trusts the CA, and returns nil if that fails for a reason that has one
// of the words. identity is the path of a client's certificate and key, without their extensions; "" for none.
func served(ca, port, path, identity string, words ...string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		ask := []string{"curl", "--silent", "--show-error", "--max-time", "5", "--cacert", pki + ca}
		if identity != "" {
			ask = append(ask, "--cert", pki+identity+".crt", "--key", pki+identity+".key")
		}
		return t.says(ctx, words, append(ask, "https://"+net.JoinHostPort(t.Address, port)+path)...)
	}
}

// podFails returns nil if a container of the workload's pod on the node does not run, and kubelet says why.
func podFails(namespace, selector string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		out, err := t.kubectl(ctx, "--namespace="+namespace, "get", "pod", "--selector="+selector, t.onNode(), "--output=jsonpath="+
			`{range .items[*].status.containerStatuses[*]}{.ready} {.state.waiting.reason} {.state.terminated.reason}{"\n"}{end}`)
		if err != nil {
			return err
		}
		runs := false
		for line := range strings.Lines(out) {
			switch fields := strings.Fields(line); {
			case len(fields) == 2 && fields[0] == "false" && fields[1] != "ContainerCreating" && fields[1] != "PodInitializing":
				return nil
			case len(fields) == 1 && fields[0] == "true":
				runs = true
			}
		}
		if runs {
			return absent("the pod %s on %s runs", selector, t.Node)
		}
		return fmt.Errorf("the pod %s on %s has not failed yet: %q", selector, t.Node, strings.TrimSpace(out))
	}
}

// noPods returns nil if no pod of kube-system that the selector means is left.
func noPods(selector string) func(context.Context, Target) error {
	return shows("there are no pods "+selector, "--namespace=kube-system", "pod", "--selector="+selector)
}

// gone returns nil if the cluster no longer has the object.
func gone(what ...string) func(context.Context, Target) error {
	return shows("there is no "+strings.Join(what, " "), append(what, "--ignore-not-found")...)
}

// shows returns nil if kubectl names no object.
func shows(nothing string, query ...string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		out, err := t.kubectl(ctx, append([]string{"get", "--output=name"}, query...)...)
		if names := strings.Fields(out); err == nil && len(names) > 0 {
			err = absent("%s is not so: %s", nothing, strings.Join(names, " "))
		}
		return err
	}
}

// leaseAge is how long a Lease of kube-system may be old before nobody holds it: kubeadm's components renew theirs every 2 s, for 15 s.
const leaseAge = 20 * time.Second

// leaderless returns nil if no instance of the component holds its Lease any more.
func leaderless(component string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		out, err := t.kubectl(ctx, "--namespace=kube-system", "get", "lease", component, "--output=jsonpath={.spec.renewTime}")
		if err != nil {
			return err
		}
		renewed, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(out))
		if err == nil && time.Since(renewed) < leaseAge {
			err = absent("%s renewed its Lease at %s", component, renewed.Format(time.RFC3339))
		}
		return err
	}
}

// nodeField reads a field of the Node.
func (t Target) nodeField(ctx context.Context, node, path string) (string, error) {
	out, err := t.kubectl(ctx, "get", "node", node, "--output=jsonpath="+path)
	return strings.TrimSpace(out), err
}

// notReady returns nil once the cluster shows that the node is not Ready.
func notReady(ctx context.Context, t Target) error {
	status, err := t.nodeField(ctx, t.Node, `{.status.conditions[?(@.type=="Ready")].status}`)
	if err == nil && status == "True" {
		err = absent("%s is Ready", t.Node)
	}
	return err
}

// ends returns nil once the static pod's container has ended with the status and kubelet waits to start it again.
func ends(component, status string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		out, err := t.Run(ctx, t.Node, "sh", "-ec", `
			running=$(crictl ps --quiet --state running --name "^$1\$")
			if test -n "$running"; then
				echo running
				exit
			fi
			last=$(crictl ps --all --quiet --latest --name "^$1\$")
			test -n "$last"
			crictl inspect --output go-template --template '{{.status.exitCode}}' "$last"`, "sh", component)
		switch said := strings.TrimSpace(out); {
		case err != nil:
			return err
		case said == "running":
			return absent("%s of %s runs", component, t.Node)
		case said != status:
			return fmt.Errorf("%s of %s ended with %q", component, t.Node, said)
		}
		return nil
	}
}
