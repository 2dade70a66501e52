package lab

import (
	"testing"

	"k8slab/lab/bringup"
	"k8slab/lab/labtest"
	"k8slab/lab/repair"
)

// A Node with a machine-id that no machine has, or another's, is no dead end while this machine's kubelet keeps it alive: `up` and a repair
// stop that kubelet, wait until the Lease has run out, and join the machine again.
func TestNodeOfAnotherMachineID(t *testing.T) {
	damages := map[string]func(*world){
		"nobody's in the Node":      func(w *world) { w.machineID("w1", "0123456789abcdef0123456789abcdef") },
		"somebody's in the machine": func(w *world) { w.box("w1").facts.MachineID = "0123456789abcdef0123456789abcdef" },
		"another machine's in the Node": func(w *world) {
			w.machineID("w1", w.box("cp2").facts.MachineID)
			w.box("cp2").facts.Node = "cp2"
		},
	}
	ways := map[string]func(*testing.T, *world) error{
		"up": func(t *testing.T, w *world) error { return w.lab.Up(t.Context(), bringup.StageProof) },
		"repair": func(t *testing.T, w *world) error {
			_, err := w.lab.Repair(t.Context(), false, repair.Restart)
			return err
		},
	}
	for name, damage := range damages {
		for way, do := range ways {
			inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
				w.up()
				w.clean()
				w.change(func() { damage(w); w.renew("w1") })
				if err := do(t, w); err != nil {
					t.Errorf("%s: %s: %v", name, way, err)
				}
				w.wantHealthy()
				if w.rungsTaken("w1") == nil || len(w.members) != 3 {
					t.Errorf("%s: %s: changed %q", name, way, w.lab.Changes())
				}
			})
		}
	}
}

// machineID writes it into the Node.
func (w *world) machineID(node, id string) {
	w.objects["/api/v1/nodes/"+node]["status"].(object)["nodeInfo"].(object)["machineID"] = id
}

// The cluster is opened with the credentials of a control plane that has them whole.
func TestAdminOfAnotherControlPlane(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		w.change(func() { w.box("cp1").files[kubernetes+"admin.conf"] = "" })
		found, err := w.lab.Repair(t.Context(), false, repair.Restart)
		if f := find(found, "cp1"); err != nil || f.Did != "had kubeadm make it: kubeadm init phase kubeconfig admin" {
			t.Errorf("%+v, %v", found, err)
		}
		w.wantHealthy()
	})
}
