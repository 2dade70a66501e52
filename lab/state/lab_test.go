package state

import (
	"os"
	"strings"
	"testing"
)

func TestAdmission(t *testing.T) {
	l := newLab(t, onboard)
	want := func(members string) {
		t.Helper()
		if got := memberNames(read(t, l.Described).Cluster); got != members {
			t.Errorf("to another process members are %s; want %s", got, members)
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
	if memberNames(l.Described) != "cp1, w1" {
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
	if _, err := os.Stat(l.Path()); !os.IsNotExist(err) {
		t.Errorf("a refusal left the state directory: %v", err)
	}
}

// A mark is of a node that cluster.yaml leaves out. One that it does not, or no longer, has is ignored.
func TestMarkOfAMember(t *testing.T) {
	l := newLab(t, onboard)
	for _, name := range []string{"members/w1", "members/w9"} {
		if err := l.Write(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := Read(l.Described); err != nil || memberNames(again.Cluster) != "cp1, w1" {
		t.Errorf("got %s, %v", memberNames(again.Cluster), err)
	}
}
