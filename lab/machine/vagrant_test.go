package machine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8slab/lab/golden"
	"k8slab/lab/machine"
)

// vagrants is a machine that vagrant made: it has no metadata of the lab's, but the description that the lab gave to the Vagrantfile.
func vagrants(node, id string) string {
	text := domain("lab-"+node, unmarked, "", running)
	description := fmt.Sprintf("<description>node %s of lab lab (%s), made by vagrant</description>", node, id)
	return strings.Replace(text, "<memory>", description+"<memory>", 1)
}

func TestVagrantsMachineIsTheLabs(t *testing.T) {
	l, _ := lab(t, domain("lab-cp1", labID, "cp1", running), vagrants("w1", labID), vagrants("w2", otherID))
	ctx := limited(t)
	machines, err := l.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	makers := map[string]machine.Maker{}
	for _, m := range machines {
		makers[m.Node] = m.Maker
	}
	if len(makers) != 2 || makers["cp1"] != machine.Labctl || makers["w1"] != machine.Vagrant {
		t.Errorf("got %v", makers)
	}
	if state, err := l.State(ctx, "w1"); err != nil || state != machine.Running {
		t.Errorf("w1 is %q, %v", state, err)
	}
	var foreign *machine.ForeignError
	if _, err := l.State(ctx, "w2"); !errors.As(err, &foreign) {
		t.Errorf("w2 of another lab: %v", err)
	}
}

// What Vagrant describes is recognised: the description goes through the Vagrantfile into the domain.
func TestVagrantDescribesItself(t *testing.T) {
	l := machine.Open(machine.Config{URI: "qemu:///system", Lab: "lab", ID: labID})
	m := l.Vagrant(machine.Spec{Node: "w1", MachineID: "0123", CPUs: 2, Memory: 2048, Disk: 20, Boot: machine.Boot{Kernel: "/k", Initrd: "/i", Cmdline: "root=/dev/vda"}}, "/pool")
	description, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "vagrant.json", string(description))
	text := strings.Replace(domain("lab-w1", unmarked, "", running), "<memory>", "<description>"+m.Description+"</description><memory>", 1)
	real, _ := lab(t, text)
	if list, err := real.List(limited(t)); err != nil || len(list) != 1 || list[0].Node != "w1" {
		t.Errorf("read back: %+v, %v", list, err)
	}
}
