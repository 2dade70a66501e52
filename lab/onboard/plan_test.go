package onboard

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func planText(plan []Planned) string {
	var b strings.Builder
	for _, p := range plan {
		if p.Note != "" || len(p.Steps) > 0 {
			fmt.Fprintf(&b, "%s: %s %q\n", p.Phase, p.Note, p.Steps)
		}
	}
	return b.String()
}

// A dry run of everything, in every condition, leaves each byte, mode and time as it was, and makes no file.
func TestDryRunChangesNothing(t *testing.T) {
	prepare := map[string]func(*testing.T, *fake){
		"never begun": func(*testing.T, *fake) {},
		"failed": func(t *testing.T, f *fake) {
			f.runners[StorageIntegration].run = broken
			if err := f.Run(t.Context(), Options{}); !errors.Is(err, errBroken) {
				t.Fatal(err)
			}
		},
		"completed": func(t *testing.T, f *fake) { must(t, f.Run(t.Context(), Options{})) },
		"half rolled back": func(t *testing.T, f *fake) {
			must(t, f.Run(t.Context(), Options{}))
			f.Undoers["thing"] = stuck{f.world, "node"}
			if f.Rollback(t.Context()) == nil {
				t.Fatal("it was rolled back")
			}
		},
		"rolled back": func(t *testing.T, f *fake) {
			must(t, f.Run(t.Context(), Options{}))
			must(t, f.Rollback(t.Context()))
		},
	}
	for name, prepare := range prepare {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			prepare(t, newFake(dir))
			f := newFake(dir)
			before := tree(t, dir)
			for _, o := range []Options{{}, {Resume: true}, {SkipValidation: true}, {Resume: true, SkipValidation: true}} {
				_, _ = f.Plan(t.Context(), o)
			}
			_, _ = f.Undoable()
			_, err := f.Store.Status()
			must(t, err)
			_, err = f.Store.History()
			must(t, err)
			if after := tree(t, dir); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
			for _, r := range f.runners {
				if r.ran > 0 {
					t.Error("a phase ran")
				}
			}
		})
	}
}

func TestPlan(t *testing.T) {
	dir := t.TempDir()
	f := newFake(dir)
	plan, err := f.Plan(t.Context(), Options{SkipValidation: true})
	must(t, err)
	want := `pre_validation: skipped, as --skip-validation says []
gitops_activation:  ["make commit" "make reconciled"]
node_join_monitoring:  ["make node"]
storage_integration:  ["make found" "make disk"]
health_verification:  ["make mark"]
`
	if got := planText(plan); got != want || len(plan) != 9 {
		t.Errorf("got\n%s", got)
	}

	f.runners[StorageIntegration].run = broken
	if err := f.Run(t.Context(), Options{}); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	must(t, f.world.Undo(t.Context(), f.world.change("node")))
	if _, err := f.Plan(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("it plans what is refused: %v", err)
	}
	plan, err = f.Plan(t.Context(), Options{Resume: true})
	must(t, err)
	got := planText(plan)
	for _, want := range []string{
		"gitops_activation: skipped: what was completed at ",
		"node_join_monitoring: again: what was completed no longer holds: node is gone [\"make node\"]\n",
		"storage_integration: again: the last attempt did not end well [\"make found\" \"make disk\"]\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}
