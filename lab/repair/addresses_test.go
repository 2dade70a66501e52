package repair

import (
	"testing"

	"k8slab/lab/cluster"
	"k8slab/lab/join"
	"k8slab/lab/kube"
)

func TestStrangersGetAnotherAddressOnlyWhereTheNetworkIsRepaired(t *testing.T) {
	nodes := []kube.Node{{Name: "w1", IP: "10.30.0.21", PodCIDR: "10.244.1.0/24"}, {Name: "w2", IP: "10.30.0.22", PodCIDR: "10.244.2.0/24"}}
	pod := func(name, node, ip string) kube.Pod {
		return kube.Pod{Name: name, Node: node, IP: ip, Phase: "Running"}
	}
	pods := func() []kube.Pod {
		return []kube.Pod{
			pod("well", "w1", "10.244.1.7"), pod("host", "w1", "10.30.0.21"), pod("old", "w1", "10.99.0.2"),
			pod("moved", "w2", "10.244.1.9"), pod("gone", "w3", "10.99.0.3"), pod("new", "w1", ""),
		}
	}
	r := &repairRun{Run: cluster.New(nil, map[string]join.Facts{"w1": {}, "w2": {}}, nil)}
	if got := r.misaddressed(pods(), nodes); len(got) != 2 || got[0].Name != "old" || got[1].Name != "moved" {
		t.Errorf("%+v", got)
	}
	r.found = []Repaired{{Node: "w1", Left: "its configuration is its owner's"}}
	r.Run = cluster.New(nil, map[string]join.Facts{"w1": {}}, nil)
	if got := r.misaddressed(pods(), nodes); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
