package join

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// sandboxes are the pods of a fake runtime.
type sandboxes struct {
	mu      sync.Mutex
	made    int
	all     map[string]*runtimeapi.PodSandbox
	configs []*runtimeapi.PodSandboxConfig

	run  func(context.Context) error // instead of a sandbox that runs
	info string                      // what ContainerStatus tells beyond CRI
	gone error                       // what it answers instead
	list []*runtimeapi.Container
}

func (s *sandboxes) put(p *runtimeapi.PodSandbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]*runtimeapi.PodSandbox{}
	}
	s.all[p.Id] = p
}

func (s *sandboxes) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
}

func (s *sandboxes) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.all))
}

func (c *fakeCRI) RunPodSandbox(ctx context.Context, r *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	s := &c.sandboxes
	s.mu.Lock()
	s.made++
	id := fmt.Sprintf("made-%d", s.made)
	s.configs = append(s.configs, r.Config)
	s.mu.Unlock()
	s.put(&runtimeapi.PodSandbox{Id: id, Metadata: r.Config.Metadata, Labels: r.Config.Labels, State: runtimeapi.PodSandboxState_SANDBOX_READY,
		CreatedAt: time.Now().UnixNano()})
	if s.run != nil {
		if err := s.run(ctx); err != nil { // one that failed stays, as a runtime may leave it
			return nil, err
		}
	}
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: id}, nil
}

func (c *fakeCRI) ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	c.sandboxes.mu.Lock()
	defer c.sandboxes.mu.Unlock()
	list := &runtimeapi.ListPodSandboxResponse{}
	for _, p := range c.sandboxes.all {
		list.Items = append(list.Items, p)
	}
	return list, nil
}

func (c *fakeCRI) RemovePodSandbox(_ context.Context, r *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	c.sandboxes.drop(r.PodSandboxId)
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

func (c *fakeCRI) ListContainers(context.Context, *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	return &runtimeapi.ListContainersResponse{Containers: c.sandboxes.list}, nil
}

func (c *fakeCRI) ContainerStatus(context.Context, *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{}, Info: map[string]string{"info": c.sandboxes.info}}, c.sandboxes.gone
}

func (c *fakeCRI) ImageStatus(_ context.Context, r *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.images, r.Image.Image) {
		return &runtimeapi.ImageStatusResponse{}, nil
	}
	return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: r.Image.Image}}, nil
}
