package command

import (
	"slices"
	"testing"
)

func TestSplitQuoted(t *testing.T) {
	for text, want := range map[string][]string{
		"":                      nil,
		`"A=b c" D=e`:           {"A=b c", "D=e"},
		`--comment "to \"it\""`: {"--comment", `to "it"`},
	} {
		if got := SplitQuoted(text); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
