package diagnose

import (
	"fmt"
	"slices"

	"k8slab/lab/diagnose/fact"
	joining "k8slab/lab/join"
	"k8slab/lab/symptom"
)

// evident are the causes that a member's measurements show: those that they named, or the one that the runtime's own message names, as
// specific reads it. An organ that fails without showing why is for later rules.
func evident(n *fact.Node, specific func(words string, failure symptom.ID) symptom.ID) []joining.Defect {
	var all []joining.Defect
	for _, o := range n.Organs {
		all = append(all, o.Named...)
		if len(o.Named) > 0 || o.Error == "" || o.Name != fact.OrganSandbox {
			continue
		}
		if id := specific(o.Error, ""); id != "" {
			all = append(all, joining.Defect{Symptom: id, Where: o.Name, Text: o.Error})
		}
	}
	return append(all, unbootable(n)...)
}

// startAtBoot are the units without which a node does not come back after its machine has restarted.
var startAtBoot = []string{"containerd", "crio", "kubelet", "keepalived", "ssh", "sshd"}

// unbootable are the units that run now and would not run again. A masked kubelet is a check's.
func unbootable(n *fact.Node) []joining.Defect {
	var all []joining.Defect
	for _, name := range startAtBoot {
		u := n.Units[name]
		off := slices.Contains([]string{"disabled", "masked", "masked-runtime"}, u.Boot)
		if !off || u.Active != "active" || name == "kubelet" && u.Boot != "disabled" {
			continue
		}
		all = append(all, joining.Defect{Symptom: symptom.FileChanged, Where: name + ".service", Warn: u.Boot == "disabled",
			Text: fmt.Sprintf("it runs, and it is %s: it does not start with the machine", u.Boot),
			Hint: fmt.Sprintf("systemctl unmask %[1]s; systemctl enable %[1]s", name)})
	}
	return all
}
