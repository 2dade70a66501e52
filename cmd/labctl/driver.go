package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"k8slab/lab"
	"k8slab/lab/node"
)

// driver reaches the lab for scenarios: nodes over this process's connections, and labctl as a process of its own, as a person would call it.
type driver struct {
	app *app
	lab *lab.Lab
}

func (d driver) Run(ctx context.Context, name string, argv ...string) (string, error) {
	var out bytes.Buffer
	err := d.lab.Do(ctx, name, node.Command{Argv: argv, Stdout: &out})
	return out.String(), err
}

func (d driver) Labctl(ctx context.Context, args ...string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	file, err := d.app.description()
	if err != nil {
		return "", err
	}
	var out, errs bytes.Buffer
	flags := []string{"--config", file}
	if d.lab.Closed().Cluster.OverSSH() { // the person agreed to the fault, and with it to its end
		flags = append(flags, "--yes")
	}
	if d.app.acceptNew {
		flags = append(flags, "--accept-new")
	}
	cmd := exec.CommandContext(ctx, self, append(flags, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it cleans up
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("labctl %s: %w: %s", strings.Join(args, " "), err, end(errs.String()))
	}
	return out.String(), err
}

// end is the end of a command's output, which has the cause.
func end(s string) string {
	const most = 2000
	s = strings.TrimSpace(s)
	return s[max(0, len(s)-most):]
}
