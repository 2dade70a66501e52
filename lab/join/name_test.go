package join

import (
	"strings"
	"testing"
	"time"

	"k8slab/lab/kube"
)

func TestJudgeName(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const mine, other, uuid = "aaaa", "bbbb", "6f1d0f5c-2f4e-4c53-9a55-0d6f3c1e2b7a"
	domain := func(node, id string, running bool) NamedMachine {
		return NamedMachine{Node: node, Identity: Identity{Machine: id}, Running: running}
	}
	tests := []struct {
		name    string
		claim   NameClaim
		renewed time.Duration // ago; 0 for no Lease
		want    bool          // the Node may be deleted
		retry   time.Duration
		says    string
	}{
		{"the same machine, just reset", NameClaim{Node: kube.Node{MachineID: mine, Ready: true}}, time.Second, true, 0, "this machine's own"},
		{"the same machine, among the lab's", NameClaim{Node: kube.Node{MachineID: mine}, Domains: []NamedMachine{domain("w1", mine, true)}}, time.Hour, true, 0, "own"},
		{"another that renews its Lease", NameClaim{Node: kube.Node{MachineID: other, Ready: true}}, 12 * time.Second, false, 28 * time.Second, "machine-id bbbb, which is alive: it renewed its Lease 12s ago"},
		{"another that renewed it just in time", NameClaim{Node: kube.Node{MachineID: other}}, AliveFor - time.Millisecond, false, time.Millisecond, "alive"},
		{"another whose Lease is from the future", NameClaim{Node: kube.Node{MachineID: other}}, -time.Minute, false, AliveFor, "alive"},
		{"another that let it run out", NameClaim{Node: kube.Node{MachineID: other, Ready: true}}, AliveFor, true, 0, "is gone: its Lease was renewed 40s ago"},
		{"another that never had one", NameClaim{Node: kube.Node{MachineID: other}}, 0, true, 0, "it has no Lease"},
		{"another of the lab that runs but is silent", NameClaim{Node: kube.Node{MachineID: other}, Domains: []NamedMachine{domain("w2", other, true)}}, time.Hour, false, 0, "belongs to w2 of this lab (machine-id bbbb), which runs"},
		{"another of the lab that is off", NameClaim{Node: kube.Node{MachineID: other}, Domains: []NamedMachine{domain("w2", other, false)}}, time.Hour, true, 0, "gone"},
		{"the lab's machine of that name runs, and a stranger wants its name", NameClaim{Node: kube.Node{MachineID: ""}, Domains: []NamedMachine{domain("w1", other, true)}}, 0, false, 0, "belongs to w1"},
		{"a machine that is not told", NameClaim{Node: kube.Node{MachineID: ""}}, time.Second, false, 39 * time.Second, "machine-id unknown"},
		{"a joiner that does not tell its own", NameClaim{Node: kube.Node{MachineID: ""}, Joiner: Identity{UUID: uuid}}, time.Hour, false, 0, "does not tell its machine-id"},
		// Virtual machines.
		{"the same virtual machine", NameClaim{UUIDs: true, Node: kube.Node{MachineID: mine, SystemUUID: strings.ToUpper(uuid)}}, time.Second, true, 0, "own"},
		{"a clone that is alive", NameClaim{UUIDs: true, Node: kube.Node{MachineID: mine, SystemUUID: "c10e"}}, time.Second, false, 39 * time.Second, "this one's machine-id and another system UUID, c10e"},
		{"the same one made anew", NameClaim{UUIDs: true, Node: kube.Node{MachineID: mine, SystemUUID: "01d"}, Domains: []NamedMachine{domain("w1", mine, true)}}, time.Minute, true, 0, "gone"},
		{"a container shows its computer's UUID", NameClaim{Node: kube.Node{MachineID: mine, SystemUUID: "c10e"}}, time.Second, true, 0, "own"},
		{"two containers of one computer", NameClaim{Node: kube.Node{MachineID: other, SystemUUID: uuid}}, time.Second, false, 39 * time.Second, "alive"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := tt.claim
			c.Node.Name, c.Now = "w1", now
			if c.Joiner == (Identity{}) {
				c.Joiner = Identity{Machine: mine, UUID: uuid}
			}
			if tt.renewed != 0 {
				c.Renewed = now.Add(-tt.renewed)
			}
			got := JudgeName(c)
			if got.Delete != tt.want || got.Retry != tt.retry || !strings.Contains(got.Reason, tt.says) {
				t.Errorf("got %+v, want %v, %s, %q", got, tt.want, tt.retry, tt.says)
			}
		})
	}
}
