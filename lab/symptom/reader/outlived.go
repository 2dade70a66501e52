package reader

import (
	"time"

	"k8slab/lab/symptom"
)

// maxPause is longer than the kubelet waits before it complains again about what lasts: it renews its lease, asks its runtime and
// restarts a pod every 10 to 15 s.
const maxPause = 30 * time.Second

// keptRepeating are the causes of which the kubelet complains every few seconds while they last.
var keptRepeating = []symptom.ID{symptom.RuntimeSocketMissing, symptom.CNINotInitialized, symptom.APIServerUnreachable,
	symptom.EtcdUnreachable, symptom.ControlPlaneCrashloop, symptom.ControllerManagerFailing,
	symptom.NetworkPluginPodsFailing, symptom.TLSBootstrapTimeout, symptom.ImagePullFailure, symptom.FlannelSubnetEnvMissing,
	symptom.CNIPluginBinaryMissing, symptom.CNIStaleConfig}

// dropOutlived takes back the causes of which the kubelet has stopped complaining although it went on writing. latest is the header of
// its last line. It reports whether there were any.
func (seen tallies) dropOutlived(latest []byte) (any bool) {
	now := readHeader(latest)
	if now.program != "kubelet" || !now.timed {
		return false
	}
	for _, id := range keptRepeating {
		t := seen[id]
		if t == nil || t.fatal > 0 {
			continue
		}
		h := readHeader(t.last.raw)
		if h.program != "kubelet" || !h.timed {
			continue
		}
		if silent := (now.clock - h.clock + day) % day; silent >= maxPause && silent < day/2 {
			delete(seen, id)
			any = true
		}
	}
	return any
}
