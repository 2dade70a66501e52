package reader

import (
	"bytes"
	"time"

	"k8slab/lab/symptom"
)

// maxPause is longer than the kubelet waits before it complains again about what lasts: it renews its lease, asks its runtime and
// restarts a pod every 10 to 15 s. An etcd that cannot do its work says so at each of the requests, which never pause for long.
const maxPause = 30 * time.Second

// withoutNetwork are the causes for which no pod gets a network. The kubelet has its runtime try again.
var withoutNetwork = []symptom.ID{symptom.CNINotInitialized, symptom.CNIPluginBinaryMissing, symptom.CNIStaleConfig,
	symptom.FlannelSubnetEnvMissing, symptom.NetworkPluginPodsFailing}

// keptRepeating are the causes of which a program complains every few seconds while they last.
var keptRepeating = map[string][]symptom.ID{
	"kubelet": append([]symptom.ID{symptom.RuntimeSocketMissing, symptom.APIServerUnreachable, symptom.EtcdUnreachable,
		symptom.ControlPlaneCrashloop, symptom.ControllerManagerFailing, symptom.TLSBootstrapTimeout, symptom.ImagePullFailure,
		symptom.CgroupDriverMismatch, symptom.AdvertiseAddressWrong}, withoutNetwork...),
	"containerd": append([]symptom.ID{symptom.RuntimeSocketMissing, symptom.CgroupDriverMismatch}, withoutNetwork...),
	"etcd":       {symptom.EtcdSlow, symptom.EtcdNoQuorum, symptom.EtcdUnreachable, symptom.AdvertiseAddressWrong},
}

// ofEtcd is what each record of etcd's log has.
var ofEtcd = []byte(`"caller":"`)

// speaker is the program of keptRepeating that wrote a record, and when.
func speaker(raw []byte) (program string, at logHeader) {
	h := readHeader(raw)
	if h.program == "" && bytes.Contains(raw, ofEtcd) {
		h.program = "etcd"
	}
	return h.program, h
}

// dropOutlived takes back the causes of which a program has stopped complaining although it went on writing. latest has the start of each
// program's last record. It reports whether there were any.
func (seen tallies) dropOutlived(latest map[string][]byte) (any bool) {
	for program, ids := range keptRepeating {
		now := readHeader(latest[program])
		for _, id := range ids {
			t := seen[id]
			if t == nil || t.fatal > 0 || !now.timed {
				continue
			}
			by, h := speaker(t.last.raw)
			if by != program || !h.timed {
				continue
			}
			if silent := (now.clock - h.clock + day) % day; silent >= maxPause && silent < day/2 {
				delete(seen, id)
				any = true
			}
		}
	}
	return any
}
