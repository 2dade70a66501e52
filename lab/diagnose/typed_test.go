package diagnose

import (
	"bytes"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// readers are the packages that decide by what lab/join, lab/etcd and lab/kube found.
var readers = []string{"lab", "lab/diagnose", "lab/diagnose/fact", "lab/join", "cmd/labnode", "scenarios"}

// typedPackage is a package with the types of all that is in it.
type typedPackage struct {
	files *token.FileSet
	trees []*ast.File
	info  types.Info
}

// checkTypes reads packages of this module, without their tests.
func checkTypes(t *testing.T, packages []string) []typedPackage {
	t.Helper()
	list := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
		cmd.Dir = filepath.Join("..", "..")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		return string(out)
	}
	var paths []string
	for _, p := range packages {
		paths = append(paths, "./"+p)
	}
	exports := map[string]string{}
	for line := range strings.Lines(list(append([]string{"-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, paths...)...)) {
		if path, export, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			exports[path] = export
		}
	}
	files := token.NewFileSet()
	imports := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) {
		data, err := os.ReadFile(exports[path])
		return io.NopCloser(bytes.NewReader(data)), err
	})
	var all []typedPackage
	for line := range strings.Lines(list(append([]string{"-f", "{{.ImportPath}} {{.Dir}} {{join .GoFiles \" \"}}"}, paths...)...)) {
		words := strings.Fields(line)
		p := typedPackage{files: files, info: types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Uses: map[*ast.Ident]types.Object{},
		}}
		for _, name := range words[2:] {
			tree, err := parser.ParseFile(files, filepath.Join(words[1], name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			p.trees = append(p.trees, tree)
		}
		if _, err := (&types.Config{Importer: imports}).Check(words[0], files, p.trees, &p.info); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// closedSets are types whose values are constants, each with the file that declares them.
var closedSets = map[string]string{
	"k8slab/lab/join.CheckID": "checkid.go", "k8slab/lab/join.Reason": "checkid.go", "k8slab/lab/join.Phase": "checkid.go",
	"k8slab/lab/etcd.State": "etcd.go",
}

// sentences are the fields in which our own types say something to people.
var sentences = []string{"Evidence", "Hint", "Fixed", "Detail", "Meaning", "Error", "SSH", "Labnode", "Quorum"}

// foreign are the places at which such a field, or an error's text, has another program's own words, which there is no other way to read.
var foreign = []string{
	"imageload.go: no space left on device", // containerd's
	"learner_never_started.go: too many learner",
}

// Nobody decides by a text that this program wrote for people: a better wording would change what it does.
func TestNobodyParsesOurSentences(t *testing.T) {
	for _, p := range checkTypes(t, readers) {
		for _, tree := range p.trees {
			ast.Inspect(tree, func(n ast.Node) bool {
				for _, found := range p.parsed(n) {
					where := p.files.Position(n.Pos())
					if !slices.Contains(foreign, filepath.Base(where.Filename)+": "+found) {
						t.Errorf("%s: %q is looked for in a text for people", where, found)
					}
				}
				if lit, ok := n.(*ast.BasicLit); ok && p.info.Types[lit].Type != nil {
					where := p.files.Position(n.Pos())
					if file := closedSets[p.info.Types[lit].Type.String()]; file != "" && file != filepath.Base(where.Filename) && lit.Value != `""` {
						t.Errorf("%s: %s is a bare %s", where, lit.Value, p.info.Types[lit].Type)
					}
				}
				return true
			})
		}
	}
}

// parsed are the constant words that a call or a comparison looks for in a sentence.
func (p typedPackage) parsed(n ast.Node) []string {
	var in []ast.Expr
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			in = []ast.Expr{n.X, n.Y}
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.SelectorExpr); ok {
			if used := p.info.Uses[f.Sel]; used != nil && used.Pkg() != nil && used.Pkg().Path() == "strings" {
				in = n.Args
			}
		}
	case *ast.SwitchStmt:
		in = []ast.Expr{n.Tag}
		for _, c := range n.Body.List {
			in = append(in, c.(*ast.CaseClause).List...)
		}
	}
	if !slices.ContainsFunc(in, p.sentence) {
		return nil
	}
	var words []string
	for _, e := range in {
		if v := p.info.Types[e].Value; v != nil {
			if word := strings.Trim(v.ExactString(), `"`); strings.ContainsAny(word, "abcdefghijklmnopqrstuvwxyz") {
				words = append(words, word)
			}
		}
	}
	return words
}

// sentence reports whether the expression is a field for people, or an error's text.
func (p typedPackage) sentence(e ast.Expr) bool {
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 0 {
		f, ok := call.Fun.(*ast.SelectorExpr)
		return ok && f.Sel.Name == "Error"
	}
	field, ok := e.(*ast.SelectorExpr)
	if !ok || !slices.Contains(sentences, field.Sel.Name) {
		return false
	}
	chosen := p.info.Selections[field]
	if chosen == nil {
		return false
	}
	kind := field.Sel.Name == "Detail" && strings.HasSuffix(chosen.Recv().String(), "symptom.Finding") // which is a constant
	return !kind && chosen.Kind() == types.FieldVal && types.Identical(chosen.Type(), types.Typ[types.String])
}
