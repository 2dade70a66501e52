package join

import (
	"context"
	"crypto/rand"
	"errors"
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
	// trialTime is what a sandbox and its container may take. An idle machine needs 0.2 s.
	trialTime = 2 * time.Second
	// trialEnd is what their removal may take. It has its own time, so that nothing stays when the trial's is over.
	trialEnd = 1200 * time.Millisecond
	// trialAge is how old a trial is that nobody makes any more: it was interrupted.
	trialAge = time.Minute
	// trialTries is how often a trial is made that somebody else ended.
	trialTries = 3
)

// ErrTrialEnded is a trial that somebody else ended each time, so that it shows nothing: kubelet kills pods that it does not know, a
// second or two after they began.
var ErrTrialEnded = errors.New("kubelet ended each trial before it was made")

// ErrNoRuntime is a runtime that cannot be asked, for which it has checks of its own.
var ErrNoRuntime = errors.New("no container runtime answers")

// TrialError is what the runtime says to a step of a trial.
type TrialError struct {
	Step string // such as "run a sandbox"
	Late bool   // it said nothing in time, which on a busy machine proves nothing
	Said string

	Missing string // the image without which no sandbox can be made; "" when it is there
}

func (e *TrialError) Error() string { return e.Step + ": " + e.Said }

// TrySandbox makes what every pod needs: a sandbox with its network, and a container in it that starts, of the pause image. It removes them
// again, whatever happens, and so what an interrupted trial has left. Its error is a *TrialError, ErrTrialEnded or ErrNoRuntime. It takes no
// longer than trialTime and trialEnd together.
func TrySandbox(ctx context.Context, m Machine) error {
	socket, bad := m.runtimeSocket(Target{})
	if bad.Result != "" || !m.Exists(socket) {
		return ErrNoRuntime
	}
	client, err := m.dialCRI(socket)
	if err != nil {
		return ErrNoRuntime
	}
	defer client.Close()
	t := &trial{m: m, run: runtimeapi.NewRuntimeServiceClient(client)}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { t.sweep(ctx, t.old) })
	ctx, cancel := context.WithTimeout(ctx, m.Patience()*trialTime)
	defer cancel()
	if err := t.prepare(ctx, client); err != nil {
		return err
	}
	for range trialTries {
		ended, err := t.make(ctx)
		if !ended {
			return err
		}
	}
	return ErrTrialEnded
}

// trial makes sandboxes and removes them.
type trial struct {
	m      Machine
	run    runtimeapi.RuntimeServiceClient
	image  string
	parent string // of the cgroups, as kubelet gives it to pods
}

// prepare finds what a sandbox depends on.
func (t *trial) prepare(ctx context.Context, client *grpc.ClientConn) error {
	text, _ := t.m.Read(containerdConfig)
	config, err := t.run.RuntimeConfig(ctx, &runtimeapi.RuntimeConfigRequest{})
	driver := configuredDriver(text)
	if err == nil && config.Linux != nil && config.Linux.CgroupDriver == runtimeapi.CgroupDriver_CGROUPFS {
		driver = "cgroupfs"
	}
	t.parent = "/kubepods"
	if driver == "systemd" {
		t.parent = "kubepods.slice"
	}
	images := runtimeapi.NewImageServiceClient(client)
	if t.image = configuredSandbox(text); t.image != "" {
		found, err := images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: t.image}})
		if err == nil && found.Image == nil { // a runtime would try for a long time to pull it
			return &TrialError{Step: "run a sandbox", Said: "its image " + t.image + " is not here", Missing: t.image}
		}
		return nil
	}
	list, err := images.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return trialError("list images", err)
	}
	for _, i := range list.GetImages() {
		if pauses := matching(i.RepoTags, "pause", ""); len(pauses) > 0 {
			t.image = pauses[0]
		}
	}
	return nil
}

// make tries once. It reports also whether somebody else ended the sandbox, in which case its error proves nothing.
func (t *trial) make(ctx context.Context) (ended bool, err error) {
	name := "trial-" + strings.ToLower(rand.Text()[:10])
	pod := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: trialNamespace, Uid: name},
		Hostname: name,
		Labels:   map[string]string{trialLabel: name},
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent:    t.parent,
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER}},
		},
	}
	defer t.sweep(ctx, func(s *runtimeapi.PodSandbox) bool { return s.Labels[trialLabel] == name })
	sandbox, err := t.run.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: pod})
	if err != nil {
		return false, trialError("run a sandbox", err)
	}
	if t.image == "" {
		return false, nil
	}
	step := "create a container of " + t.image
	container, err := t.run.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox.PodSandboxId, SandboxConfig: pod,
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "trial"}, Image: &runtimeapi.ImageSpec{Image: t.image},
			Labels: map[string]string{trialLabel: name}, Linux: &runtimeapi.LinuxContainerConfig{},
		},
	})
	if err == nil {
		step = "start a container of " + t.image
		_, err = t.run.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: container.ContainerId})
	}
	if err == nil {
		return false, nil
	}
	return t.gone(ctx, sandbox.PodSandboxId), trialError(step, err)
}

func trialError(step string, err error) error {
	s := status.Convert(err)
	if s.Code() == codes.Unavailable || s.Code() == codes.Unimplemented {
		return ErrNoRuntime
	}
	return &TrialError{Step: step, Late: s.Code() == codes.DeadlineExceeded || s.Code() == codes.Canceled, Said: s.Message()}
}

// gone reports whether the sandbox, which ran, does not run any more.
func (t *trial) gone(ctx context.Context, id string) bool {
	answer, err := t.run.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id})
	if err != nil {
		return status.Code(err) == codes.NotFound
	}
	return answer.GetStatus().GetState() != runtimeapi.PodSandboxState_SANDBOX_READY
}

// old reports whether an earlier trial left the sandbox. By a clock that was set back everything is young: then kubelet removes it.
func (t *trial) old(s *runtimeapi.PodSandbox) bool {
	return t.m.Now().Sub(time.Unix(0, s.CreatedAt)) > trialAge
}

// sweep removes trials' sandboxes and what is in them. It goes on after the trial's own end. Sandboxes of others do not have the label.
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
		_, _ = t.run.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: s.Id})
		_, _ = t.run.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.Id})
	}
}
