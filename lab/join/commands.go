package join

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Process is a running container of a pod, as the runtime started it.
type Process struct {
	Pod       string // namespace/name
	Container string
	Image     string   // that its pod asked for; "" where the runtime does not tell
	Command   []string // with its arguments; none where the runtime does not tell
	Running   bool
}

// Processes asks the runtime for the containers of the pods whose names begin with one of the prefixes. Those that ended are among them.
func Processes(ctx context.Context, m Machine, prefixes []string) ([]Process, error) {
	socket, bad := m.runtimeSocket(Target{})
	if bad.Result != "" {
		return nil, &criError{bad}
	}
	client, err := m.dialCRI(socket)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, m.Patience()*criCall)
	defer cancel()
	run := runtimeapi.NewRuntimeServiceClient(client)
	list, err := run.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return nil, err
	}
	all := make([]Process, len(list.Containers))
	failures := make([]error, len(all))
	var wg sync.WaitGroup
	for i, c := range list.Containers {
		p := &all[i]
		*p = Process{Pod: c.Labels["io.kubernetes.pod.namespace"] + "/" + c.Labels["io.kubernetes.pod.name"],
			Container: c.GetMetadata().GetName(), Running: c.State == runtimeapi.ContainerState_CONTAINER_RUNNING}
		if !p.Running || !beginsWith(p.Pod, prefixes) {
			continue
		}
		wg.Go(func() {
			answer, err := run.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.Id, Verbose: true})
			if failures[i] = err; err == nil {
				p.tells(answer.Info["info"])
			}
		})
	}
	wg.Wait()
	var wanted []Process
	for i, p := range all {
		switch {
		case status.Code(failures[i]) == codes.NotFound: // it ended meanwhile
		case failures[i] != nil:
			return nil, failures[i]
		case beginsWith(p.Pod, prefixes):
			wanted = append(wanted, p)
		}
	}
	return wanted, nil
}

func beginsWith(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(s, prefix) })
}

// tells reads what containerd says of a container beyond CRI: its configuration, and the OCI specification that it made of it.
func (p *Process) tells(info string) {
	var known struct {
		Config struct {
			Image struct {
				Asked string `json:"user_specified_image"`
			} `json:"image"`
		} `json:"config"`
		Spec struct {
			Process struct {
				Args []string `json:"args"`
			} `json:"process"`
		} `json:"runtimeSpec"`
	}
	if json.Unmarshal([]byte(info), &known) == nil {
		p.Image, p.Command = known.Config.Image.Asked, known.Spec.Process.Args
	}
}
