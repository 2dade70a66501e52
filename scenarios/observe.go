package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// What the cluster shows of a fault. Each is nil once the effect is there, and an absence when the cluster shows that it is not. Any other
// error is no answer.

// absence is what the cluster shows in place of a fault's effect.
type absence string

func (a absence) Error() string { return string(a) }

func absent(format string, args ...any) error { return absence(fmt.Sprintf(format, args...)) }

// succeeded ends the output of a command on a node that did.
const succeeded = "succeeded"

// says wants the command's output on the node, the failed one's too, to have one of the words.
func (s Site) says(ctx context.Context, words []string, argv ...string) error {
	out, err := s.Run(ctx, s.Node, append([]string{"sh", "-c", `! "$@" 2>&1 || echo ` + succeeded, "sh"}, argv...)...)
	if err != nil {
		return err
	}
	for _, w := range words {
		if strings.Contains(out, w) {
			return nil
		}
	}
	return unlessSucceeded(fmt.Sprintf("%s on %s says", strings.Join(argv, " "), s.Node), out)
}

// unlessSucceeded is about a command that did not fail as it was to: an absence if it did not fail at all.
func unlessSucceeded(what, out string) error {
	if said, ok := strings.CutSuffix(strings.TrimSpace(out), succeeded); ok {
		return absent("%s: %s", what, strings.TrimSpace(said))
	}
	return fmt.Errorf("%s: %s", what, strings.TrimSpace(out))
}

// runtimeSilent is nil when nothing answers on the runtime's socket.
func runtimeSilent(ctx context.Context, s Site) error {
	return s.says(ctx, []string{"no such file or directory", "connection refused"}, "crictl", "--timeout", "3s", "version")
}

// runtimeInfo is what the runtime says of itself over CRI.
type runtimeInfo struct {
	Status struct {
		Conditions []struct {
			Type   string
			Status bool
		}
	}
}

// networkDown is nil when the runtime answers that it has no network for pods.
func networkDown(ctx context.Context, s Site) error {
	out, err := s.Run(ctx, s.Node, "crictl", "--timeout", "3s", "info")
	var info runtimeInfo
	if err == nil {
		err = json.Unmarshal([]byte(out), &info)
	}
	if err != nil {
		return err
	}
	for _, c := range info.Status.Conditions {
		if c.Type == "NetworkReady" && !c.Status {
			return nil
		}
	}
	return absent("the runtime of %s still has a network for pods", s.Node)
}

const probeSandbox = "fault-probe"

// sandboxFails is nil when a pod's sandbox cannot be made on the node, for a reason that has the word.
func (s Site) sandboxFails(ctx context.Context, word string) error {
	out, err := s.Run(ctx, s.Node, "sh", "-ec", `
		file=$(mktemp)
		trap 'rm -f "$file"' EXIT
		printf '{"metadata": {"name": "%s", "namespace": "default", "uid": "%s", "attempt": 1}, "linux": {"cgroup_parent": "system.slice"}}' \
			"$1" "$(cat /proc/sys/kernel/random/uuid)" >"$file"
		! crictl --timeout 40s runp "$file" 2>&1 || echo `+succeeded, "sh", probeSandbox)
	if err != nil || strings.Contains(out, word) {
		return err
	}
	return unlessSucceeded("a sandbox on "+s.Node, out)
}

// dropSandboxes removes what sandboxFails left, where the runtime answers. kubelet ends pods that it does not know too, and one of the two may
// fail.
const dropSandboxes = `
	for try in 1 2 3 4 5; do
		left=$(crictl --timeout 3s pods --quiet --name '^` + probeSandbox + `$' 2>/dev/null) && test -n "$left" || break
		for id in $left; do
			crictl --timeout 20s rmp --force "$id" || sleep 1
		done
	done
`

// kubeletSilent is nil when the API server, which answers, gets no answer of the node's kubelet.
func kubeletSilent(ctx context.Context, s Site) error {
	_, err := s.askKubelet(ctx, "healthz")
	if err == nil {
		return absent("the kubelet of %s still answers", s.Node)
	}
	_, apiErr := s.kubectl(ctx, "get", "node", s.Node, "--output=name")
	return apiErr
}

// askKubelet asks the node's kubelet through the API server.
func (s Site) askKubelet(ctx context.Context, path string) (string, error) {
	return s.kubectl(ctx, "--request-timeout=4s", "get", "--raw", "/api/v1/nodes/"+s.Node+"/proxy/"+path)
}

// kubeletForgot is nil when the node's kubelet answers and knows none of the pods that the cluster gave it.
func kubeletForgot(ctx context.Context, s Site) error {
	out, err := s.askKubelet(ctx, "pods")
	var list struct{ Items []struct{} }
	if err == nil {
		err = json.Unmarshal([]byte(out), &list)
	}
	if err == nil && len(list.Items) > 0 {
		err = absent("the kubelet of %s knows %d pods", s.Node, len(list.Items))
	}
	return err
}

// Pods of the lab's probe, one on each node.
const (
	probeNamespace = "--namespace=k8slab"
	probePods      = "--selector=app=probe"
)

func (s Site) onNode() string { return "--field-selector=spec.nodeName=" + s.Node }

// renewProbe deletes the node's probe, so that its DaemonSet wants a new pod there.
func (s Site) renewProbe(ctx context.Context) error {
	_, err := s.kubectl(ctx, probeNamespace, "delete", "pod", probePods, s.onNode(), "--wait=false")
	return err
}

// probeStuck is nil when the events of a probe of the node that is there have the word.
func (s Site) probeStuck(ctx context.Context, word string) error {
	names, err := s.kubectl(ctx, probeNamespace, "get", "pod", probePods, s.onNode(), "--output=jsonpath={.items[*].metadata.name}")
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(names) {
		events, err := s.kubectl(ctx, probeNamespace, "get", "events", "--field-selector=involvedObject.name="+name,
			"--output=jsonpath={range .items[*]}{.message}{\"\\n\"}{end}")
		if err != nil || strings.Contains(events, word) {
			return err
		}
	}
	return fmt.Errorf("no pod on %s fails for %q yet", s.Node, word)
}

// probeAddresses are those of the node's probe; while it is made anew, those of both.
func (s Site) probeAddresses(ctx context.Context) (string, error) {
	return s.kubectl(ctx, probeNamespace, "get", "pod", probePods, s.onNode(), "--output=jsonpath={.items[*].status.podIP}")
}

// probeUnreachable is nil when the node's probe does not answer another node.
func probeUnreachable(ctx context.Context, s Site) error {
	ip, err := s.probeAddresses(ctx)
	if err == nil && len(strings.Fields(ip)) != 1 {
		err = fmt.Errorf("the probe of %s has the addresses %q", s.Node, ip)
	}
	if err != nil {
		return err
	}
	out, err := s.Run(ctx, s.ControlPlane, "bash", "-c", `timeout 2 bash -c 'exec 3<>/dev/tcp/"$1"/8080' bash "$1" 2>&1 && echo open; true`, "bash", ip)
	if err == nil && strings.Contains(out, "open") {
		err = absent("the probe of %s still answers %s", s.Node, s.ControlPlane)
	}
	return err
}
