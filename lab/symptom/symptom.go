package symptom

// Symptom is one cause: what it means, what mends it, and how text shows it.
type Symptom struct {
	ID      ID
	Meaning string // one plain sentence
	// Hint is what to do, with exact commands. It never wipes a member's data, a CNI directory or a runtime's state as a first step.
	Hint string
	// Sources are upstream threads, as OWNER/REPOSITORY#NUMBER; there may be none.
	Sources []string
	// Repairable says that the lab can mend it without asking a person anything.
	Repairable bool
	// Minor is for what stops nothing by itself.
	Minor    bool
	patterns []pattern
}

var (
	catalogue = build(runtimeCauses, kubeletCauses, trustCauses, networkCauses, podNetworkCauses, etcdCauses, hostCauses, identityCauses,
		labCauses)
	byID = index(catalogue)
)

func build(groups ...[]Symptom) []Symptom {
	var all []Symptom
	for _, g := range groups {
		all = append(all, g...)
	}
	return withWordings(all)
}

func index(all []Symptom) map[ID]int {
	m := make(map[ID]int, len(all))
	for i, s := range all {
		m[s.ID] = i
	}
	return m
}

// All is the catalogue, one Symptom for every ID, grouped by subject.
func All() []Symptom { return append([]Symptom(nil), catalogue...) }

// Lookup finds a cause by its ID; ok is false for what is not in the catalogue.
func Lookup(id ID) (s Symptom, ok bool) {
	i, ok := byID[id]
	if !ok {
		return Symptom{}, false
	}
	return catalogue[i], true
}
