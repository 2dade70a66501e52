package machine_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/machine"
)

func TestState(t *testing.T) {
	l, changes := lab(t,
		domain("lab-cp1", labID, "cp1", running), domain("lab-cp2", labID, "cp2", paused), domain("lab-cp3", labID, "cp3", off),
		domain("lab-w1", labID, "w1", crashed))
	tests := []struct {
		name string
		want machine.State
	}{
		{"cp1", machine.Running}, {"cp2", machine.Paused}, {"cp3", machine.Off}, {"w1", machine.Crashed}, {"w2", machine.Absent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := l.State(limited(t), tt.name); err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
	if len(*changes) > 0 {
		t.Errorf("looking counted as changes: %q", *changes)
	}
}

func TestEnsure(t *testing.T) {
	tests := []struct {
		name    string
		state   int
		changes []string
	}{
		{"running", running, nil},
		{"paused", paused, []string{"libvirt resume lab-cp1"}},
		{"off", off, []string{"libvirt start lab-cp1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, changes := lab(t, domain("lab-cp1", labID, "cp1", tt.state))
			if err := l.Ensure(limited(t), machine.Spec{Node: "cp1"}); err != nil {
				t.Fatal(err)
			}
			if got, err := l.State(limited(t), "cp1"); err != nil || got != machine.Running {
				t.Errorf("then it is %q, %v", got, err)
			}
			if !slices.Equal(*changes, tt.changes) {
				t.Errorf("changes %q, want %q", *changes, tt.changes)
			}
		})
	}
}

// A crashed machine is still active: a start alone would be refused.
func TestEnsureCrashed(t *testing.T) {
	l, _ := lab(t, domain("lab-cp1", labID, "cp1", crashed))
	if err := l.Ensure(limited(t), machine.Spec{Node: "cp1"}); err != nil {
		t.Fatal(err)
	}
	if got, err := l.State(limited(t), "cp1"); err != nil || got != machine.Running {
		t.Errorf("then it is %q, %v", got, err)
	}
}

func TestForeignDomain(t *testing.T) {
	calls := []struct {
		name string
		call func(context.Context, *machine.Lab) error
	}{
		{"ensure", func(ctx context.Context, l *machine.Lab) error { return l.Ensure(ctx, machine.Spec{Node: "cp1"}) }},
		{"state", func(ctx context.Context, l *machine.Lab) error { _, err := l.State(ctx, "cp1"); return err }},
		{"resize", func(ctx context.Context, l *machine.Lab) error {
			_, err := l.Resize(ctx, machine.Spec{Node: "cp1"})
			return err
		}},
		{"power off", func(ctx context.Context, l *machine.Lab) error { return l.PowerOff(ctx, "cp1") }},
		{"suspend", func(ctx context.Context, l *machine.Lab) error { return l.Suspend(ctx, "cp1") }},
		{"resume", func(ctx context.Context, l *machine.Lab) error { return l.Resume(ctx, "cp1") }},
		{"delete", func(ctx context.Context, l *machine.Lab) error { return l.Delete(ctx, "cp1") }},
	}
	owners := []struct{ name, id, owner string }{{"unmarked", unmarked, ""}, {"another lab of the name", otherID, "lab"}}
	for _, owner := range owners {
		l, changes := lab(t, domain("lab-cp1", owner.id, "cp1", paused))
		for _, tt := range calls {
			t.Run(owner.name+"/"+tt.name, func(t *testing.T) {
				err := tt.call(limited(t), l)
				var foreign *machine.ForeignError
				if !errors.As(err, &foreign) {
					t.Fatalf("got %v, want a ForeignError", err)
				}
				if foreign.Kind != "domain" || foreign.Name != "lab-cp1" || foreign.Owner != owner.owner {
					t.Errorf("got %+v", *foreign)
				}
			})
		}
		if len(*changes) > 0 {
			t.Errorf("%s: changed %q", owner.name, *changes)
		}
	}
}

func TestList(t *testing.T) {
	l, _ := lab(t,
		domain("lab-cp1", labID, "cp1", running), domain("lab-gone", labID, "gone", off),
		domain("lab-cp2", otherID, "cp2", running), domain("lab-cp3", unmarked, "", running), domain("windows", unmarked, "", running))
	got, err := l.List(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b machine.Machine) int { return strings.Compare(a.Node, b.Node) })
	if len(got) != 2 || got[0].Node != "cp1" || got[0].State != machine.Running || got[1].Node != "gone" || got[1].State != machine.Off {
		t.Errorf("got %+v, want cp1 and gone", got)
	}
	for _, m := range got {
		if len(m.ID) != 36 {
			t.Errorf("%s: ID %q is no UUID", m.Node, m.ID)
		}
	}
}

func TestPower(t *testing.T) {
	l, changes := lab(t, domain("lab-cp1", labID, "cp1", running))
	ctx := limited(t)
	steps := []struct {
		name   string
		call   func(context.Context, string) error
		want   machine.State
		change string // "" when there is nothing to do
	}{
		{"suspend", l.Suspend, machine.Paused, "libvirt suspend lab-cp1"},
		{"suspend again", l.Suspend, machine.Paused, ""},
		{"resume", l.Resume, machine.Running, "libvirt resume lab-cp1"},
		{"resume again", l.Resume, machine.Running, ""},
		{"power off", l.PowerOff, machine.Off, "libvirt power off lab-cp1"},
		{"power off again", l.PowerOff, machine.Off, ""},
	}
	for _, tt := range steps {
		*changes = nil
		if err := tt.call(ctx, "cp1"); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got, err := l.State(ctx, "cp1"); err != nil || got != tt.want {
			t.Errorf("%s: then it is %q, %v, want %q", tt.name, got, err, tt.want)
		}
		if got := strings.Join(*changes, ","); got != tt.change {
			t.Errorf("%s: changes %q, want %q", tt.name, got, tt.change)
		}
	}
}

var subnet = machine.Network{CIDR: netip.MustParsePrefix("10.30.0.0/24"), Gateway: netip.MustParseAddr("10.30.0.1")}

func TestNetworkLife(t *testing.T) {
	l, changes := lab(t, network("default", otherID))
	ctx := limited(t)
	steps := []struct {
		name   string
		call   func() error
		active bool
		change string
	}{
		{"nothing", func() error { return nil }, false, ""},
		{"ensure", func() error { return l.EnsureNetwork(ctx, subnet) }, true, "libvirt start network lab"},
		{"ensure again", func() error { return l.EnsureNetwork(ctx, subnet) }, true, ""},
		{"delete", func() error { return l.DeleteNetwork(ctx) }, false, "libvirt delete network lab"},
	}
	for _, tt := range steps {
		*changes = nil
		if err := tt.call(); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got, err := l.NetworkActive(ctx); err != nil || got != tt.active {
			t.Errorf("%s: then active is %v, %v", tt.name, got, err)
		}
		if got := strings.Join(*changes, ","); got != tt.change {
			t.Errorf("%s: changes %q, want %q", tt.name, got, tt.change)
		}
	}
}

func TestForeignNetwork(t *testing.T) {
	l, changes := lab(t, network("lab", otherID))
	calls := []struct {
		name string
		call func(context.Context) error
	}{
		{"ensure", func(ctx context.Context) error { return l.EnsureNetwork(ctx, subnet) }},
		{"active", func(ctx context.Context) error { _, err := l.NetworkActive(ctx); return err }},
		{"delete", l.DeleteNetwork},
	}
	for _, tt := range calls {
		t.Run(tt.name, func(t *testing.T) {
			var foreign *machine.ForeignError
			if err := tt.call(limited(t)); !errors.As(err, &foreign) || foreign.Kind != "network" || foreign.Name != "lab" {
				t.Errorf("got %v, want a ForeignError", err)
			}
		})
	}
	if len(*changes) > 0 {
		t.Errorf("changed %q", *changes)
	}
}
