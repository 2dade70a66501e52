package image_test

import (
	"slices"
	"testing"

	"k8slab/lab/addon"
	"k8slab/lab/image"
)

// Every image that an add-on names can be built.
func TestEveryAddonHasItsImages(t *testing.T) {
	for _, a := range addon.All() {
		for _, ref := range a.Images {
			if !slices.Contains(image.AddonImageNames(), ref) {
				t.Errorf("%s: no way is known to build %s", a.Name, ref)
			}
		}
	}
}
