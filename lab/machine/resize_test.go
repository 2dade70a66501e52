package machine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/machine"
)

// A machine that runs has its new size when it starts again; one that is off, at once.
func TestResize(t *testing.T) {
	const small, large = 1024, 3072
	l, changes := lab(t, domain("lab-cp1", labID, "cp1", running))
	ctx := limited(t)
	resize := func(memory int, restart bool, want ...string) {
		t.Helper()
		*changes = nil
		got, err := l.Resize(ctx, machine.Spec{Node: "cp1", CPUs: 2, Memory: memory})
		if err != nil || got != restart || !slices.Equal(*changes, want) {
			t.Errorf("%d MiB: restart %v, %v, changes %q", memory, got, err, *changes)
		}
	}
	resize(large, true, "libvirt resize lab-cp1")
	resize(large, true) // it is written down, and the machine still runs as it was
	if err := errors.Join(l.PowerOff(ctx, "cp1"), l.Ensure(ctx, machine.Spec{Node: "cp1"})); err != nil {
		t.Fatal(err)
	}
	resize(large, false)
	if err := l.PowerOff(ctx, "cp1"); err != nil {
		t.Fatal(err)
	}
	resize(small, false, "libvirt resize lab-cp1")
	if got, err := l.List(ctx); err != nil || len(got) != 1 || got[0].Node != "cp1" {
		t.Errorf("it is no longer the lab's: %+v, %v", got, err)
	}
	if _, err := l.Resize(ctx, machine.Spec{Node: "w1"}); err == nil || !strings.Contains(err.Error(), "w1 is absent") {
		t.Errorf("no machine: %v", err)
	}
}
