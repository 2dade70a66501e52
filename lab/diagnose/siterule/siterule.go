// Package siterule has the rules that a site adds to the catalogue of causes: its own causes, phrases by which a text shows a cause, and
// hints. It reads their files and matches lines; what a match means for a cluster is up to package diagnose.
package siterule

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8slab/config"
	"k8slab/lab/symptom"
)

// Set is the rules of a site. A nil Set has none.
type Set struct {
	causes  map[symptom.ID]cause
	phrases []Phrase
	hints   map[symptom.ID][]symptom.Note
}

// cause is a cause that the catalogue does not have.
type cause struct {
	symptom.Symptom
	brings []symptom.ID
}

// Phrase is a rule that finds a cause in a line of text.
type Phrase struct {
	Rule   string // where it is written, such as home.yaml:12
	Cause  symptom.ID
	Level  symptom.Level
	source string // the unit or container whose lines it reads; "" for all

	text     string         // to find in the line,
	pattern  *regexp.Regexp // or else this
	examples []string
	not      []string
}

// Matches reports whether the phrase is in the line.
func (p *Phrase) Matches(line string) bool {
	if p.pattern != nil {
		return p.pattern.MatchString(line)
	}
	return strings.Contains(line, p.text)
}

// Reads reports whether the phrase is for the lines of any of these units, programs or containers.
func (p *Phrase) Reads(names ...string) bool {
	return p.source == "" || slices.Contains(names, p.source)
}

// Phrases are all phrases, in the order of the files.
func (s *Set) Phrases() []Phrase {
	if s == nil {
		return nil
	}
	return s.phrases
}

// Lookup finds a cause by its ID: one of the site's or of the catalogue.
func (s *Set) Lookup(id symptom.ID) symptom.Symptom {
	if s.Owns(id) {
		return s.causes[id].Symptom
	}
	known, _ := symptom.Lookup(id)
	return known
}

// Owns reports whether the cause is the site's own.
func (s *Set) Owns(id symptom.ID) bool {
	if s == nil {
		return false
	}
	_, own := s.causes[id]
	return own
}

// Brings reports whether a brings b about, by the catalogue's graph and the site's causes.
func (s *Set) Brings(a, b symptom.ID) bool {
	if !s.Owns(a) {
		return symptom.Brings(a, b)
	}
	return slices.ContainsFunc(s.causes[a].brings, func(effect symptom.ID) bool { return effect == b || symptom.Brings(effect, b) })
}

// Notes are what the site adds to a cause's hint.
func (s *Set) Notes(id symptom.ID) []symptom.Note {
	if s == nil {
		return nil
	}
	return s.hints[id]
}

// Dir is where a user's rules are: $XDG_CONFIG_HOME/k8slab/rules.d, by default ~/.config/k8slab/rules.d.
func Dir() (string, error) {
	base, err := os.UserConfigDir()
	return filepath.Join(base, "k8slab", "rules.d"), err
}

// Files are the files of rules in Dir, in the order of their names. Without the directory there are none.
func Files() ([]string, error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && filepath.Ext(e.Name()) == ".yaml" {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, err
}

// Load reads files of rules, and leaves out those with problems.
func Load(files []string) (*Set, config.Problems) {
	s := &Set{causes: map[symptom.ID]cause{}, hints: map[symptom.ID][]symptom.Note{}}
	taken := map[symptom.ID]string{} // where the ID of a cause is taken, also by a file that is left out
	var all config.Problems
	for _, path := range files {
		f := readFile(path, taken)
		if problems := f.Problems(); len(problems) > 0 {
			all = append(all, problems...)
			continue
		}
		f.addTo(s)
	}
	return s, all
}
