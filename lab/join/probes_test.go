package join

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// declared are the values of the package's constants of a type, in the file.
func declared(t *testing.T, file, kind string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, named := spec.Type.(*ast.Ident); named && name.Name == kind {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	return values
}

// The table is what is known of the checks: it has each of them once, and each has what makes it.
func TestTableHasEveryCheck(t *testing.T) {
	ids := declared(t, "checkid.go", "CheckID")
	if len(ids) < 40 {
		t.Fatalf("only %d checks are declared: %q", len(ids), ids)
	}
	seen := map[CheckID]bool{}
	for _, pr := range table {
		if seen[pr.id] || !slices.Contains(ids, string(pr.id)) {
			t.Errorf("%s is in the table twice, or not declared", pr.id)
		}
		seen[pr.id] = true
		if made := pr.run != nil || pr.ask != nil; made != (pr.scope != ofLabnode) || pr.run != nil && pr.ask != nil {
			t.Errorf("%s: nothing makes it, or two things do", pr.id)
		}
		if pr.Repairable != (pr.repair != nil && pr.id != CheckLeftovers) { // what is left on a machine may be a member's own
			t.Errorf("%s: repairable on a member is %t", pr.id, pr.Repairable)
		}
	}
	for _, id := range ids {
		if !seen[CheckID(id)] {
			t.Errorf("%s is not in the table", id)
		}
	}
}
