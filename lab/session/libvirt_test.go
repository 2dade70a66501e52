package session_test

import (
	"testing"

	"k8slab/lab/host"
	"k8slab/lab/labtest"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Two labs of one name in two state directories must not end each other's machines.
func TestPartitionOfLabsOfOneName(t *testing.T) {
	first := labtest.Closed(t, labtest.Small)
	second := labtest.Closed(t, labtest.Small)
	a, err := first.ID()
	if err != nil {
		t.Fatal(err)
	}
	b, err := second.ID()
	if err != nil {
		t.Fatal(err)
	}
	if session.CgroupName("small", a) == session.CgroupName("small", b) {
		t.Errorf("both are %s", session.CgroupName("small", a))
	}
}

// Containers get a network namespace of their own, whatever daemon answers on this computer.
func TestContainersHaveADaemonOfTheirOwn(t *testing.T) {
	l := labtest.Closed(t, labtest.Small)
	l.URI = host.Containers
	if !session.OwnDaemon(l) {
		t.Error("a new lab of containers would take the computer's")
	}
	if err := l.Write(state.MadeFile, nil); err != nil {
		t.Fatal(err)
	}
	if session.OwnDaemon(l) {
		t.Error("one that the computer's daemon has would move")
	}
}
