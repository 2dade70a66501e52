package siterule

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8slab/config"
	"k8slab/lab/symptom"
)

// The limits of a file. They keep a mistake, such as a pattern that matches every line, from making a diagnosis useless or slow.
const (
	rulesLimit   = 200
	textLimit    = 1000 // characters of a pattern, a meaning, a fix or a hint
	patternLeast = 6    // characters
)

// kind is how messages speak of a file of rules.
var kind = config.Kind{Name: "file of rules", Needs: "one of causes, phrases and hints", One: "set of rules", Limit: 64 << 10}

// rules is a file as it is written.
type rules struct {
	Causes  []ruleCause  `yaml:"causes"`
	Phrases []rulePhrase `yaml:"phrases"`
	Hints   []ruleHint   `yaml:"hints"`
}

type ruleCause struct {
	ID      string   `yaml:"id"`
	Meaning string   `yaml:"meaning"`
	Fix     string   `yaml:"fix"`
	Brings  []string `yaml:"brings"` // symptoms of the catalogue
}

type rulePhrase struct {
	Cause    string   `yaml:"cause"` // of this file or of the catalogue
	Contains string   `yaml:"contains"`
	Regexp   string   `yaml:"regexp"`
	Source   string   `yaml:"source"`
	Level    string   `yaml:"level"`
	Examples []string `yaml:"examples"`
	Not      []string `yaml:"not"`
}

type ruleHint struct {
	Cause string `yaml:"cause"` // of the catalogue
	Text  string `yaml:"text"`
}

// ruleFile is a file that was read and checked.
type ruleFile struct {
	config.Document
	name string
	rules
	own      map[symptom.ID]bool
	patterns []*regexp.Regexp // by phrase; nil for one without regexp
}

// readFile reads and checks a file. Its causes' IDs are added to those that are taken.
func readFile(path string, taken map[symptom.ID]string) *ruleFile {
	f := &ruleFile{name: filepath.Base(path), own: map[symptom.ID]bool{}}
	f.Document = config.ReadDocument(path, kind, &f.rules)
	if n := len(f.Causes) + len(f.Phrases) + len(f.Hints); n > rulesLimit {
		f.Report("", "%d rules; a file has at most %d", n, rulesLimit)
		return f
	}
	for i := range f.Causes {
		f.checkCause(fmt.Sprintf("causes[%d]", i), &f.Causes[i], taken)
	}
	for i := range f.Phrases {
		f.checkPhrase(fmt.Sprintf("phrases[%d]", i), &f.Phrases[i])
	}
	for i, h := range f.Hints {
		field := fmt.Sprintf("hints[%d]", i)
		if h.Cause == string(symptom.Healthy) || !inCatalogue(h.Cause) {
			f.foreign(field+".cause", h.Cause)
		}
		f.checkText(field+".text", h.Text)
	}
	return f
}

var kebab = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

func (f *ruleFile) checkCause(field string, c *ruleCause, taken map[symptom.ID]string) {
	const idLimit = 63
	id := symptom.ID(c.ID)
	switch where, is := taken[id]; {
	case !kebab.MatchString(c.ID) || len(c.ID) > idLimit:
		f.Report(field+".id", "%s is no ID; use words of lower-case letters and digits with - between them, such as nas-offline, at most %d in all",
			quote(c.ID), idLimit)
	case inCatalogue(c.ID):
		f.Report(field+".id", "%s is a cause of the catalogue; use another ID, or phrases and hints for that cause", c.ID)
	case is:
		f.Report(field+".id", "%s is already a cause in %s", c.ID, where)
	default:
		f.own[id], taken[id] = true, f.at(field)
	}
	f.checkText(field+".meaning", c.Meaning)
	f.checkText(field+".fix", c.Fix)
	for i, effect := range c.Brings {
		if effect == string(symptom.Healthy) || !inCatalogue(effect) {
			f.foreign(fmt.Sprintf("%s.brings[%d]", field, i), effect)
		}
	}
}

func (f *ruleFile) checkPhrase(field string, p *rulePhrase) {
	var pattern *regexp.Regexp
	switch id := symptom.ID(p.Cause); {
	case id == symptom.Healthy || id == symptom.Unexplained:
		f.Report(field+".cause", "%s is not found in texts", p.Cause)
	case !f.own[id] && !inCatalogue(p.Cause):
		names := append(catalogue(), ids(f.own)...)
		f.Report(field+".cause", "%s is no cause of this file or of the catalogue%s", quote(p.Cause), config.DidYouMean(p.Cause, names))
	}
	switch {
	case (p.Contains == "") == (p.Regexp == ""):
		f.Report(field, "use either contains or regexp")
	case p.Contains != "":
		f.checkPattern(field+".contains", p.Contains)
	default:
		var err error
		f.checkPattern(field+".regexp", p.Regexp)
		if pattern, err = regexp.Compile(p.Regexp); err != nil {
			f.Report(field+".regexp", "not a regular expression (RE2): %v", err)
		} else if pattern.MatchString("") {
			f.Report(field+".regexp", "it matches every line, because it matches the empty string")
		}
	}
	f.patterns = append(f.patterns, pattern)
	if p.Level != "" && p.Level != string(symptom.Fail) && p.Level != string(symptom.Warn) {
		f.Report(field+".level", "%s is no level; use fail or warn", quote(p.Level))
	}
}

func (f *ruleFile) checkPattern(field, pattern string) {
	if n := utf8.RuneCountInString(pattern); n < patternLeast || n > textLimit {
		f.Report(field, "it has %d characters; use %d to %d", n, patternLeast, textLimit)
	}
}

// foreign reports an ID that is not of the catalogue.
func (f *ruleFile) foreign(field, id string) {
	f.Report(field, "%s is no cause of the catalogue%s", quote(id), config.DidYouMean(id, catalogue()))
}

func (f *ruleFile) checkText(field, text string) {
	if strings.TrimSpace(text) == "" {
		f.Report(field, "it is missing or empty")
	}
	if n := utf8.RuneCountInString(text); n > textLimit {
		f.Report(field, "it has %d characters; use at most %d", n, textLimit)
	}
}

// addTo adds the rules of a file without problems.
func (f *ruleFile) addTo(s *Set) {
	for _, c := range f.Causes {
		own := cause{Symptom: symptom.Symptom{ID: symptom.ID(c.ID), Meaning: oneLine(c.Meaning), Hint: oneLine(c.Fix)}}
		for _, effect := range c.Brings {
			own.brings = append(own.brings, symptom.ID(effect))
		}
		s.causes[own.ID] = own
	}
	for i, p := range f.Phrases {
		level := symptom.Warn
		if p.Level != "" {
			level = symptom.Level(p.Level)
		}
		s.phrases = append(s.phrases, Phrase{
			Rule: f.at(fmt.Sprintf("phrases[%d]", i)), Cause: symptom.ID(p.Cause), Level: level, source: p.Source,
			text: p.Contains, pattern: f.patterns[i], examples: p.Examples, not: p.Not,
		})
	}
	for i, h := range f.Hints {
		id := symptom.ID(h.Cause)
		s.hints[id] = append(s.hints[id], symptom.Note{Text: oneLine(h.Text), Rule: f.at(fmt.Sprintf("hints[%d]", i))})
	}
}

// at is where a rule is written, such as home.yaml:12.
func (f *ruleFile) at(field string) string { return f.name + ":" + strconv.Itoa(f.Line(field)) }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// quote makes a value of the file safe to print.
func quote(s string) string { return fmt.Sprintf("%.60q", s) }

func inCatalogue(id string) bool {
	_, found := symptom.Lookup(symptom.ID(id))
	return found
}

func catalogue() (names []string) {
	for _, s := range symptom.All() {
		names = append(names, string(s.ID))
	}
	return names
}

func ids(own map[symptom.ID]bool) (names []string) {
	for _, id := range slices.Sorted(maps.Keys(own)) {
		names = append(names, string(id))
	}
	return names
}
