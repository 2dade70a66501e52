package addon

import (
	"fmt"
	"slices"
	"strings"

	"k8slab/config"
)

// All are all add-ons, in alphabetical order.
func All() []Addon {
	return []Addon{flux(), git(), localPath(), metricsServer(), nodeExporter(), prometheus(), sops()}
}

// Resolve returns the named add-ons and those that they need, each once and after what it needs. Several unknown names are one error.
func Resolve(names []string) ([]Addon, error) {
	all := map[string]Addon{}
	var known, unknown []string
	for _, a := range All() {
		all[a.Name] = a
		known = append(known, a.Name)
	}
	for _, name := range names {
		if _, ok := all[name]; !ok {
			unknown = append(unknown, fmt.Sprintf("%q%s", name, config.DidYouMean(name, known)))
		}
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("no add-on %s; there are %s", strings.Join(unknown, ", "), strings.Join(known, ", "))
	}
	var resolved []Addon
	var add func(name string)
	add = func(name string) {
		if slices.ContainsFunc(resolved, func(a Addon) bool { return a.Name == name }) {
			return
		}
		for _, needed := range all[name].Needs {
			add(needed)
		}
		resolved = append(resolved, all[name])
	}
	for _, name := range names {
		add(name)
	}
	return resolved, nil
}
