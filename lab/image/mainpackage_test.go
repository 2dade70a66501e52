package image

import (
	"slices"
	"testing"
)

func TestMainWithout(t *testing.T) {
	const source = `// generated

package plugin

import (
	// Include all plugins.
	_ "example.com/dns/plugin/azure"
	_ "example.com/dns/plugin/cache"

	"example.com/dns/route53"
)

var x = 1
`
	const want = `// generated

package main

import (
	// Include all plugins.

	_ "example.com/dns/plugin/cache"
)

var x = 1
`
	got, found, err := mainWithout([]byte(source), []string{"example.com/dns/route53", "example.com/dns/plugin/azure", "example.com/dns/nomad"})
	if err != nil || string(got) != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
	if want := []string{"example.com/dns/plugin/azure", "example.com/dns/route53"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	if _, _, err := mainWithout([]byte("package"), nil); err == nil {
		t.Error("no error for what is no Go")
	}
}
