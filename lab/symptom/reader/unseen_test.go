package reader

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// unseenFile lists the phrases that no text of the corpus shows, and unseenCount is how many they are. Both may only shrink: a phrase
// that is added needs a text.
const (
	unseenFile  = "testdata/unseen.txt"
	unseenCount = 1888
)

// entry is how the list names a phrase.
func (k *known) entry() string {
	whose := string(k.id)
	switch k.kind {
	case ofRecovery:
		whose = "recovery"
	case ofDetail:
		whose = details[k.index].name
	}
	return fmt.Sprintf("%s %q", whose, k.pattern.phrase)
}

// unseen are the phrases that no text of the corpus shows, sorted.
func unseen(t *testing.T) (entries []string) {
	seen := map[*known]bool{}
	var done marks
	for _, ex := range corpus(t) {
		r := recordReader{onLine: func(int, []byte) {}}
		r.onRecord = func() {
			words().matches(r.rec.normal, &done, func(f find) { seen[f.known] = true })
		}
		if err := r.read(strings.NewReader(ex.text)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range words().all {
		if k := &words().all[i]; !seen[k] {
			entries = append(entries, k.entry())
		}
	}
	slices.Sort(entries)
	return slices.Compact(entries)
}

// TestNewPhrasesHaveTexts fails for a phrase without a text that is not in the list, and for what need not be in the list any more. With
// -update it deletes the latter from the list, and never adds anything to it.
func TestNewPhrasesHaveTexts(t *testing.T) {
	data, err := os.ReadFile(unseenFile)
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	now := unseen(t)
	for _, entry := range now {
		if _, ok := slices.BinarySearch(listed, entry); !ok {
			t.Errorf("%s: no text of testdata/corpus shows this new phrase: add one", entry)
		}
	}
	kept := slices.DeleteFunc(slices.Clone(listed), func(entry string) bool {
		_, ok := slices.BinarySearch(now, entry)
		return !ok
	})
	if len(kept) < len(listed) && *update {
		if err := os.WriteFile(unseenFile, []byte(strings.Join(kept, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if len(kept) < len(listed) {
		t.Errorf("%d phrases of %s are gone or have a text now; go test ./lab/symptom/reader -run TestNewPhrases -update",
			len(listed)-len(kept), unseenFile)
	}
	if len(kept) != unseenCount {
		t.Errorf("%s has %d phrases that belong there, unseenCount is %d: it may only fall", unseenFile, len(kept), unseenCount)
	}
}
