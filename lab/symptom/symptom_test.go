package symptom

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// declared are the IDs in id.go, read from its source.
func declared(t *testing.T) map[ID]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "id.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[ID]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			s, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			ids[ID(s)] = true
		}
		return true
	})
	if len(ids) < 60 {
		t.Fatalf("found only %d IDs in id.go", len(ids))
	}
	return ids
}

func TestCatalogueHasEveryIDOnce(t *testing.T) {
	want := declared(t)
	got := map[ID]bool{}
	for _, s := range All() {
		if !want[s.ID] {
			t.Errorf("%s is not in id.go", s.ID)
		}
		if got[s.ID] {
			t.Errorf("%s is there twice", s.ID)
		}
		got[s.ID] = true
	}
	for id := range want {
		if !got[id] {
			t.Errorf("%s has no entry", id)
		}
	}
}

func TestEntriesAreWhole(t *testing.T) {
	source := regexp.MustCompile(`^[\w.-]+/[\w.-]+#\d+$`)
	dangerous := regexp.MustCompile(`rm -rf? (/var/lib/etcd|/etc/cni/net\.d|/run/containerd|/etc/kubernetes)`)
	for _, s := range All() {
		if !strings.HasSuffix(s.Meaning, ".") || strings.Count(s.Meaning, ". ") > 0 {
			t.Errorf("%s: meaning is not one sentence: %q", s.ID, s.Meaning)
		}
		if s.Hint == "" || dangerous.MatchString(s.Hint) {
			t.Errorf("%s: hint is empty or dangerous: %q", s.ID, s.Hint)
		}
		for _, ref := range s.Sources {
			if !source.MatchString(ref) {
				t.Errorf("%s: source %q", s.ID, ref)
			}
		}
	}
}

func TestLookup(t *testing.T) {
	s, ok := Lookup(SwapEnabled)
	if !ok || s.ID != SwapEnabled || !strings.Contains(s.Hint, "swapoff -a") {
		t.Errorf("Lookup(SwapEnabled) = %+v, %v", s, ok)
	}
	if s, ok := Lookup("no-such-cause"); ok {
		t.Errorf("Lookup of an unknown ID = %+v", s)
	}
}

func TestGraphNamesKnownCauses(t *testing.T) {
	for a, bs := range explains {
		if _, ok := Lookup(a); !ok {
			t.Errorf("%s is not in the catalogue", a)
		}
		for _, b := range bs {
			if _, ok := Lookup(b); !ok {
				t.Errorf("%s explains %s, which is not in the catalogue", a, b)
			}
		}
	}
}

func TestSuspectsAreKnown(t *testing.T) {
	for id, others := range suspects {
		for _, other := range append(slices.Clone(others), id) {
			if _, known := Lookup(other); !known {
				t.Errorf("%s is not in the catalogue", other)
			}
		}
	}
}

func TestBrings(t *testing.T) {
	for _, tt := range []struct {
		a, b ID
		want bool
	}{
		{CSRNotApproved, TLSBootstrapTimeout, true},
		{CgroupV1Unsupported, EtcdUnreachable, true}, // by way of the kubelet
		{TLSBootstrapTimeout, CSRNotApproved, false},
		{SwapEnabled, SwapEnabled, false},
	} {
		if got := Brings(tt.a, tt.b); got != tt.want {
			t.Errorf("Brings(%s, %s) = %v", tt.a, tt.b, got)
		}
	}
	if !General(EtcdUnreachable) || General(SwapEnabled) {
		t.Error("General is wrong about etcd-unreachable or swap-enabled")
	}
}

func TestSuspicion(t *testing.T) {
	of := Finding{Symptom: ClockSkew, Level: Fail, Node: "w1", Meaning: "The clocks differ.", Evidence: []Evidence{{Line: 1}, {Line: 2}}}
	for _, id := range MistakenFor(of.Symptom) {
		got := Suspicion(id, of)
		want, _ := Lookup(id)
		if !got.Suspected() || got.Level != Warn || got.Repairable || got.Node != "w1" || got.BecauseOf != ClockSkew || got.Hint != want.Hint ||
			!slices.Equal(got.Evidence, of.Evidence[:1]) {
			t.Errorf("%+v", got)
		}
	}
	if of.Suspected() || len(MistakenFor(ClockSkew)) == 0 {
		t.Error("the finding itself is suspected, or no other")
	}
}

func TestGraphHasNoCycle(t *testing.T) {
	const entered, left = 1, 2
	state := map[ID]int{}
	var visit func(id ID, path []string)
	visit = func(id ID, path []string) {
		path = append(path, string(id))
		switch state[id] {
		case entered:
			t.Fatalf("cycle: %s", strings.Join(path, " -> "))
		case left:
			return
		}
		state[id] = entered
		for _, next := range explains[id] {
			visit(next, path)
		}
		state[id] = left
	}
	for id := range explains {
		visit(id, nil)
	}
}
