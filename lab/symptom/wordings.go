package symptom

// wordings are further phrases of causes, program by program: what the programs' own sources print, in all of their versions.
var wordings = []map[ID][]pattern{kubeadmWordings, kubeletWordings, etcdWordings, runtimeWordings, hostWordings}

// withWordings adds them to the catalogue.
func withWordings(all []Symptom) []Symptom {
	for i := range all {
		for _, of := range wordings {
			all[i].patterns = append(all[i].patterns, of[all[i].ID]...)
		}
	}
	return all
}
