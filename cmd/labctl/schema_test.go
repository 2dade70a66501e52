package main

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8slab/config"
	"k8slab/lab/golden"
	"k8slab/lab/health"
	"k8slab/lab/machine"
	"k8slab/lab/state"
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
