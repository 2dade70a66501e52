package mention

import (
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Check fails the test for each command of the program that a text of the repository names and that does not exist. top is the repository.
func Check(t *testing.T, top string, root *cobra.Command) {
	t.Helper()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	texts, err := Texts(top)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, text := range texts {
		problems, commands := Problems(root, text)
		found += commands
		for _, p := range problems {
			t.Error(p)
		}
	}
	if found < 10 {
		t.Errorf("only %d commands were found in %d texts", found, len(texts))
	}
}

// Text is a text that people read, taken apart.
type Text struct {
	Place string
	Code  []string // what is a command if it begins like one
	Prose []string
}

// elsewhere are directories with texts of others, or of earlier runs.
var elsewhere = []string{".git", "bin", "results", "corpus"}

// Texts are all texts of the repository: the strings of its programs, its documents, and what tests know that it prints.
func Texts(top string) (all []Text, err error) {
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(elsewhere, d.Name()):
			return fs.SkipDir
		case d.IsDir() || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		var read func(string, string) []Text
		switch filepath.Ext(path) {
		case ".go":
			read = ofGo
		case ".md":
			read = ofMarkdown
		case ".html":
			read = func(place, s string) []Text { return ofMarkdown(place, unmarked(s)) }
		case ".txt":
			if !strings.Contains(path, "testdata") {
				return nil
			}
			read = func(place, s string) []Text { return []Text{ofProse(place, plainText(s))} }
		default:
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		place, err := filepath.Rel(top, path)
		all = append(all, read(place, string(data))...)
		return err
	})
	return all, err
}

// ofGo are the strings of a program; of those that are put together, the whole with X for what is known only when it runs.
func ofGo(place, source string) (all []Text) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, place, source, parser.SkipObjectResolution)
	if err != nil {
		return nil // the compiler says it better
	}
	var visit func(ast.Node) bool
	visit = func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		operands := summands(e)
		if !slices.ContainsFunc(operands, isString) {
			return true
		}
		whole := ""
		for _, o := range operands {
			if isString(o) {
				s, _ := strconv.Unquote(o.(*ast.BasicLit).Value)
				whole += verbs.ReplaceAllString(s, "X")
			} else {
				whole += "X"
				ast.Inspect(o, visit)
			}
		}
		all = append(all, ofProse(set.Position(n.Pos()).String(), whole))
		return false
	}
	ast.Inspect(file, visit)
	return all
}

var verbs = regexp.MustCompile(`%(\[\d+\])?[-+#0]*[\d.]*[a-zA-Z]`)

func isString(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING
}

// summands are the operands of a sum, one for any other expression.
func summands(e ast.Expr) []ast.Expr {
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.ADD {
		return append(summands(b.X), summands(b.Y)...)
	}
	return []ast.Expr{e}
}

var (
	span     = regexp.MustCompile("`[^`]+`|\"[^\"\n]+\"")
	indented = regexp.MustCompile(`(?m)^(    |\t|  (?:\$ )?(?:bin/)?lab(?:ctl|node) ).*$`)
	fence    = regexp.MustCompile("(?ms)^```.*?^```")
)

// ofProse takes a text apart at its quotes, and at lines that stand for themselves.
func ofProse(place, s string) Text {
	t := Text{Place: place}
	for paragraph := range strings.SplitSeq(s, "\n\n") {
		paragraph = span.ReplaceAllStringFunc(paragraph, func(quoted string) string {
			t.Code = append(t.Code, strings.Join(strings.Fields(quoted[1:len(quoted)-1]), " "))
			return "\u201c\u201d"
		})
		paragraph = indented.ReplaceAllStringFunc(paragraph, func(line string) string {
			t.Code = append(t.Code, line)
			return ""
		})
		t.Prose = append(t.Prose, paragraph)
	}
	return t
}

// ofMarkdown is a document.
func ofMarkdown(place, s string) []Text {
	var blocks []string
	s = fence.ReplaceAllStringFunc(s, func(block string) string {
		blocks = append(blocks, strings.Split(block, "\n")...)
		return "\n\n"
	})
	t := ofProse(place, s)
	t.Code = append(t.Code, blocks...)
	return []Text{t}
}

var (
	tag    = regexp.MustCompile(`<[^>]*>`)
	escape = regexp.MustCompile("\x1b\\[[0-9;]*m")
	folded = regexp.MustCompile(`\\\n\s*`)
)

// unmarked is a page as text.
func unmarked(s string) string {
	s = strings.NewReplacer("<code>", "`", "</code>", "`", "\n", "\n\n").Replace(s)
	return html.UnescapeString(tag.ReplaceAllString(s, " "))
}

// plainText is a terminal's output in lines of any length.
func plainText(s string) string {
	return strings.ReplaceAll(folded.ReplaceAllString(escape.ReplaceAllString(s, ""), " "), "        ", " ")
}
