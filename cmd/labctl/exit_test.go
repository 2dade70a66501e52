package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8slab/config"
	"k8slab/lab/golden"
	"k8slab/lab/health"
	"k8slab/lab/machine"
	"k8slab/lab/node"
)

func TestExitCode(t *testing.T) {
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	remote := &node.ExitError{Status: 7}
	tests := []struct {
		name        string
		ctx         context.Context
		err         error
		passthrough bool
		want        int
		says        string
	}{
		{"done", t.Context(), nil, false, 0, ""},
		{"failed", t.Context(), errors.New("why"), false, exitFailed, "labctl: why\n"},
		{"usage", t.Context(), usageError{errors.New("how")}, false, exitUsage, "labctl: how\n"},
		{"configuration", t.Context(), fmt.Errorf("x: %w", config.Problems{}), false, exitUsage, "labctl: x: "},
		{"unhealthy", t.Context(), exitStatus(1), false, 1, ""},
		{"interrupted", interrupted, context.Canceled, false, exitInterrupted, "labctl: interrupted"},
		{"done in spite of Ctrl-C", interrupted, nil, false, 0, ""},
		{"a command on a node", t.Context(), remote, true, 7, ""},
		{"a command of labctl's own on a node", t.Context(), remote, false, exitFailed, "labctl: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stderr bytes.Buffer
			a := &app{stderr: &stderr, passthrough: tt.passthrough}
			if got := a.exitCode(tt.ctx, tt.err); got != tt.want || !strings.HasPrefix(stderr.String(), tt.says) || (tt.says == "") != (stderr.Len() == 0) {
				t.Errorf("got %d and %q, want %d and %q", got, stderr.String(), tt.want, tt.says)
			}
		})
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	const token, key = "abcdef.0123456789abcdef", "6bd1a5a1b3a3d8f1e0c9b7a65443322110ffeeddccbbaa99887766554433221f"
	var stderr bytes.Buffer
	a := &app{stderr: &stderr}
	a.exitCode(t.Context(), fmt.Errorf("kubeadm join --token %s --certificate-key %s: exit status 1", token, key))
	if got := stderr.String(); strings.Contains(got, "0123456789abcdef") || strings.Contains(got, key) || !strings.Contains(got, "exit status 1") {
		t.Errorf("printed %q", got)
	}
}

func TestPrintStatus(t *testing.T) {
	node := func(name string, state machine.State, ready bool, etcd string, started bool) health.NodeStatus {
		return health.NodeStatus{Name: name, Role: config.ControlPlane, IP: "10.30.0.11", Machine: state, Ready: ready, Etcd: etcd, Started: started}
	}
	tests := []struct {
		name   string
		status health.Status
	}{
		{"healthy", health.Status{Healthy: true, Nodes: []health.NodeStatus{node("cp1", machine.Running, true, "voter", true)}}},
		{"broken", health.Status{Problems: []string{"API server ready: no answer", "etcd"}, Nodes: []health.NodeStatus{
			node("cp1", machine.Running, false, "learner", false), node("cp2", machine.Absent, false, "none", false)}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			printStatus(&out, tt.status)
			golden.Check(t, "status-"+tt.name+".txt", out.String())
		})
	}
}

// A child gets the terminal's Ctrl-C twice, and has to clean up all the same.
func TestPressedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal)
		ended := false
		go func() {
			pressedAgain(signals)
			ended = true
		}()
		time.Sleep(samePress / 10)
		signals <- os.Interrupt
		synctest.Wait()
		if ended {
			t.Error("one Ctrl-C is taken for two")
		}
		time.Sleep(samePress)
		signals <- os.Interrupt
		synctest.Wait()
		if !ended {
			t.Error("the second Ctrl-C does not end it")
		}
	})
}
