package state

import (
	"slices"
	"testing"
)

func TestImagesInUse(t *testing.T) {
	l := newLab(t, small)
	if got, err := ImagesInUse(); err != nil || len(got) != 0 {
		t.Errorf("no lab: %q, %v", got, err)
	}
	for _, dir := range []string{"/cache/node-1", "/cache/node-2", "/cache/node-2"} { // machines of the first go on
		if err := l.UsesImage("image", dir); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := ImagesInUse(); err != nil || !slices.Equal(got, []string{"/cache/node-1", "/cache/node-2"}) {
		t.Errorf("got %q, %v", got, err)
	}
}
