// Package report writes down how an onboarding went, as Markdown and as one HTML page that needs nothing besides itself. It tells what the
// state and the findings say and looks at nothing by itself; whatever comes from there is shown as text, never as markup.
package report

import (
	"embed"
	"errors"
	"fmt"
	html "html/template"
	"io"
	"os"
	"path/filepath"
	"text/template"

	"k8slab/lab/atomicfile"
	"k8slab/lab/onboard"
	"k8slab/lab/validate"
)

// Input is what a report tells of.
type Input struct {
	State    *onboard.State
	Findings map[onboard.PhaseID][]validate.Finding // of the phases that have any
	Before   *validate.Snapshot                     // before the first phase; nil if nobody looked
	After    *validate.Snapshot                     // after the last; nil if nobody looked
	Log      string                                 // path of the run's log; "" for none
}

//go:embed page.md page.html page.css
var files embed.FS

var (
	textPage = template.Must(template.New("page.md").Funcs(template.FuncMap{"md": markdown}).ParseFS(files, "page.md"))
	htmlPage = html.Must(html.New("page.html").ParseFS(files, "page.html"))
)

// Markdown writes the report as GitHub's Markdown.
func Markdown(w io.Writer, in Input) error {
	p, err := newPage(in)
	if err != nil {
		return err
	}
	return textPage.Execute(w, p)
}

// HTML writes the report as one page without scripts.
func HTML(w io.Writer, in Input) error {
	p, err := newPage(in)
	if err != nil {
		return err
	}
	style, err := files.ReadFile("page.css")
	if err != nil {
		return err
	}
	return htmlPage.Execute(w, struct {
		page
		Style html.CSS
	}{p, html.CSS(style)})
}

// Write writes node-onboarding-NODE-YYYYMMDD-HHMMSS.md and .html into the directory, which it makes if it is missing, and returns their
// paths. The time is that of the state's last write, in UTC: a report that is made again replaces the one before. Only the user can read
// the files.
func Write(dir string, in Input) ([]string, error) {
	if in.State == nil {
		return nil, errNoState
	}
	name := fmt.Sprintf("node-onboarding-%s-%s", in.State.Node, in.State.Timestamp.UTC().Format("20060102-150405"))
	if filepath.Base(name) != name {
		return nil, fmt.Errorf("report: the node's name %q cannot be part of a file's name", in.State.Node)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	var paths []string
	for _, form := range []struct {
		ending string
		render func(io.Writer, Input) error
	}{{".md", Markdown}, {".html", HTML}} {
		path := filepath.Join(dir, name+form.ending)
		if err := atomicfile.Replace(path, atomicfile.Private, func(w io.Writer) error { return form.render(w, in) }); err != nil {
			return paths, fmt.Errorf("report: write %s: %w", path, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

var errNoState = errors.New("report: there is no onboarding to report; start one with labctl onboard")
