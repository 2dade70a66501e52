package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"k8slab/config"
	"k8slab/lab/golden"
	"k8slab/lab/health"
	"k8slab/lab/machine"
	"k8slab/lab/state"
	"k8slab/scenarios"
)

func TestStatusSchema(t *testing.T) {
	schema := golden.ReadSchema(t, "../../docs/schema/status.v1.json")
	schema.CheckType(t, reflect.TypeFor[health.Status]())
	schema.Check(t, health.Status{Schema: health.StatusSchema, Name: "lab", Healthy: true, Libvirt: "lxc:///system of the lab's own", Warnings: []string{"x"},
		Nodes: []health.NodeStatus{{Name: "cp1", Role: config.ControlPlane, IP: "10.30.0.11", Machine: machine.Running, Ready: true, Etcd: "voter", Started: true, Maker: machine.Vagrant}}})
	schema.Check(t, health.Status{Schema: health.StatusSchema, Changed: []state.Difference{{Key: "nodes[w1].ip", Made: "a", Way: state.Removes, Takes: "reset"}}, Problems: []string{"x"}})

	alone(t)
	for _, file := range []string{small, later} {
		_, stdout, _ := labctl(t, "status", "-c", file, "-o", "json")
		schema.Check(t, json.RawMessage(stdout))
	}
}

func TestDiagnoseSchema(t *testing.T) {
	alone(t)
	schema := golden.ReadSchema(t, "../../docs/schema/diagnose.v1.json")
	for _, text := range []string{refused, "all is well\n"} {
		_, stdout, _ := labctl(t, "diagnose", "--from", textFile(t, text), "-o", "json")
		schema.Check(t, json.RawMessage(stdout))
	}
}

func TestFaultListSchema(t *testing.T) {
	schema := golden.ReadSchema(t, "../../docs/schema/fault-list.v1.json")
	schema.CheckType(t, reflect.TypeFor[faultList]())
	alone(t)
	status, stdout, _ := labctl(t, "-c", small, "fault", "list", "-o", "json")
	if status != 0 {
		t.Errorf("status %d", status)
	}
	schema.Check(t, json.RawMessage(stdout))
	schema.Check(t, faultList{faultListSchema, listFaults([]scenarios.Injected{{Fault: "missing-cni", Node: "w1"}})})
}

func TestFaultResultSchema(t *testing.T) {
	schema := golden.ReadSchema(t, "../../docs/schema/fault-result.v1.json")
	schema.CheckType(t, reflect.TypeFor[scenarios.Report]())
	report := scenarios.Report{Schema: scenarios.ReportSchema, Tool: "labctl", Lab: scenarios.Shape{Machines: "containers"}}
	report.Versions.Kubernetes, report.Versions.Etcd, report.Versions.Containerd = []string{"v1.36.3"}, []string{}, []string{}
	round, err := scenarios.ParseRound("missing-cni@w1+stale-learner")
	if err != nil {
		t.Fatal(err)
	}
	lost := 2
	report.Results = []scenarios.Result{round.NotBegun(errors.New("why")), {
		Class: scenarios.Passed, Person: scenarios.ByHint, Recovery: []string{"labctl repair"}, Detected: scenarios.Detection{By: "x", Cause: "cni-not-initialized"},
		Data: scenarios.Data{Lost: []string{}, LostWrites: &lost, WriteGap: 0.1},
	}}
	schema.Check(t, report)

	file := filepath.Join(t.TempDir(), "results.json")
	if err := (resultFiles{results: file}).write("bench", report); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	schema.Check(t, json.RawMessage(written))
}
