package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8slab/lab/external"
	"k8slab/scenarios"
)

// outsider is a command that is measured.
type outsider struct {
	command string
	budget  time.Duration
}

// open lends the lab to the command until closing is called.
func (o outsider) open(ctx context.Context, d driver, dir string) (*scenarios.Tool, func(), error) {
	file, err := d.app.description()
	if err != nil {
		return nil, nil, err
	}
	description, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	kubeconfig, err := d.lab.AdminConf(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("the administrator's kubeconfig for the command: %w", err)
	}
	h, err := d.lab.Host()
	if err != nil {
		return nil, nil, err
	}
	lent, err := external.Lend(d.lab.Closed(), h, kubeconfig, description, dir)
	if err != nil {
		return nil, nil, err
	}
	run := func(ctx context.Context, phase scenarios.Phase) (string, error) {
		return lent.Run(ctx, o.command, string(phase), o.budget*time.Duration(d.lab.TimeScale()))
	}
	return &scenarios.Tool{Name: o.command, Run: run}, func() { _ = lent.Close() }, nil
}
