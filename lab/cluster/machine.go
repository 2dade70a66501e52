package cluster

import (
	"context"
	"errors"
	"time"

	"k8slab/config"
	"k8slab/lab/machine"
	"k8slab/lab/provision"
	"k8slab/lab/session"
	"k8slab/lab/wait"
)

// Runs tells whether the node's machine is known to be on.
func (c *Run) Runs(ctx context.Context, name string) bool {
	state, err := c.MachineState(ctx, name)
	return err == nil && state == machine.Running
}

// Restart turns the node's machine off and on, and waits until it answers.
func (c *Run) Restart(ctx context.Context, n config.Node) error {
	if c.Answers(n.Name) { // a virtual machine loses what it has not written yet
		once, cancel := c.Within(ctx, 10*time.Second)
		_ = session.Do(once, c.Nodes[n.Name], "sync") // a disk that does not answer is a reason to restart
		cancel()
	}
	if c.Cluster.OverSSH() {
		return c.reboot(ctx, n)
	}
	if err := provision.Power(ctx, c.Session, n.Name, c.Machines.PowerOff); err != nil {
		return err
	}
	if err := provision.Make(ctx, c.Session, n); err != nil {
		return err
	}
	return c.RefreshFacts(ctx, n)
}

// rebootBudget is how long a machine may take to answer again. A server's firmware alone can take minutes.
const rebootBudget = 15 * time.Minute

// reboot has the machine restart itself, and waits until it answers after that.
func (c *Run) reboot(ctx context.Context, n config.Node) error {
	on := c.Nodes[n.Name]
	started := func(ctx context.Context) (string, error) { // which boot it is; a container shares the kernel's
		return on.Read(ctx, "sh", "-c", "cat /proc/sys/kernel/random/boot_id; cut -d' ' -f22 /proc/1/stat")
	}
	before, err := started(ctx)
	if err != nil {
		return err
	}
	once, cancel := c.Within(ctx, 10*time.Second)
	defer cancel()
	_ = session.Do(once, on, "systemctl", "reboot") // it may be gone before it has answered
	step := c.Events.Start(n.Name, "reboot", rebootBudget)
	err = wait.For(ctx, n.Name+" to restart", rebootBudget, time.Second, session.ShowWaiting(step, func(ctx context.Context) error {
		now, err := started(ctx)
		if err == nil && now == before {
			err = errors.New("it still runs")
		}
		return err
	}))
	if err := step.End(err); err != nil {
		return err
	}
	return c.RefreshFacts(ctx, n)
}

// Recreate takes the node out of the cluster, deletes its machine with the disk, makes the machine anew and joins it. It asks the old
// machine for nothing.
func (c *Run) Recreate(ctx context.Context, n config.Node) error {
	if c.only(n) {
		return errOnly
	}
	if err := Removable(ctx, c.Session, n.Name); err != nil {
		return err
	}
	if err := c.takeOut(ctx, n, (*nodeJoin).clearSilent); err != nil {
		return err
	}
	if err := provision.Make(ctx, c.Session, n); err != nil {
		return err
	}
	if err := c.RefreshFacts(ctx, n); err != nil {
		return err
	}
	return c.joinOne(ctx, n)
}
