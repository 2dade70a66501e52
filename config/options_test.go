package config

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestOptionProblems(t *testing.T) {
	const k, sets, remove = "2: kubernetes.kubeadm.", "labctl sets it: ", "; remove it here"
	const rely = "the lab's checks and repairs rely on kubeadm's default"
	of := func(text string) string { return plane + "kubernetes: {kubeadm: {" + text + "}}" }
	runProblemTests(t, []problemTest{
		{"every problem at once", of("cluster: {clusterName: x, kind: y, networking: {podSubnet: z, dnsDomain: q}}, kube_proxy: {clusterCIDR: x}, " +
			"kubelet: {cgroupDriver: x, authentication: {x509: {}, anonymous: {enabled: true}}}"), []string{
			k + "cluster.kind: " + sets + "labctl writes it" + remove,
			k + "cluster.clusterName: " + sets + "it is the lab's name: use name" + remove,
			k + "cluster.networking.podSubnet: " + sets + "use network.pod_subnet" + remove,
			k + "cluster.networking.dnsDomain: " + sets + rely + remove,
			k + "kube_proxy.clusterCIDR: " + sets + "use network.pod_subnet" + remove,
			k + "kubelet.authentication.x509: " + sets + rely + remove,
			k + "kubelet.cgroupDriver: " + sets + "containerd of the node image is the runtime" + remove,
		}},
		{"an argument of a component", of("cluster: {apiServer: {extraArgs: [{name: v, value: '4'}, {name: advertise-address, value: 10.0.0.1}]}}"), []string{
			k + "cluster.apiServer.extraArgs[1]: " + sets + "the lab's nodes and checks rely on kubeadm's own" + remove,
		}},
		{"what joins and init have alike", of("init: {timeouts: {}, localAPIEndpoint: {}}, join: {timeouts: {}, discovery: {}, nodeRegistration: {name: x, taints: []}}"), []string{
			k + "init.localAPIEndpoint: " + sets + "the lab's nodes and checks rely on it: an address is ip of the node" + remove,
			k + "init.timeouts: " + sets + "labctl's own limits follow from them: use tuning" + remove,
			k + "join.discovery: " + sets + "labctl makes it for each join" + remove,
			k + "join.nodeRegistration.name: " + sets + "use name of the node" + remove,
			k + "join.nodeRegistration.taints: " + sets + "use taints of the role or the node" + remove,
			k + "join.timeouts: " + sets + "labctl's own limits follow from them: use tuning" + remove,
		}},
		{"what is not reserved", of("cluster: {apiServer: {certSANs: [a]}, caCertificateValidityPeriod: 1000h}, init: {nodeRegistration: {imagePullSerial: false}}"), nil},
		{"arguments of kubelet differ", of("init: {nodeRegistration: {kubeletExtraArgs: [{name: v, value: '4'}]}}"), []string{
			k[:len(k)-1] + ".join.nodeRegistration.kubeletExtraArgs: it differs from kubernetes.kubeadm.init; write the same in both, because a node may " +
				"be initialised and join later; for some nodes only, use kubelet of their role or of the node",
		}},
		{"gates twice", plane + "kubernetes: {feature_gates: {A: true}, kubeadm: {cluster: {scheduler: {extraArgs: [{name: feature-gates, value: B=true}]}}}}", []string{
			k + "cluster.scheduler.extraArgs[0]: kubernetes.feature_gates sets it too; write all feature gates there, or all here",
		}},
		{"gates", plane + "kubernetes: {feature_gates: {A,B: true, C: maybe, 'D=x,E': false, F: ~}}", []string{
			`2: kubernetes.feature_gates.C: found the text "maybe"; use true or false`,
			`2: kubernetes.feature_gates."D=x,E": it is not the name of a feature gate, such as InPlacePodVerticalScaling`,
		}},
		{"a patch of no target", of("patches: {kubelet+merge: {}}"), []string{
			k + "patches.\"kubelet+merge\": it is not TARGET[SUFFIX][+TYPE]; use a target of etcd, kube-apiserver, kube-controller-manager, kube-scheduler, " +
				"corednsdeployment, a suffix of lowercase letters and digits, and strategic, merge or json",
		}},
		{"a patch's path", of("patches: {etcd/../x: {}, kubeletconfiguration: {}, etcd1+json: {}, etcd2: []}"), []string{
			k + `patches."etcd/../x": it is not TARGET[SUFFIX][+TYPE]; use a target of etcd, kube-apiserver, kube-controller-manager, kube-scheduler, ` +
				"corednsdeployment, a suffix of lowercase letters and digits, and strategic, merge or json",
			k + "patches.\"etcd1+json\": a JSON patch is a list of operations",
			k + "patches.etcd2: use a mapping, or +json in the name for a list of operations",
			k + "patches.kubeletconfiguration: use kubernetes.kubeadm.kubelet, or kubelet of the role or the node",
		}},
		{"fragments", of("cluster: [], kubelet: {a: &x 1, b: *x, 10: y, c: .inf, d: 010, e: 2026-01-01, a: 2}, bogus: {}"), []string{
			k + `cluster: found a list; use a mapping`,
			k + `kubelet.b: aliases are not accepted; write the value out`,
			k + `kubelet: found the number "10" as a key; use text (in quotes when it looks like a number, date or true/false)`,
			k + `kubelet.c: found the number ".inf"; use a number in plain digits`,
			k + `kubelet.d: found the number "010"; use a whole number in plain digits`,
			k + `kubelet.e: found the date "2026-01-01"; use text (in quotes when it looks like a number, date or true/false)`,
			k + `kubelet.a: the key is already on line 2; keep one of them`,
			k + `bogus: unknown key; accepted keys: cluster, init, join, kubelet, kube_proxy, patches`,
		}},
		{"nodes", plane + "resources: {worker: {labels: {node-role.kubernetes.io/gpu: '', 'a b': c, ok: 'x y', topology.kubernetes.io/zone: z}, " +
			"taints: [a, 'b:NoWay', 'c=d:NoSchedule', 'e:NoExecute'], disks: [0, 5, 5000], kubelet: {registerWithTaints: []}}}", []string{
			"2: resources.worker.kubelet.registerWithTaints: " + sets + "use taints of the role or the node" + remove,
			`2: resources.worker.labels."a b": "a b"="c" is not a label`,
			`2: resources.worker.labels."node-role.kubernetes.io/gpu": kubelet may not give its own Node this label; use another namespace, or node.kubernetes.io/`,
			`2: resources.worker.labels.ok: "ok"="x y" is not a label`,
			`2: resources.worker.taints[0]: "a" is not a taint; use KEY[=VALUE]:EFFECT with the effect NoSchedule, PreferNoSchedule, NoExecute`,
			`2: resources.worker.taints[1]: "b:NoWay" is not a taint; use KEY[=VALUE]:EFFECT with the effect NoSchedule, PreferNoSchedule, NoExecute`,
			`2: resources.worker.disks[0]: 0 is out of range; use 1 to 4096 GiB`,
			`2: resources.worker.disks[2]: 5000 is out of range; use 1 to 4096 GiB`,
		}},
		{"too many disks", strings.Replace(plane, "}]", ", disks: [1"+strings.Repeat(", 1", 16)+"]}]", 1),
			[]string{"1: nodes[0].disks: 17 disks are too many; use at most 16"}},
		{"machines that exist", "machines: ssh\nkubernetes: {version: v1.36.3, feature_gates: {A: true}, kubeadm: {kubelet: {}}}\n" + strings.Replace(plane, "}]", ", labels: {a: b}}]", 1), []string{
			"2: kubernetes.feature_gates: not with machines: ssh: labctl does not set up these machines, and the cluster has its own settings; remove it",
			"2: kubernetes.kubeadm: not with machines: ssh: labctl does not set up these machines, and the cluster has its own settings; remove it",
			"3: nodes[0].labels: not with machines: ssh: labctl does not set up these machines; remove it",
		}},
	})
}

// A node's own options come before those of its role.
func TestOptionsOf(t *testing.T) {
	c := load(t, "testdata/options.yaml")
	tests := map[string]NodeOptions{
		"cp1": {Kubelet: Fragment{}, Labels: map[string]string{}, Taints: List[string]{}},
		"cp2": {Kubelet: Fragment{}, Labels: map[string]string{}, Taints: List[string]{"lab.example/only=etcd:NoSchedule", "slow:PreferNoSchedule"}},
		"w1": {
			Kubelet: Fragment{"maxPods": 32, "evictionHard": Fragment{"memory.available": "50Mi"}},
			Labels:  map[string]string{"lab.example/disk": "ssd", "rack": "b"}, Taints: List[string]{"gpu:NoExecute"}, Disks: List[int]{30},
		},
	}
	for name, want := range tests {
		n, _ := c.Node(name)
		if got := c.OptionsOf(n); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestMerge(t *testing.T) {
	arg := func(name, value string) any { return Fragment{"name": name, "value": value} }
	tests := []struct {
		name                 string
		document, over, want Fragment
	}{
		{"nothing", Fragment{"a": 1}, nil, Fragment{"a": 1}},
		{"into nothing", nil, Fragment{"a": Fragment{"b": 1}}, Fragment{"a": Fragment{"b": 1}}},
		{"mappings", Fragment{"a": Fragment{"b": 1, "c": 2}}, Fragment{"a": Fragment{"c": 3}}, Fragment{"a": Fragment{"b": 1, "c": 3}}},
		{"another type", Fragment{"a": 1, "b": Fragment{}}, Fragment{"a": Fragment{"c": 1}, "b": "x"}, Fragment{"a": Fragment{"c": 1}, "b": "x"}},
		{"plain lists", Fragment{"a": []any{"x"}}, Fragment{"a": []any{"y"}}, Fragment{"a": []any{"y"}}},
		{"named lists", Fragment{"a": []any{arg("v", "1"), arg("w", "2")}}, Fragment{"a": []any{arg("v", "3"), arg("x", "4")}},
			Fragment{"a": []any{arg("w", "2"), arg("v", "3"), arg("x", "4")}}},
		{"a name several times", Fragment{"a": []any{arg("v", "1")}}, Fragment{"a": []any{arg("v", "2"), arg("v", "3")}},
			Fragment{"a": []any{arg("v", "2"), arg("v", "3")}}},
	}
	for _, tt := range tests {
		before := Merge(tt.document, nil)
		if got := Merge(tt.document, tt.over); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
		if !reflect.DeepEqual(Merge(tt.document, nil), before) {
			t.Errorf("%s: the document became %v", tt.name, tt.document)
		}
	}
}

// Every reserved field is found where it stands.
func TestReservedFieldsAreFound(t *testing.T) {
	for _, r := range reserved {
		for path := range strings.FieldsSeq(r.fields) {
			var value any = true
			steps := strings.Split(path, ".")
			for i := len(steps) - 1; i >= 0; i-- {
				if i > 0 && strings.HasSuffix(steps[i-1], "xtraArgs") {
					value = []any{Fragment{"name": steps[i], "value": "x"}}
					continue
				}
				value = Fragment{steps[i]: value}
			}
			for document := range strings.FieldsSeq(r.documents) {
				d := newDocument("f")
				d.checkReserved(document, "at", value.(Fragment))
				if len(d.problems) == 0 || !strings.Contains(d.problems.Error(), r.why) {
					t.Errorf("%s of %s: %v", path, document, d.problems)
				}
			}
		}
	}
}

func TestYAMLKeepsOptions(t *testing.T) {
	data, err := os.ReadFile("testdata/options.yaml")
	if err != nil {
		t.Fatal(err)
	}
	checkYAML(t, data)
	checkYAML(t, []byte(plane+"kubernetes: {kubeadm: {kubelet: {a: 'true', b: '10', c: 1.5, d: [x, {e: -1}], f: \"x\\ny: &z\", g: {}}}}"))
}
