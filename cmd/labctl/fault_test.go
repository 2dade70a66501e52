package main

import (
	"strings"
	"testing"
)

// What is refused until a person has acted must not be offered as the way out.
func TestAdvice(t *testing.T) {
	for name, want := range map[string]string{
		"missing-cni": "end it with `labctl repair`",
		"port-in-use": "`labctl join w1` is refused until",
	} {
		f, err := faultOf(name)
		if err != nil {
			t.Fatal(err)
		}
		got := advice(f, "w1")
		if !strings.Contains(got, want) || !strings.Contains(got, "labctl fault restore") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
