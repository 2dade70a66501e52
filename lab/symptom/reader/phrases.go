package reader

import "k8slab/lab/symptom"

// phraseTables have the phrases of each cause: first those of its subject, collected from reports, then the messages of the programs, read
// from the sources of all of their versions.
var phraseTables = []map[symptom.ID][]pattern{runtimePhrases, kubeletPhrases, trustPhrases, networkPhrases, podNetworkPhrases, etcdPhrases,
	hostPhrases, identityPhrases, labPhrases, kubeadmMessages, kubeletMessages, etcdMessages, runtimeMessages, hostMessages}

// patternsOf are the phrases of one cause.
func patternsOf(id symptom.ID) (all []pattern) {
	for _, table := range phraseTables {
		all = append(all, table[id]...)
	}
	return all
}
