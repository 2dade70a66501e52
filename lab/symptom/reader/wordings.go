package reader

import "k8slab/lab/symptom"

// phrasesBySubject are the phrases of each cause: first those of its subject, then what the programs' own sources print, in all of their
// versions, program by program.
var phrasesBySubject = []map[symptom.ID][]pattern{runtimePhrases, kubeletPhrases, trustPhrases, networkPhrases, podNetworkPhrases,
	etcdPhrases, hostPhrases, identityPhrases, labPhrases, kubeadmWordings, kubeletWordings, etcdWordings, runtimeWordings, hostWordings}

// patternsOf are the phrases of one cause.
func patternsOf(id symptom.ID) (all []pattern) {
	for _, table := range phrasesBySubject {
		all = append(all, table[id]...)
	}
	return all
}
