package provision

import (
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/host"
	"k8slab/lab/labtest"
)

func TestTooLarge(t *testing.T) {
	plenty := host.Size{CPUs: 2, Memory: 16384} // what three control planes and two workers have together
	tests := []struct {
		name    string
		uri     string
		change  func(*config.Cluster)
		has     host.Size
		absent  config.Role // whose machines are to be made; "" is all
		warning string
		errs    []string
	}{
		{"all fit", host.VirtualMachines, nil, plenty, "", "", nil},
		{"all containers fit", host.Containers, nil, plenty, "", "", nil},
		{"more CPUs in all than there are", host.VirtualMachines, nil, host.Size{CPUs: 2, Memory: 1 << 20}, "", "", nil},
		{"too many CPUs", host.Containers, func(c *config.Cluster) { c.Resources.Worker.CPUs = 3 }, plenty, "", "",
			[]string{"resources.worker.cpus: ", "this computer's 2 CPUs, not 3; next: reduce resources.worker.cpus"}},
		{"too much memory", host.Containers, func(c *config.Cluster) { c.Resources.Worker.Memory = 999999 }, plenty, "", "",
			[]string{"resources.worker.memory: ", "this computer's 16384 MiB, not 999999; next: reduce resources.worker.memory"}},
		{"everything at once", host.VirtualMachines, func(c *config.Cluster) {
			c.Resources.ControlPlane = config.Resource{CPUs: 9, Memory: 99999}
			c.Resources.Worker = config.Resource{CPUs: 8, Memory: 88888}
		}, plenty, "", "", []string{"control_plane.cpus: ", "control_plane.memory: ", "worker.cpus: ", "worker.memory: "}},
		{"machines that are there", host.Containers, func(c *config.Cluster) { c.Resources.Worker.CPUs = 3 }, plenty, config.ControlPlane, "", nil},
		{"too much in all for virtual machines", host.VirtualMachines, nil, host.Size{CPUs: 2, Memory: 16383}, config.Worker, "",
			[]string{"the 5 virtual machines need 16384 MiB of memory together, and this computer has 16383", "resources.control_plane.memory (4096)", "resources.worker.memory (2048)"}},
		{"much in all for containers", host.Containers, nil, host.Size{CPUs: 2, Memory: 16383}, "", "the 5 containers may use 16384 MiB together", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := labtest.Cluster(t, labtest.Three)
			if tt.change != nil {
				tt.change(c)
			}
			var absent []config.Node
			for _, n := range c.Members() {
				if tt.absent == "" || n.Role == tt.absent {
					absent = append(absent, n)
				}
			}
			warning, err := tooLarge(c, tt.uri, absent, tt.has)
			if (warning != "") != (tt.warning != "") || !strings.Contains(warning, tt.warning) {
				t.Errorf("warning %q, want %q", warning, tt.warning)
			}
			if (err != nil) != (tt.errs != nil) {
				t.Fatalf("got %v, want %q", err, tt.errs)
			}
			for _, want := range tt.errs {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}
