package reader

import (
	"slices"
	"testing"

	"k8slab/lab/symptom"
)

func TestDuplicateIDs(t *testing.T) {
	const id, other = "4f3b1c0a5b7d4a1ea9a1c3e2b7f0d911", "7a3b1c0a5b7d4a1ea9a1c3e2b7f0d922"
	const uuid = "4f3b1c0a-5b7d-4a1e-a9a1-c3e2b7f0d911"
	for _, tt := range []struct {
		name, text string
		want       bool
	}{
		{"two prompts", "root@w1:~# cat /etc/machine-id\n" + id + "\nroot@w2:~# cat /etc/machine-id\n" + id + "\n", true},
		{"two prompts, two machines", "root@w1:~# cat /etc/machine-id\n" + id + "\nroot@w2:~# cat /etc/machine-id\n" + other + "\n", false},
		{"one machine, twice", "root@w1:~# cat /etc/machine-id\n" + id + "\nroot@w1:~# cat /etc/machine-id\n" + id + "\n", false},
		{"a list", "$ kubectl get nodes -o yaml | grep systemUUID\n    systemUUID: " + uuid + "\n    systemUUID: " + uuid + "\n", true},
		{"two pages", "Name:   w1\n  System UUID:  " + uuid + "\nName:   w2\n  System UUID:  " + uuid + "\n", true},
		{"one page, twice", "Name:   w1\n  System UUID:  " + uuid + "\nName:   w1\n  System UUID:  " + uuid + "\n", false},
		{"Ansible", "w1 | CHANGED | rc=0 >>\nproduct_uuid " + uuid + "\nw2 | CHANGED | rc=0 >>\nproduct_uuid " + uuid + "\n", true},
		{"an identity of each kind", "Name:   w1\n  Machine ID:  " + id + "\n  System UUID:  " + id + "\n", false},
		{"the journal of one machine", "Nov 25 00:42:43 w1 systemd[1]: Commit a transient machine-id on disk was skipped.\n" +
			"Nov 25 00:42:43 w1 systemd-journald[75]: Runtime Journal (/run/log/journal/" + id + ") is 8.0M.\n" +
			"Nov 25 00:42:43 w1 systemd-journald[75]: System Journal (/var/log/journal/" + id + ") is 8.0M.\n", false},
		{"other numbers", "boot " + id + "\nboot " + id + "\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := slices.Contains(symptomsOf(unsuspected(judge(t, tt.text))), symptom.DuplicateMachineIdentity); got != tt.want {
				t.Errorf("found %v, want duplicates %v", symptomsOf(judge(t, tt.text)), tt.want)
			}
		})
	}
}
