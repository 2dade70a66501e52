package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Effects of faults. Each function returns nil once the cluster shows the effect, and an absence when it shows that there is none. Any other
// error says that it cannot tell.

// absence is what the cluster shows when a fault has no effect.
type absence string

func (a absence) Error() string { return string(a) }

func absent(format string, args ...any) error { return absence(fmt.Sprintf(format, args...)) }

// succeeded is the last line of a command's output on a node if it succeeded.
const succeeded = "succeeded"

// says returns nil if the output of the command on the node has one of the words. The command may fail.
func (t Target) says(ctx context.Context, words []string, argv ...string) error {
	out, err := t.Run(ctx, t.Node, append([]string{"sh", "-c", `! "$@" 2>&1 || echo ` + succeeded, "sh"}, argv...)...)
	if err != nil {
		return err
	}
	for _, w := range words {
		if strings.Contains(out, w) {
			return nil
		}
	}
	return unlessSucceeded(fmt.Sprintf("%s on %s says", strings.Join(argv, " "), t.Node), out)
}

// unlessSucceeded is the error for a command that did not fail as expected: an absence if it succeeded.
func unlessSucceeded(what, out string) error {
	if said, ok := strings.CutSuffix(strings.TrimSpace(out), succeeded); ok {
		return absent("%s: %s", what, strings.TrimSpace(said))
	}
	return fmt.Errorf("%s: %s", what, strings.TrimSpace(out))
}

// runtimeSilent returns nil if nothing answers on the runtime's socket.
func runtimeSilent(ctx context.Context, t Target) error {
	return t.says(ctx, []string{"no such file or directory", "connection refused"}, "crictl", "--timeout", "3s", "version")
}

// runtimeInfo is the runtime's status over CRI.
type runtimeInfo struct {
	Status struct {
		Conditions []struct {
			Type   string
			Status bool
		}
	}
}

// networkDown returns nil if the runtime answers that it has no network for pods.
func networkDown(ctx context.Context, t Target) error {
	out, err := t.Run(ctx, t.Node, "crictl", "--timeout", "3s", "info")
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
	return absent("the runtime of %s still has a network for pods", t.Node)
}

const probeSandbox = "fault-probe"

// sandboxFails returns nil if a pod's sandbox cannot be made on the node, for a reason that has the word.
func (t Target) sandboxFails(ctx context.Context, word string) error {
	out, err := t.Run(ctx, t.Node, "sh", "-ec", `
		file=$(mktemp)
		trap 'rm -f "$file"' EXIT
		printf '{"metadata": {"name": "%s", "namespace": "default", "uid": "%s", "attempt": 1}, "linux": {"cgroup_parent": "system.slice"}}' \
			"$1" "$(cat /proc/sys/kernel/random/uuid)" >"$file"
		! crictl --timeout 40s runp "$file" 2>&1 || echo `+succeeded, "sh", probeSandbox)
	if err != nil || strings.Contains(out, word) {
		return err
	}
	return unlessSucceeded("a sandbox on "+t.Node, out)
}

// dropSandboxes removes the sandboxes of sandboxFails if the runtime answers. It tries again, because kubelet removes unknown pods at the same time
// and one of the two may fail.
const dropSandboxes = `
	for try in 1 2 3 4 5; do
		left=$(crictl --timeout 3s pods --quiet --name '^` + probeSandbox + `$' 2>/dev/null) && test -n "$left" || break
		for id in $left; do
			crictl --timeout 20s rmp --force "$id" || sleep 1
		done
	done
`

// kubeletSilent returns nil if the API server answers and gets no answer of the node's kubelet.
func kubeletSilent(ctx context.Context, t Target) error {
	_, err := t.askKubelet(ctx, "healthz")
	if err == nil {
		return absent("the kubelet of %s still answers", t.Node)
	}
	_, apiErr := t.kubectl(ctx, "get", "node", t.Node, "--output=name")
	return apiErr
}

// askKubelet asks the node's kubelet through the API server.
func (t Target) askKubelet(ctx context.Context, path string) (string, error) {
	return t.kubectl(ctx, "--request-timeout=4s", "get", "--raw", "/api/v1/nodes/"+t.Node+"/proxy/"+path)
}

// kubeletForgot returns nil if the node's kubelet answers and knows none of the pods that the cluster gave it.
func kubeletForgot(ctx context.Context, t Target) error {
	out, err := t.askKubelet(ctx, "pods")
	var list struct{ Items []struct{} }
	if err == nil {
		err = json.Unmarshal([]byte(out), &list)
	}
	if err == nil && len(list.Items) > 0 {
		err = absent("the kubelet of %s knows %d pods", t.Node, len(list.Items))
	}
	return err
}

// Pods of the lab's probe, one on each node.
const (
	probeNamespace = "--namespace=k8slab"
	probePods      = "--selector=app=probe"
)

func (t Target) onNode() string { return "--field-selector=spec.nodeName=" + t.Node }

// renewProbe deletes the node's probe, so that its DaemonSet wants a new pod there.
func (t Target) renewProbe(ctx context.Context) error {
	_, err := t.kubectl(ctx, probeNamespace, "delete", "pod", probePods, t.onNode(), "--wait=false")
	return err
}

// probeStuck returns nil if the events of a probe of the node that is there have the word.
func (t Target) probeStuck(ctx context.Context, word string) error {
	names, err := t.kubectl(ctx, probeNamespace, "get", "pod", probePods, t.onNode(), "--output=jsonpath={.items[*].metadata.name}")
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(names) {
		events, err := t.kubectl(ctx, probeNamespace, "get", "events", "--field-selector=involvedObject.name="+name,
			"--output=jsonpath={range .items[*]}{.message}{\"\\n\"}{end}")
		if err != nil || strings.Contains(events, word) {
			return err
		}
	}
	return fmt.Errorf("no pod on %s fails for %q yet", t.Node, word)
}

// probeAddresses are the addresses of the node's probe: two while a new probe replaces it.
func (t Target) probeAddresses(ctx context.Context) (string, error) {
	return t.kubectl(ctx, probeNamespace, "get", "pod", probePods, t.onNode(), "--output=jsonpath={.items[*].status.podIP}")
}

// probeUnreachable returns nil if the node's probe does not answer another node.
func probeUnreachable(ctx context.Context, t Target) error {
	ip, err := t.probeAddresses(ctx)
	if err == nil && len(strings.Fields(ip)) != 1 {
		err = fmt.Errorf("the probe of %s has the addresses %q", t.Node, ip)
	}
	if err != nil {
		return err
	}
	out, err := t.Run(ctx, t.ControlPlane, "bash", "-c", `timeout 2 bash -c 'exec 3<>/dev/tcp/"$1"/8080' bash "$1" 2>&1 && echo open; true`, "bash", ip)
	if err == nil && strings.Contains(out, "open") {
		err = absent("the probe of %s still answers %s", t.Node, t.ControlPlane)
	}
	return err
}
