package symptom

import "slices"

var (
	catalogue = slices.Concat(runtimeCauses, kubeletCauses, trustCauses, networkCauses, podNetworkCauses, etcdCauses, hostCauses,
		identityCauses, upgradeCauses, labCauses)
	byID = index(catalogue)
)

func index(all []Symptom) map[ID]Symptom {
	m := make(map[ID]Symptom, len(all))
	for _, s := range all {
		m[s.ID] = s
	}
	return m
}

// All is the catalogue, one Symptom for every ID, grouped by subject.
func All() []Symptom { return slices.Clone(catalogue) }

// Lookup finds a cause by its ID; ok is false for what is not in the catalogue.
func Lookup(id ID) (s Symptom, ok bool) {
	s, ok = byID[id]
	return s, ok
}
