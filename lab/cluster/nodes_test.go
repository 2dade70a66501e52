package cluster

import (
	"strings"
	"testing"

	"k8slab/lab/kube"
)

// A node that was joined has pods of its own when its join ends. That of the node before it, which is going, does not count.
func TestRunsOn(t *testing.T) {
	other, going := kube.Pod{Node: "w2", Ready: true}, kube.Pod{Node: "w1", Ready: true, Deleting: true}
	for want, pods := range map[string][]kube.Pod{
		"": nil, "has no pod there yet": {other, going}, "is not ready: ContainerCreating": {other, {Node: "w1", Reason: "ContainerCreating"}},
	} {
		if err := runsOn("w1", "flannel", pods); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v", pods, err)
		}
	}
	if err := runsOn("w1", "flannel", []kube.Pod{going, other, {Node: "w1", Ready: true}}); err != nil {
		t.Error(err)
	}
}
