package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8slab/lab/host"
	"k8slab/lab/kube"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/state"
)

func TestJudgeName(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const mine, other, uuid = "aaaa", "bbbb", "6f1d0f5c-2f4e-4c53-9a55-0d6f3c1e2b7a"
	domain := func(node, id string, running bool) labDomain {
		return labDomain{Node: node, Identity: machineIdentity{Machine: id}, Running: running}
	}
	tests := []struct {
		name    string
		claim   nameClaim
		renewed time.Duration // ago; 0 for no Lease
		want    bool          // the Node may be deleted
		retry   time.Duration
		says    string
	}{
		{"the same machine, just reset", nameClaim{Node: kube.Node{MachineID: mine, Ready: true}}, time.Second, true, 0, "this machine's own"},
		{"the same machine, among the lab's", nameClaim{Node: kube.Node{MachineID: mine}, Domains: []labDomain{domain("w1", mine, true)}}, time.Hour, true, 0, "own"},
		{"another that renews its Lease", nameClaim{Node: kube.Node{MachineID: other, Ready: true}}, 12 * time.Second, false, 28 * time.Second, "machine-id bbbb, which is alive: it renewed its Lease 12s ago"},
		{"another that renewed it just in time", nameClaim{Node: kube.Node{MachineID: other}}, aliveFor - time.Millisecond, false, time.Millisecond, "alive"},
		{"another whose Lease is from the future", nameClaim{Node: kube.Node{MachineID: other}}, -time.Minute, false, aliveFor, "alive"},
		{"another that let it run out", nameClaim{Node: kube.Node{MachineID: other, Ready: true}}, aliveFor, true, 0, "is gone: its Lease was renewed 40s ago"},
		{"another that never had one", nameClaim{Node: kube.Node{MachineID: other}}, 0, true, 0, "it has no Lease"},
		{"another of the lab that runs but is silent", nameClaim{Node: kube.Node{MachineID: other}, Domains: []labDomain{domain("w2", other, true)}}, time.Hour, false, 0, "belongs to w2 of this lab (machine-id bbbb), which runs"},
		{"another of the lab that is off", nameClaim{Node: kube.Node{MachineID: other}, Domains: []labDomain{domain("w2", other, false)}}, time.Hour, true, 0, "gone"},
		{"the lab's machine of that name runs, and a stranger wants its name", nameClaim{Node: kube.Node{MachineID: ""}, Domains: []labDomain{domain("w1", other, true)}}, 0, false, 0, "belongs to w1"},
		{"a machine that is not told", nameClaim{Node: kube.Node{MachineID: ""}}, time.Second, false, 39 * time.Second, "machine-id unknown"},
		{"a joiner that does not tell its own", nameClaim{Node: kube.Node{MachineID: ""}, Joiner: machineIdentity{UUID: uuid}}, time.Hour, false, 0, "does not tell its machine-id"},
		// Virtual machines.
		{"the same virtual machine", nameClaim{Virtual: true, Node: kube.Node{MachineID: mine, SystemUUID: strings.ToUpper(uuid)}}, time.Second, true, 0, "own"},
		{"a clone that is alive", nameClaim{Virtual: true, Node: kube.Node{MachineID: mine, SystemUUID: "c10e"}}, time.Second, false, 39 * time.Second, "this one's machine-id and another system UUID, c10e"},
		{"the same one made anew", nameClaim{Virtual: true, Node: kube.Node{MachineID: mine, SystemUUID: "01d"}, Domains: []labDomain{domain("w1", mine, true)}}, time.Minute, true, 0, "gone"},
		{"a container shows its computer's UUID", nameClaim{Node: kube.Node{MachineID: mine, SystemUUID: "c10e"}}, time.Second, true, 0, "own"},
		{"two containers of one computer", nameClaim{Node: kube.Node{MachineID: other, SystemUUID: uuid}}, time.Second, false, 39 * time.Second, "alive"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := tt.claim
			c.Node.Name, c.Now = "w1", now
			if c.Joiner == (machineIdentity{}) {
				c.Joiner = machineIdentity{Machine: mine, UUID: uuid}
			}
			if tt.renewed != 0 {
				c.Renewed = now.Add(-tt.renewed)
			}
			got := judgeName(c)
			if got.Delete != tt.want || got.Retry != tt.retry || !strings.Contains(got.Reason, tt.says) {
				t.Errorf("got %+v, want %v, %s, %q", got, tt.want, tt.retry, tt.says)
			}
		})
	}
}

type fakeLeases struct {
	renewed time.Time
	err     error
}

func (f fakeLeases) NodeLeaseRenewed(context.Context, string) (time.Time, error) {
	return f.renewed, f.err
}

type fakeDomains struct {
	list []machine.Machine
	err  error
}

func (f fakeDomains) List(context.Context) ([]machine.Machine, error) { return f.list, f.err }

func TestClaimOf(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	joiner, recorded := machineIdentity{Machine: "m"}, kube.Node{Name: "w1"}
	renewed := time.Now().Add(-time.Minute)
	all := fakeDomains{list: []machine.Machine{{Node: "w1", State: machine.Running, ID: "u1"}, {Node: "w2", State: machine.Paused, ID: "u2"}, {Node: "w3", State: machine.Off}}}
	got, err := claimOf(t.Context(), s, fakeLeases{renewed: renewed}, all, joiner, recorded)
	if err != nil {
		t.Fatal(err)
	}
	if got.Virtual || got.Joiner != joiner || got.Node != recorded || !got.Renewed.Equal(renewed) || time.Since(got.Now) > time.Minute || len(got.Domains) != 3 {
		t.Errorf("got %+v", got)
	}
	// A paused machine goes on, and is as little gone as one that runs.
	for i, want := range []bool{true, true, false} {
		if d := got.Domains[i]; d.Running != want || d.Identity.Machine != state.MachineID(s.ID, d.Node) {
			t.Errorf("got %+v", d)
		}
	}
	s.URI = host.VirtualMachines
	if got, err = claimOf(t.Context(), s, fakeLeases{}, all, joiner, recorded); err != nil || !got.Virtual {
		t.Errorf("got %+v, %v", got, err)
	}
	// Not knowing must not look like gone.
	why := errors.New("no answer")
	if _, err := claimOf(t.Context(), s, fakeLeases{err: why}, all, joiner, recorded); !errors.Is(err, why) {
		t.Errorf("no Lease: %v", err)
	}
	if _, err := claimOf(t.Context(), s, fakeLeases{}, fakeDomains{err: why}, joiner, recorded); !errors.Is(err, why) {
		t.Errorf("no libvirt: %v", err)
	}
}
