package image

// AddonImageNames are the images of add-ons that can be built.
func AddonImageNames() (names []string) {
	for name := range addonImages() {
		names = append(names, name)
	}
	return names
}
