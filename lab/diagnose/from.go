package diagnose

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8slab/lab/diagnose/siterule"
	"k8slab/lab/event"
	"k8slab/lab/symptom"
	"k8slab/lab/symptom/reader"
)

// fromStdin is the path that stands for standard input.
const fromStdin = "-"

// From judges what was written down earlier, with nothing else known: a bundle, a directory of logs, one file of text, or with the path "-"
// what in gives. Text may be of any program, version and distribution. The memory it takes does not grow with the text. There is no report
// with an error: input that is empty or cannot be read to its end says nothing about a cluster.
func From(path string, in io.Reader) (Report, error) { return FromWith(nil, path, in) }

// FromWith is From, with a site's own rules beside the catalogue.
func FromWith(rules *siterule.Set, path string, in io.Reader) (Report, error) {
	began := time.Now()
	r := Report{Source: path, Time: began.UTC(), rules: rules}
	if err := r.judgePath(path, in); err != nil {
		return Report{}, err
	}
	r.settle(began)
	return r, nil
}

// errEmpty is for input in which there is nothing to judge.
var errEmpty = errors.New("it is empty")

// inked notes whether there was anything but blanks in what was read.
type inked struct {
	io.Reader
	text bool
}

func (i *inked) Read(p []byte) (int, error) {
	n, err := i.Reader.Read(p)
	i.text = i.text || len(bytes.TrimSpace(p[:n])) > 0
	return n, err
}

func (r *Report) judgePath(path string, in io.Reader) error {
	if path == fromStdin {
		if err := r.judgeFile("stdin", in); errors.Is(err, errEmpty) {
			return errors.New("standard input is empty: the command before the pipe printed nothing")
		} else if err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return readError(path, err)
	}
	if info.IsDir() {
		return readError(path, r.judgeDirectory(path))
	}
	f, err := os.Open(path)
	if err != nil {
		return readError(path, err)
	}
	defer f.Close()
	return readError(path, r.judgeFile(filepath.Base(path), f))
}

// readError says the path once: an error of the file system has it already.
func readError(path string, err error) error {
	var ofPath *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ofPath) && ofPath.Path == path:
		err = ofPath.Err
	}
	return fmt.Errorf("read %s: %w", path, err)
}

var gzipMagic = []byte{0x1f, 0x8b}

// judgeFile judges a bundle or a text, told apart by their first bytes.
func (r *Report) judgeFile(source string, in io.Reader) error {
	buffered := bufio.NewReader(in)
	if magic, _ := buffered.Peek(len(gzipMagic)); bytes.Equal(magic, gzipMagic) {
		return r.judgeBundle(buffered)
	}
	texts := textFindings{rules: r.rules}
	known, own, err := texts.read(buffered, source)
	if err == nil && texts.inked == 0 {
		err = errEmpty
	}
	if r.Findings = known.Findings; len(own) > 0 {
		texts.all = known.Findings
		texts.add(own)
		r.Findings = texts.ordered()
	}
	r.Undetermined = citing(nil, known.Undetermined)
	return err
}

// filesLimit bounds how many files of a directory or a bundle are judged.
const filesLimit = 10000

// judgeDirectory judges every file below the directory, each by itself, because a success in one says nothing about another. Links are not
// followed: a directory of logs from elsewhere must not lead to this computer's files.
func (r *Report) judgeDirectory(root string) error {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer dir.Close()
	texts := textFindings{rules: r.rules}
	files := 0
	err = fs.WalkDir(dir.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			r.unread(path, err)
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		if files++; files > filesLimit {
			return fmt.Errorf("more than %d files; next: give the directory of one node", filesLimit)
		}
		f, err := dir.Open(path)
		if err == nil {
			err = texts.judge(path, f)
			f.Close()
		}
		r.unread(path, err)
		return nil
	})
	r.Findings, r.Undetermined = texts.ordered(), texts.undetermined
	switch {
	case err != nil:
		return err
	case files == 0:
		return errors.New("it has no files")
	case texts.inked > 0:
		return nil
	case len(r.Unread) > 0:
		return fmt.Errorf("none of its files could be read: %s", r.Unread[0])
	}
	return errors.New("all of its files are empty")
}

func (r *Report) unread(what string, err error) {
	if err != nil {
		r.Unread = append(r.Unread, event.Redact(fmt.Sprintf("%s: %v", what, err)))
	}
}

// textFindings are the findings of several texts of which nothing but the text is known.
type textFindings struct {
	rules        *siterule.Set
	all          []symptom.Finding
	undetermined []string
	inked        int // texts that were not empty
}

// read is what one text shows: by the catalogue, and by the site's own rules. Beside what a rule knows nothing is guessed.
func (t *textFindings) read(in io.Reader, source string) (known reader.Reading, own []symptom.Finding, err error) {
	scan := &siteScan{rules: t.rules, source: source}
	text := &inked{Reader: in}
	if len(t.rules.Phrases()) > 0 {
		text.Reader = io.TeeReader(in, scan)
	}
	known, err = reader.Read(text, source, event.Redact)
	if text.text {
		t.inked++
	}
	if own = scan.findings(""); len(own) > 0 && known.Guessed {
		known.Findings = nil
	}
	if slices.ContainsFunc(own, func(f symptom.Finding) bool { return f.Level == symptom.Fail }) {
		known.Undetermined = nil
	}
	return known, own, err
}

func (t *textFindings) add(found []symptom.Finding) {
	for _, f := range found {
		t.all = mergeFinding(t.all, f)
	}
}

// judge adds what one text shows.
func (t *textFindings) judge(path string, in io.Reader) error {
	known, own, err := t.read(in, path)
	t.undetermined = citing(t.undetermined, known.Undetermined)
	found := append(slices.DeleteFunc(known.Findings, symptom.Finding.Suspected), own...) // of what is suspected the other texts tell more
	for i := range found {
		if found[i].Node == "" {
			found[i].Node = nodeOfPath(path)
		}
	}
	t.add(found)
	return err
}

// undeterminedLimit is how many lines are cited that say that something failed, and not what.
const undeterminedLimit = 100

// citing adds the line that makes a text undetermined, if there is one.
func citing(all []string, line *symptom.Evidence) []string {
	if line == nil || len(all) >= undeterminedLimit {
		return all
	}
	return append(all, fmt.Sprintf("%s, line %d: %s", line.Source, line.Line, line.Text))
}

// nodeOfPath is the first directory, by which people who gather logs name the machine; "" for a file at the top.
func nodeOfPath(path string) string {
	first, _, below := strings.Cut(filepath.ToSlash(path), "/")
	if !below {
		return ""
	}
	return first
}

// evidenceLimit is how many places a finding is shown at.
const evidenceLimit = 3

// mergeFinding adds a finding, or its evidence to the same cause on the same node.
func mergeFinding(all []symptom.Finding, f symptom.Finding) []symptom.Finding {
	for i := range all {
		if absorb(&all[i], f) {
			return all
		}
	}
	return append(all, f)
}

// absorb takes the evidence of a finding of the same cause on the same node, and reports whether it is one.
func absorb(have *symptom.Finding, f symptom.Finding) bool {
	if have.Symptom != f.Symptom || have.Node != f.Node || have.Detail != f.Detail && have.Rule == "" && f.Rule == "" {
		return false // a rule knows no detail
	}
	for _, e := range f.Evidence {
		if len(have.Evidence) < evidenceLimit {
			have.Evidence = append(have.Evidence, e)
		}
	}
	if f.Level == symptom.Fail {
		have.Level = symptom.Fail
	}
	if f.Rule == "" && have.Rule != "" { // not the rule alone found it
		have.Rule, have.Detail, have.Repairable, have.Hint, have.Meaning = "", f.Detail, f.Repairable, f.Hint, f.Meaning
	}
	return true
}

// ordered sorts the findings of all texts: nodes' names, where there are any, keep the graph's arrows apart.
func (t *textFindings) ordered() []symptom.Finding {
	return relate(t.all, t.rules, func(cause, effect symptom.Finding) bool {
		return cause.Node == effect.Node || cause.Node == "" || effect.Node == "" || crossesNodes[effect.Symptom]
	})
}
