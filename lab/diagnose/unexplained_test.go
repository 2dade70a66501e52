package diagnose

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8slab/lab/diagnose/fact"
	joining "k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

func TestUnexplained(t *testing.T) {
	tests := []struct {
		name, want string // the findings that fail, as KIND@NODE
		damage     func(*fact.Facts)
	}{
		{"nothing", "", func(*fact.Facts) {}},
		{"a condition of the whole cluster", "unexplained (CoreDNS)@", func(f *fact.Facts) { f.Proof[1].Error = "0 of 2 pods ready" }},
		{"it came too late", "", func(f *fact.Facts) { f.Proof[1].Error, f.Proof[1].Late = "no answer within 6s", true }},
		{"a condition of a node", "unexplained (pod network)@w1", func(f *fact.Facts) { f.Proof[2].Node, f.Proof[2].Error = "w1", "timeout" }},
		{"an organ of a node", "unexplained (sandbox)@w1", func(f *fact.Facts) {
			f.Machine("w1").Inside.Organs = []fact.Organ{{Name: "sandbox", Error: "runc: exit status 1"}, {Name: "forwarding"}}
		}},
		{"another finding of the node explains it", "machine-paused@w1", func(f *fact.Facts) {
			f.Machine("w1").State, f.Proof[2].Node, f.Proof[2].Error = "paused", "w1", "timeout"
		}},
		{"another finding explains the cluster's", "machine-paused@w1", func(f *fact.Facts) {
			f.Machine("w1").State, f.Proof[1].Error = "paused", "1 of 2 pods ready"
		}},
		{"a finding of another worker explains nothing", "machine-paused@w2 unexplained (pod network)@w1", func(f *fact.Facts) {
			f.Machine("w2").State, f.Proof[2].Node, f.Proof[2].Error = "paused", "w1", "timeout"
		}},
		{"a pod of the cluster fails", "unexplained (pods)@w1", func(f *fact.Facts) {
			f.API.Pods = []kube.Pod{{Namespace: "kube-system", Name: "coredns-1", Node: "w1", Reason: "StrangeErr", Exited: true}}
		}},
		{"a pod of the cluster crashes", "unexplained (pods)@w1", func(f *fact.Facts) {
			f.API.Pods = []kube.Pod{{Namespace: "k8slab", Name: "probe-1", Node: "w1", Exited: true,
				Reason: "container probe: CrashLoopBackOff: back-off 10s restarting failed container=probe pod=probe-1_k8slab(5a3e)"}}
		}},
		{"a check of a member fails", "unexplained (cluster)@w1", func(f *fact.Facts) {
			fail(f.Machine("w1"), joining.Check{ID: "cluster", Result: joining.Blocked, Evidence: "who knows"})
		}},
		{"labnode is broken", "unexplained (labnode)@w1", func(f *fact.Facts) {
			f.Machine("w1").Inside, f.Machine("w1").Labnode = nil, "exec format error"
		}},
		{"labnode is slow", "", func(f *fact.Facts) {
			f.Machine("w1").Inside, f.Machine("w1").Labnode, f.Machine("w1").Late = nil, "no answer within 7s", true
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := provenFacts()
			tt.damage(&f)
			var got []string
			for _, found := range Judge(f) {
				if c := (&cause{Finding: found}); c.Failed() {
					got = append(got, c.Name()+"@"+found.Node)
				}
			}
			slices.Sort(got)
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("got %q, want %q", text, tt.want)
			}
		})
	}
}

// provenFacts are those of a healthy cluster of which everything was measured.
func provenFacts() fact.Facts {
	f := healthyFacts(2)
	f.Proof = []fact.Organ{{Name: "API server", Detail: "it is ready"}, {Name: "CoreDNS", Detail: "its pods run"}, {Name: "pod network", Detail: "pods reach pods"}}
	return f
}

func TestUnexplainedTellsWhatIsKnown(t *testing.T) {
	f := provenFacts()
	f.Machine("w1").Inside.Organs = []fact.Organ{
		{Name: "sandbox", Detail: "a pod made and removed", Error: "runc: exit status 1", Lines: []string{"containerd: failed to create shim"}}, {Name: "forwarding"},
	}
	found := Judge(f)
	if len(found) != 1 {
		t.Fatalf("%+v", found)
	}
	want := []symptom.Evidence{
		{Source: "a pod made and removed", Text: "runc: exit status 1"},
		{Source: "log", Text: "containerd: failed to create shim"},
		{Source: "ruled out", Text: "these work: API server, CoreDNS, pod network, forwarding"},
	}
	if !slices.Equal(found[0].Evidence, want) || found[0].Hint == "" {
		t.Errorf("%+v", found[0])
	}
}

// However a cluster is damaged: it is healthy only with a proof that holds, and then no finding fails.
func TestOneVerdict(t *testing.T) {
	healthy, ill := 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 28))
		f := provenFacts()
		for range r.IntN(4) {
			randomDamages[r.IntN(len(randomDamages))](r, &f)
		}
		report, err := NewReport(f)
		if err != nil {
			t.Fatal(err)
		}
		broken := slices.ContainsFunc(f.Proof, func(o fact.Organ) bool { return o.Error != "" && !o.Late })
		failing := slices.ContainsFunc(report.Findings, func(f symptom.Finding) bool { return f.Level == symptom.Fail })
		switch {
		case report.Healthy && broken:
			t.Errorf("seed %d: healthy, but the proof fails: %+v", seed, f.Proof)
		case report.Healthy == failing:
			t.Errorf("seed %d: healthy %v with findings %+v", seed, report.Healthy, report.Findings)
		case report.Healthy != (len(report.Problems()) == 0):
			t.Errorf("seed %d: healthy %v with problems %q", seed, report.Healthy, report.Problems())
		}
		for i := range f.Machines { // texts say why, never whether
			if m := &f.Machines[i]; m.Inside != nil {
				m.Inside.Texts = nil
			}
		}
		if brief, err := NewReport(f); err != nil || brief.Healthy != report.Healthy {
			t.Errorf("seed %d: healthy %v, without texts %v, %v", seed, report.Healthy, brief.Healthy, err)
		}
		if report.Healthy {
			healthy++
		} else {
			ill++
		}
	}
	if healthy < 40 || ill < 200 {
		t.Errorf("%d healthy and %d ill clusters prove little", healthy, ill)
	}
}

// randomDamages each change one thing, also such that no rule knows.
var randomDamages = []func(*rand.Rand, *fact.Facts){
	func(r *rand.Rand, f *fact.Facts) {
		o := &f.Proof[r.IntN(len(f.Proof))]
		o.Node, o.Error = []string{"", f.Machines[r.IntN(5)].Name}[r.IntN(2)], "it does not"
	},
	func(r *rand.Rand, f *fact.Facts) {
		f.Proof[r.IntN(3)].Error, f.Proof[r.IntN(3)].Late = "no answer", true
	},
	func(r *rand.Rand, f *fact.Facts) {
		f.Machines[r.IntN(5)].State = []string{"paused", "off", "crashed", "absent"}[r.IntN(4)]
	},
	func(r *rand.Rand, f *fact.Facts) { f.Machines[r.IntN(5)].SSH = "connection refused" },
	func(r *rand.Rand, f *fact.Facts) {
		f.Machines[r.IntN(5)].Inside, f.Machines[r.IntN(5)].Labnode = nil, "exit status 2"
	},
	func(r *rand.Rand, f *fact.Facts) { f.API.Nodes[r.IntN(len(f.API.Nodes))].Ready = false },
	func(r *rand.Rand, f *fact.Facts) {
		n := r.IntN(len(f.API.Nodes))
		f.API.Nodes = slices.Delete(f.API.Nodes, n, n+1)
	},
	func(_ *rand.Rand, f *fact.Facts) { f.API.Error = "connection refused" },
	func(r *rand.Rand, f *fact.Facts) { f.Etcd.Members[r.IntN(3)].Healthy = false },
	func(r *rand.Rand, f *fact.Facts) {
		if n := f.Machines[r.IntN(5)].Inside; n != nil {
			n.Checks[r.IntN(len(n.Checks))].Result = []joining.Result{joining.Blocked, joining.Warn, joining.Fixable}[r.IntN(3)]
		}
	},
	func(r *rand.Rand, f *fact.Facts) {
		if n := f.Machines[r.IntN(5)].Inside; n != nil {
			n.Member[r.IntN(len(n.Member))].Result = joining.Blocked
		}
	},
	func(r *rand.Rand, f *fact.Facts) {
		if n := f.Machines[r.IntN(5)].Inside; n != nil {
			n.Organs = append(n.Organs, fact.Organ{Name: "sandbox", Error: "it fails"})
		}
	},
	func(r *rand.Rand, f *fact.Facts) {
		if m := &f.Machines[r.IntN(5)]; m.Inside != nil {
			journal(m, []string{"kubelet", "containerd", "etcd"}[r.IntN(3)], time.Minute, "dial tcp 192.0.2.11:2379: connect: connection refused",
				30*time.Second, "failed to run Kubelet: validate service connection: no such file", time.Second, "no space left on device")
		}
	},
}
