package join

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// How a trial's sandbox is known among those of pods.
const (
	trialLabel     = "k8slab/trial"
	trialNamespace = "k8slab-trial"
)

const (
	// trialTime is what a sandbox may take. An idle machine needs 0.2 s.
	trialTime = 2 * time.Second
	// trialEnd is what their removal may take. It has its own time, so that nothing stays when the trial's is over.
	trialEnd = 1200 * time.Millisecond
	// trialAge is how old a trial is that nobody makes any more: it was interrupted.
	trialAge = time.Minute
)

// ErrUntried is that a sandbox cannot be tried, for a reason that has checks of its own: no container runtime answers, or flannel has no
// subnet for the node yet, for which its plugin waits half a minute. Or that the runtime would first pull its image, which would stay.
var ErrUntried = errors.New("no container runtime answers, flannel has no subnet yet, or the pause image is not here")

// TrialError is what the runtime says when it cannot make a sandbox.
type TrialError struct {
	Said    string
	Late    bool   // it said nothing in time, which on a busy machine proves nothing
	Missing string // the image without which none can be made; "" when it is there
	Other   string // a pause image that is there instead; "" for none
}

func (e *TrialError) Error() string { return "run a sandbox: " + e.Said }

// TrySandbox makes what every pod begins with: a sandbox, with its network and its own container, of the pause image, that runs. So it
// tries the runtime, its runc and shim, the image, the snapshotter and the network's plugins at once. A second container would try the same
// again. Where the network's plugins would refuse a sandbox of no pod, or leave a bridge, it is in the machine's network. It removes the sandbox, whatever happens, and those that interrupted trials have left. Its error is a *TrialError or ErrUntried.
// It takes no longer than trialTime and trialEnd together.
func TrySandbox(ctx context.Context, m Machine) error {
	if slices.Contains(m.PodNetwork(), "flannel") && m.SubnetEnv() == nil {
		return ErrUntried
	}
	socket, bad := m.runtimeSocket(Target{})
	if bad.Result != "" || !m.Exists(socket) {
		return ErrUntried
	}
	client, err := m.dialCRI(socket)
	if err != nil {
		return ErrUntried
	}
	defer client.Close()
	t := &trial{m: m, run: runtimeapi.NewRuntimeServiceClient(client), runtime: runtimeAt(socket)}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { t.sweep(ctx, t.old) })
	limited, cancel := context.WithTimeout(ctx, m.Patience()*trialTime)
	defer cancel()
	if err := t.prepare(limited, client); err != nil {
		return err
	}
	return t.make(limited)
}

// trial makes sandboxes and removes them.
type trial struct {
	m       Machine
	run     runtimeapi.RuntimeServiceClient
	runtime criRuntime
	parent  string // of the cgroups, as kubelet gives it to pods
}

// prepare finds what a sandbox depends on.
func (t *trial) prepare(ctx context.Context, client *grpc.ClientConn) error {
	config, err := t.run.RuntimeConfig(ctx, &runtimeapi.RuntimeConfigRequest{})
	driver := "systemd"
	if t.runtime.unit == "containerd" {
		driver = configuredDriver(strings.Join(t.runtime.configuration(t.m), "\n"))
	}
	if err == nil && config.Linux != nil && config.Linux.CgroupDriver == runtimeapi.CgroupDriver_CGROUPFS {
		driver = "cgroupfs"
	}
	t.parent = "/kubepods"
	if driver == "systemd" {
		t.parent = "kubepods.slice"
	}
	images := runtimeapi.NewImageServiceClient(client)
	image := t.image(ctx)
	if image == "" {
		if t.m.made() || pauseImage(ctx, images) != "" {
			return nil
		}
		return ErrUntried
	}
	found, err := images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: image}})
	if err == nil && found.Image == nil { // a runtime would try for a long time to pull it
		if !t.m.made() { // and may have a registry
			return ErrUntried
		}
		return &TrialError{Said: "its image " + image + " is not here", Missing: image, Other: pauseImage(ctx, images)}
	}
	return nil
}

// image is the pause image as the runtime's configuration names it, or else as the runtime tells; "" when neither does.
func (t *trial) image(ctx context.Context) string {
	if t.runtime.unit == "containerd" {
		if image := configuredSandbox(t.m); image != "" {
			return image
		}
	}
	answer, err := t.run.Status(ctx, &runtimeapi.StatusRequest{Verbose: true})
	if err != nil {
		return ""
	}
	var config struct {
		SandboxImage string `json:"sandboxImage"`
	}
	_ = json.Unmarshal([]byte(answer.Info["config"]), &config) // not every runtime tells
	return config.SandboxImage
}

// pauseImage is an image that the machine has for sandboxes, "" if it has none.
func pauseImage(ctx context.Context, images runtimeapi.ImageServiceClient) string {
	all, err := images.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return ""
	}
	for _, i := range all.Images {
		for _, tag := range i.RepoTags {
			if strings.Contains(tag, "/pause:") {
				return tag
			}
		}
	}
	return ""
}

// make makes the sandbox. kubelet, which does not know its pod, may end it within a second or two; that does no harm.
func (t *trial) make(ctx context.Context) error {
	name := "trial-" + strings.ToLower(rand.Text()[:10])
	defer t.sweep(ctx, func(s *runtimeapi.PodSandbox) bool { return s.Labels[trialLabel] == name })
	namespaces := &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER}
	config := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: trialNamespace, Uid: name},
		Hostname: name,
		Labels:   map[string]string{trialLabel: name},
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent:    t.parent,
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: namespaces},
		},
	}
	if !t.m.made() && !t.m.asksNobody() {
		namespaces.Network, config.Hostname = runtimeapi.NamespaceMode_NODE, "" // the machine's name is not the trial's to set
	}
	_, err := t.run.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		return trialError(err)
	}
	return nil
}

func trialError(err error) error {
	s := status.Convert(err)
	if s.Code() == codes.Unavailable || s.Code() == codes.Unimplemented {
		return ErrUntried
	}
	return &TrialError{Said: s.Message(), Late: s.Code() == codes.DeadlineExceeded || s.Code() == codes.Canceled}
}

// old reports whether an earlier trial left the sandbox. By a clock that was set back everything is young: then kubelet removes it.
func (t *trial) old(s *runtimeapi.PodSandbox) bool {
	return t.m.Now().Sub(time.Unix(0, s.CreatedAt)) > trialAge
}

// sweep removes trials' sandboxes. It goes on after the trial's own end. Sandboxes of others do not have the label.
func (t *trial) sweep(ctx context.Context, such func(*runtimeapi.PodSandbox) bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.m.Patience()*trialEnd)
	defer cancel()
	list, err := t.run.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return // the next trial sees them again
	}
	for _, s := range list.Items {
		if s.Labels[trialLabel] == "" || s.GetMetadata().GetNamespace() != trialNamespace || !such(s) {
			continue
		}
		// It stops the sandbox, too. Stopped before, it would lose its network twice: the plugins are most of what a trial computes.
		_, _ = t.run.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.Id})
	}
}
