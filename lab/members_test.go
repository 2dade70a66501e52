package lab

import (
	"errors"
	"os"
	"strings"
	"testing"

	"k8slab/config"
)

func memberNames(c *config.Cluster) string { return namesOf(c.Members()) }

func TestAdmission(t *testing.T) {
	l := newLab(t, onboard)
	want := func(members string) {
		t.Helper()
		again, _, err := AsMade(l.described)
		if err != nil {
			t.Fatal(err)
		}
		if got := memberNames(l.cluster); got != members || memberNames(again) != members {
			t.Errorf("members are %s, and to another process %s; want %s", got, memberNames(again), members)
		}
	}
	want("cp1, w1")
	for range 2 { // twice is once
		if err := l.Admit("w2"); err != nil {
			t.Fatal(err)
		}
		want("cp1, w1, w2")
	}
	if err := l.Admit("cp2"); err != nil {
		t.Fatal(err)
	}
	want("cp1, cp2, w1, w2")
	if memberNames(l.described) != "cp1, w1" {
		t.Error("what cluster.yaml says was changed")
	}
	for range 2 {
		if err := l.Dismiss("w2"); err != nil {
			t.Fatal(err)
		}
		want("cp1, cp2, w1")
	}
}

func TestAdmissionOfOthers(t *testing.T) {
	l := newLab(t, onboard)
	for _, name := range []string{"w1", "w9", "../x"} {
		for _, err := range []error{l.Admit(name), l.Dismiss(name)} {
			if err == nil || !strings.Contains(err.Error(), "onboard: true") {
				t.Errorf("%s: got %v, want that it is not to be onboarded", name, err)
			}
		}
	}
	if _, err := os.Stat(l.state.dir); !os.IsNotExist(err) {
		t.Errorf("a refusal left the state directory: %v", err)
	}
}

// A mark is of a node that cluster.yaml leaves out. One that it does not, or no longer, has is ignored.
func TestMarkOfAMember(t *testing.T) {
	l := newLab(t, onboard)
	for _, name := range []string{"members/w1", "members/w9"} {
		if err := l.state.write(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.recount(); err != nil || memberNames(l.cluster) != "cp1, w1" {
		t.Errorf("got %s, %v", memberNames(l.cluster), err)
	}
}

func TestDownDismisses(t *testing.T) {
	l := newLab(t, onboard)
	if err := l.Admit("w2"); err != nil {
		t.Fatal(err)
	}
	if err := l.Down(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if c, _, err := AsMade(l.described); err != nil || memberNames(c) != "cp1, w1" {
		t.Errorf("after down: %s, %v", memberNames(c), err)
	}
}

func TestMachinesNeedALab(t *testing.T) {
	l := newLab(t, onboard)
	_, idErr := l.ID()
	for _, err := range []error{l.MakeMachine(t.Context(), "w2"), l.RemoveMachine(t.Context(), "w2"), idErr} {
		if !errors.Is(err, ErrNotUp) {
			t.Errorf("got %v, want ErrNotUp", err)
		}
	}
	if c, _, err := AsMade(l.described); err != nil || memberNames(c) != "cp1, w1" {
		t.Errorf("admitted without a lab: %s, %v", memberNames(c), err)
	}
	if err := l.MakeMachine(t.Context(), "w1"); err == nil || !strings.Contains(err.Error(), "onboard: true") {
		t.Errorf("w1: got %v", err)
	}
}
