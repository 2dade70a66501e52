package diagnose

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"

	"k8slab/lab/event"
)

// hostile are texts that a log, a file or the name of a machine may hold.
var hostile = []string{
	"\x1b[2J\x1b[1;1H\x1b]0;title\x07\x1b[31mred\x9b31m\x1bP1$q\x1b\\",
	"<script>alert(1)</script>",
	`"><img src=x onerror=alert(1)><a href="javascript:alert(1)">`,
	"' onmouseover='alert(1)' style='position:fixed",
	"</style></title><script src=https://evil.example/x.js></script><!--",
	"{{.Lab}} {{template \"hint\" .}} ${x} %s %!d",
	"line\nFAIL    forged on cp1\r\nnext    `rm -rf /`\r\x08\x08\x0c\x0b\u2028\u2029\u0085",
	"user\u202egnp.exe\u2066\u200b\u200f\ufeff\u00ad",
	"\xff\xfe\xc3\x28\xed\xa0\x80\xf4\x90\x80\x80 invalid",
	"Z" + strings.Repeat("\u0301\u0488", 5000) + "algo",
	strings.Repeat("x", 1<<20),
	strings.Repeat("wide 世界 ", 1<<16),
	strings.Repeat("`", 999),
	"`" + strings.Repeat("a ", 500) + "` and `" + strings.Repeat("b", 500) + "`",
	"`echo 'a quote that does not end` \\",
	"javascript:alert(1)", "red;background:url(https://evil.example)", "-->", "]]>", "\x00", "", " ",
}

// poisoned has the text in every string of a report, and numbers that are none. Whatever the report gets, this reaches.
func poisoned(r Report, s string) Report {
	p := poison{text: s}
	p.into(reflect.ValueOf(&r).Elem())
	return r
}

type poison struct {
	text    string
	numbers int
}

func (p *poison) into(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(p.text)
	case reflect.Float64:
		p.numbers++
		v.SetFloat([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1e300, 1e300}[p.numbers%5])
	case reflect.Uint64:
		v.SetUint(math.MaxUint64)
	case reflect.Int, reflect.Int64:
		v.SetInt(math.MinInt64)
	case reflect.Slice:
		for i := range v.Len() {
			p.into(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			p.into(v.Field(i))
		}
	}
}

// oneWord is what may be wider than the width: a word of a command, which a blank within quotes does not end.
var oneWord = regexp.MustCompile(`^(?:\S*'[^']*'\S*|[^ ]+)(?: \\)?$`)

var ourStyles = regexp.MustCompile("\x1b\\[(?:0|1|2|36|1;3[123])m")

// harmlessText fails the test when text could do more to a terminal than be read.
func harmlessText(t *testing.T, got string, width int) {
	t.Helper()
	if !utf8.ValidString(got) {
		t.Errorf("not UTF-8: %q", got)
	}
	labels := []string{"FAIL", "WARN", "evidence", "fix", "repair", "consequence", "alternatively", "ports", "learner", "unread", "next"}
	for i, line := range strings.Split(got, "\n") {
		for _, r := range line {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q in %q", r, line)
			}
		}
		if n := event.Columns(line); n > width && !oneWord.MatchString(line[min(gutter, len(line)):]) {
			t.Errorf("%d columns of %d: %q", n, width, line)
		}
		label, _, _ := strings.Cut(line, " ")
		if i > 8 && label != "" && !slices.Contains(labels, label) {
			t.Errorf("a line of its own: %q", line)
		}
	}
	if len(got) > 1<<20 {
		t.Errorf("%d bytes", len(got))
	}
}

// skeleton is the page's elements with the names of their attributes. It fails the test where the page reaches for anything.
func skeleton(t *testing.T, page string) string {
	t.Helper()
	if !utf8.ValidString(page) {
		t.Errorf("not UTF-8")
	}
	if len(page) > 4<<20 {
		t.Errorf("%d bytes", len(page))
	}
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(page))
	for z.Next() != html.ErrorToken {
		k := z.Token()
		if k.Type == html.TextToken || k.Type == html.DoctypeToken {
			continue
		}
		b.WriteString(k.Type.String() + " " + k.Data)
		for _, a := range k.Attr {
			b.WriteString(" " + a.Key)
			switch {
			case a.Key == "href" && !regexp.MustCompile(`^#[a-z]+$`).MatchString(a.Val),
				a.Key == "style" && !regexp.MustCompile(`^(left|width):[0-9.]+%(;width:[0-9.]+%)?$`).MatchString(a.Val),
				a.Key == "class" && !regexp.MustCompile(`^[a-z0-9 ]*$`).MatchString(a.Val),
				!slices.Contains([]string{"aria-hidden", "aria-label", "charset", "class", "content", "data-label", "href", "http-equiv",
					"id", "lang", "name", "role", "scope", "style", "tabindex", "title"}, a.Key):
				t.Errorf("<%s %s=%q>", k.Data, a.Key, a.Val)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestHostile has every text of a report be hostile: both views show it, and nothing else happens.
func TestHostile(t *testing.T) {
	for i, s := range hostile {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			for _, build := range []func() Report{brokenReport, unreachableReport} { // they have a row of every kind
				r := poisoned(build(), s)
				harmlessText(t, textOf(t, r, 50, false), 50)
				harmlessText(t, ourStyles.ReplaceAllString(textOf(t, r, 0, true), ""), defaultWidth)
				got := skeleton(t, pageOf(t, r))
				length := len([]rune(shownText(s, hintMost)))
				if strings.Contains(s, "`") || length == 0 { // commands and missing texts are elements more and fewer
					continue
				}
				if want := skeleton(t, pageOf(t, poisoned(build(), strings.Repeat("x", length)))); got != want {
					t.Errorf("the text changed the page")
				}
			}
		})
	}
}

// TestViewsLeaveReportAlone: what is cleaned for showing is a copy, because the report is also written as JSON.
func TestViewsLeaveReportAlone(t *testing.T) {
	r := brokenReport()
	r.Findings[0].Evidence[0].Text = "a\x1b[31mb"
	r.Unread = []string{"\x1b[1mx"}
	before, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	textOf(t, r, 80, true)
	pageOf(t, r)
	if after, _ := json.Marshal(r); string(after) != string(before) {
		t.Errorf("before %s\nafter %s", before, after)
	}
}

// TestViewsHideSecrets: a secret that got as far as a report stops here.
func TestViewsHideSecrets(t *testing.T) {
	const secret = "abcdef.0123456789abcdef"
	r := poisoned(brokenReport(), "kubeadm join --token "+secret)
	for _, got := range []string{textOf(t, r, 80, false), pageOf(t, r)} {
		if strings.Contains(got, secret[7:]) || !strings.Contains(got, "abcdef.***") {
			t.Errorf("the token shows, or its public part does not:\n%s", got)
		}
	}
}

func FuzzViews(f *testing.F) {
	for _, s := range hostile {
		f.Add(s[:min(len(s), 2000)], 80) // longer ones keep the fuzzer busy with themselves
	}
	f.Add("a path with one blank", 35)
	f.Fuzz(func(t *testing.T, s string, width int) {
		r := poisoned(brokenReport(), s)
		width = min(max(width, leastWidth), mostWidth)
		harmlessText(t, textOf(t, r, width, false), width)
		harmlessText(t, ourStyles.ReplaceAllString(textOf(t, r, width, true), ""), width)
		skeleton(t, pageOf(t, r))
	})
}
