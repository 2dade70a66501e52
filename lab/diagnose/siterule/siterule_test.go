package siterule

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8slab/lab/symptom"
)

func write(t *testing.T, texts map[string]string) (files []string) {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir, err := Dir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if files, err = Files(); err != nil {
		t.Fatal(err)
	}
	return files
}

const good = `causes:
  - id: nas-offline
    meaning: |
      The NAS does
      not answer.
    fix: Ask the storage team.
    brings: [etcd-slow]
phrases:
  - cause: nas-offline
    contains: server nas not responding
    level: fail
    examples: ["nfs: server nas not responding"]
    not: ["nfs: server nas OK"]
  - cause: disk-full
    regexp: quota of \w+ used up
    source: kubelet
    examples: ["quota of x used up", "quota of used up"]
    not: ["the quota of y used up"]
hints:
  - {cause: disk-full, text: page 7}
`

func TestLoad(t *testing.T) {
	s, problems := Load(write(t, map[string]string{"home.yaml": good, "notes.txt": "no rules", "z.yaml": "hints: [{cause: disk-full, text: page 8}]"}))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if own := s.Lookup("nas-offline"); own.Meaning != "The NAS does not answer." || own.Hint != "Ask the storage team." || own.Repairable {
		t.Errorf("%+v", own)
	}
	if !s.Owns("nas-offline") || s.Owns(symptom.DiskFull) || s.Lookup(symptom.DiskFull).Meaning == "" {
		t.Error("what is the site's own")
	}
	if !s.Brings("nas-offline", symptom.EtcdSlow) || !s.Brings("nas-offline", symptom.EtcdUnreachable) || s.Brings("nas-offline", symptom.SwapEnabled) ||
		!s.Brings(symptom.DiskFull, symptom.EtcdSlow) {
		t.Error("what brings what about")
	}
	if got := fmt.Sprint(s.Notes(symptom.DiskFull)); got != "[{page 7 home.yaml:20} {page 8 z.yaml:1}]" {
		t.Error(got)
	}
	nas, quota := s.Phrases()[0], s.Phrases()[1]
	if nas.Rule != "home.yaml:9" || nas.Level != symptom.Fail || quota.Level != symptom.Warn || !nas.Reads("etcd") || quota.Reads("etcd") || !quota.Reads("x", "kubelet") {
		t.Errorf("%+v %+v", nas, quota)
	}
	want := "[{home.yaml:9 nas-offline true 1 1 [] []} {home.yaml:14 disk-full false 2 1 [quota of used up] [the quota of y used up]}]"
	if got := fmt.Sprint(s.Test()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestNoRules(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	if files, err := Files(); err != nil || files != nil {
		t.Errorf("%q, %v", files, err)
	}
	var none *Set
	if none.Owns("x") || none.Phrases() != nil || none.Notes(symptom.DiskFull) != nil || !none.Brings(symptom.DiskFull, symptom.EtcdSlow) ||
		none.Lookup(symptom.DiskFull).ID != symptom.DiskFull || len(none.Test()) != 0 {
		t.Error("a nil set has no rules, and the catalogue")
	}
}

const ownCause = "causes: [{id: own-one, meaning: m, fix: f}]\n"

func TestProblems(t *testing.T) {
	long := strings.Repeat("x", textLimit+1)
	phrase := func(fields string) string { return ownCause + "phrases: [{cause: own-one, " + fields + "}]" }
	for name, tt := range map[string]struct{ text, want string }{
		"empty":            {"", ": the file is empty; it needs at least one of causes, phrases and hints"},
		"unknown key":      {"cause: []", ":1: cause: unknown key; did you mean causes? accepted keys: causes, phrases, hints"},
		"catalogue's":      {"causes: [{id: disk-full, meaning: m, fix: f}]", ":1: causes[0].id: disk-full is a cause of the catalogue; use another ID, or phrases and hints for that cause"},
		"twice":            {"causes:\n- {id: own-one, meaning: m, fix: f}\n- {id: own-one, meaning: m, fix: f}", ":3: causes[1].id: own-one is already a cause in home.yaml:2"},
		"no kebab":         {"causes: [{id: Own_one, meaning: m, fix: f}]", `:1: causes[0].id: "Own_one" is no ID; use`},
		"no fix":           {"causes: [{id: own-one, meaning: m}]", ":1: causes[0].fix: it is missing or empty"},
		"long meaning":     {"causes: [{id: own-one, fix: f, meaning: " + long + "}]", ":1: causes[0].meaning: it has 1001 characters; use at most 1000"},
		"effect":           {"causes: [{id: own-one, meaning: m, fix: f, brings: [disk-ful]}]", `:1: causes[0].brings[0]: "disk-ful" is no cause of the catalogue; did you mean "disk-full"?`},
		"health":           {"causes: [{id: own-one, meaning: m, fix: f, brings: [healthy]}]", `:1: causes[0].brings[0]: "healthy" is no cause`},
		"whose phrase":     {ownCause + "phrases: [{cause: own-on, contains: abcdef}]", `:2: phrases[0].cause: "own-on" is no cause of this file or of the catalogue; did you mean "own-one"?`},
		"unexplained":      {"phrases: [{cause: unexplained, contains: abcdef}]", ":1: phrases[0].cause: unexplained is not found in texts"},
		"no pattern":       {phrase("level: fail"), ":2: phrases[0]: use either contains or regexp"},
		"two patterns":     {phrase("contains: abcdef, regexp: abcdef"), ":2: phrases[0]: use either contains or regexp"},
		"short":            {phrase("contains: abcde"), ":2: phrases[0].contains: it has 5 characters; use 6 to 1000"},
		"short regexp":     {phrase("regexp: a.*bc"), ":2: phrases[0].regexp: it has 5 characters; use 6 to 1000"},
		"long":             {phrase("contains: " + long), ":2: phrases[0].contains: it has 1001 characters; use 6 to 1000"},
		"no regexp":        {phrase(`regexp: "abcdef["`), ":2: phrases[0].regexp: not a regular expression (RE2): error parsing regexp: missing closing ]: `[`"},
		"every line":       {phrase("regexp: abcdef|"), ":2: phrases[0].regexp: it matches every line, because it matches the empty string"},
		"level":            {phrase("contains: abcdef, level: bad"), `:2: phrases[0].level: "bad" is no level; use fail or warn`},
		"whose hint":       {ownCause + "hints: [{cause: own-one, text: t}]", `:2: hints[0].cause: "own-one" is no cause of the catalogue`},
		"empty hint":       {"hints: [{cause: disk-full}]", ":1: hints[0].text: it is missing or empty"},
		"too many":         {"hints:" + strings.Repeat("\n- {cause: disk-full, text: t}", rulesLimit+1), ":1: 201 rules; a file has at most 200"},
		"too large":        {"# " + strings.Repeat("x", 64<<10), ": the file is larger than 64 KiB; this is not a file of rules"},
		"no list":          {"causes: own", `:1: causes: found the text "own"; use a list`},
		"a second set":     {ownCause + "---\n" + ownCause, ":2: a second document starts here; keep one set of rules per file"},
		"examples no text": {phrase("contains: abcdef, examples: [5]"), `:2: phrases[0].examples[0]: found the number "5"; use text`},
	} {
		t.Run(name, func(t *testing.T) {
			files := write(t, map[string]string{"home.yaml": tt.text})
			s, problems := Load(files)
			if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), files[0]+tt.want) {
				t.Errorf("got\n%v\nwant\n%s", problems, files[0]+tt.want)
			}
			if len(s.Phrases()) > 0 || s.Owns("own-one") {
				t.Error("a file with problems is left out")
			}
		})
	}
}

// Every problem of every file is told at once, and the files without problems count.
func TestFilesWithProblemsAreLeftOut(t *testing.T) {
	files := write(t, map[string]string{
		"a.yaml": "causes: [{id: own-one, meaning: m}]\nphrases: [{cause: own-one}]", "b.yaml": ownCause, "c.yaml": good,
	})
	s, problems := Load(append(files, "absent.yaml"))
	want := []string{"a.yaml:1: causes[0].fix", "a.yaml:2: phrases[0]: use either", "b.yaml:1: causes[0].id: own-one is already a cause in a.yaml:1",
		"absent.yaml: cannot be read: no such file or directory"}
	if len(problems) != len(want) {
		t.Fatalf("%v", problems)
	}
	for i, p := range problems {
		if !strings.Contains(p.String(), want[i]) {
			t.Errorf("got %s, want %s", p, want[i])
		}
	}
	if s.Owns("own-one") || !s.Owns("nas-offline") {
		t.Error("what counts")
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(good)
	f.Add(ownCause)
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "x.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, problems := Load([]string{file})
		for _, p := range s.Phrases() {
			if len(problems) > 0 || p.Matches("") || s.Lookup(p.Cause).Meaning == "" {
				t.Errorf("%+v, %v", p, problems)
			}
		}
	})
}

// The example of the document is one.
func TestDocument(t *testing.T) {
	page, err := os.ReadFile("../../../docs/diagnose.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "<!-- rules -->\n```yaml\n")
	text, _, found := strings.Cut(rest, "```\n")
	s, problems := Load(write(t, map[string]string{"home.yaml": text}))
	if !found || len(problems) > 0 || len(s.Phrases()) != 2 || !s.Test()[0].OK || s.Phrases()[0].Rule != "home.yaml:7" {
		t.Errorf("%v\n%s", problems, text)
	}
}
