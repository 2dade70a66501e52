package config

import "testing"

func TestDidYouMean(t *testing.T) {
	nodes := []string{"cp1", "w1", "w2"}
	for word, want := range map[string]string{
		"w11":   `; did you mean "w1"?`,
		"W2":    `; did you mean "w2"?`,
		"cp":    `; did you mean "cp1"?`,
		"w3":    "", // as near to w1 as to w2
		"other": "",
		"":      "",
	} {
		if got := DidYouMean(word, nodes); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

func TestUnknown(t *testing.T) {
	for word, want := range map[string]string{
		"w11": `no node "w11"; did you mean "w1"? The lab has cp1, w1`,
		"db":  `no node "db"; the lab has cp1, w1`,
	} {
		if got := Unknown("node", word, "the lab has", []string{"cp1", "w1"}).Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
