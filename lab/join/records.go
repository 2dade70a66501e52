package join

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"k8slab/lab/event"
)

// recordsLimit bounds what is read of the engine's own records.
const recordsLimit = 1 << 20

// Records are the events of the last series of attempts; none where no join has run.
func Records(m Machine) []event.Event {
	f, err := os.Open(m.Path(eventsFile))
	if err != nil {
		return nil
	}
	defer f.Close()
	var all []event.Event
	lines := bufio.NewScanner(io.LimitReader(f, recordsLimit))
	lines.Buffer(nil, 64<<10)
	for lines.Scan() {
		var e event.Event
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			all = append(all, e)
		}
	}
	return all
}

// LogFile is what kubeadm said in the last series of attempts, redacted.
const LogFile = kubeadmLog

// Container is one that the runtime knows.
type Container struct {
	Name    string `json:"name"`
	Pod     string `json:"pod"` // namespace/name
	State   string `json:"state"`
	Attempt uint32 `json:"attempt"`
	Created int64  `json:"created"`           // seconds of the epoch
	ID      string `json:"id,omitempty"`      // its first ShortID digits, as crictl prints it
	Sandbox string `json:"sandbox,omitempty"` // of its pod's sandbox, likewise
}

// ShortID is how many digits of an ID tell containers apart. All 64 look like a secret.
const ShortID = 13

func short(id string) string { return id[:min(len(id), ShortID)] }

// Containers asks the runtime what it runs and ran, and what answers.
func Containers(ctx context.Context, m Machine) (runtime string, all []Container, err error) {
	ctx, cancel := context.WithTimeout(ctx, m.Patience()*criCall)
	defer cancel()
	socket, bad := m.runtimeSocket(Target{})
	if bad.Result != "" {
		return "", nil, &criError{bad}
	}
	if !m.Exists(socket) {
		return "", nil, errNoSocket
	}
	client, err := m.dialCRI(socket)
	if err != nil {
		return "", nil, err
	}
	defer client.Close()
	if runtime, err = runtimeVersion(ctx, client, m.Patience()*criCall); err != nil {
		return "", nil, err
	}
	list, err := runtimeapi.NewRuntimeServiceClient(client).ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	for _, c := range list.GetContainers() {
		labels := c.GetLabels()
		all = append(all, Container{
			Name: c.GetMetadata().GetName(), Attempt: c.GetMetadata().GetAttempt(), State: c.GetState().String(), Created: c.GetCreatedAt() / 1e9,
			Pod: labels["io.kubernetes.pod.namespace"] + "/" + labels["io.kubernetes.pod.name"], ID: short(c.GetId()), Sandbox: short(c.GetPodSandboxId()),
		})
	}
	return runtime, all, err
}
