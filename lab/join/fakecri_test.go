package join

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// fakeCRI is a container runtime on the machine's socket.
type fakeCRI struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer
	server    *grpc.Server
	ended     chan struct{}
	sandboxes sandboxes

	mu       sync.Mutex
	unready  string        // reason of a runtime that is not ready
	network  func() string // what it says of its network; nil: all is well
	noConfig bool          // too old for RuntimeConfig
	driver   runtimeapi.CgroupDriver
	images   []string
	mount    string // of the image file system
	hang     bool
	name     string
	version  string
	sandbox  string        // the pause image that it tells of
	slow     time.Duration // until it answers the question for the image file system
}

var labImages = []string{
	"example.com/pause:3.10.2", "example.com/kube-proxy:v1.36.3", "example.com/kube-apiserver:v1.36.3",
	"example.com/kube-controller-manager:v1.36.3", "example.com/kube-scheduler:v1.36.3", "example.com/etcd:3.6.8-0",
}

// serveCRI starts a healthy runtime; without is "" or what it lacks: "cri" (the plugin is off) or "v1" (only v1alpha2).
func serveCRI(f *fakeMachine, without string) *fakeCRI {
	f.t.Helper()
	return serveRuntime(f, containerdSocket, "containerd", "v2.4.2", without)
}

func serveRuntime(f *fakeMachine, socket, name, version, without string) *fakeCRI {
	f.t.Helper()
	c := &fakeCRI{name: name, version: version, images: labImages, mount: "/var/lib/containerd", server: grpc.NewServer(), ended: make(chan struct{})}
	switch without {
	case "":
		runtimeapi.RegisterRuntimeServiceServer(c.server, c)
		runtimeapi.RegisterImageServiceServer(c.server, c)
	case "v1":
		old := runtimeapi.RuntimeService_ServiceDesc
		old.ServiceName = "runtime.v1alpha2.RuntimeService"
		c.server.RegisterService(&old, c)
	}
	listener := listenUnix(f.t, f.Path(socket))
	go func() {
		defer close(c.ended)
		_ = c.server.Serve(listener)
	}()
	f.t.Cleanup(c.stop)
	return c
}

// stop returns when the socket is gone, too.
func (c *fakeCRI) stop() {
	c.server.Stop()
	<-c.ended
}

func listenUnix(t testing.TB, path string) net.Listener {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func (c *fakeCRI) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func (c *fakeCRI) Version(ctx context.Context, _ *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	c.mu.Lock()
	hang := c.hang
	c.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: c.name, RuntimeVersion: c.version, RuntimeApiVersion: "v1"}, nil
}

func (c *fakeCRI) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	network := ""
	if c.network != nil {
		network = c.network()
	}
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: c.unready == "", Reason: c.unready},
		{Type: runtimeapi.NetworkReady, Status: network == "", Message: network},
	}}, Info: map[string]string{"config": fmt.Sprintf(`{"sandboxImage": %q}`, c.sandbox)}}, nil
}

func (c *fakeCRI) RuntimeConfig(ctx context.Context, r *runtimeapi.RuntimeConfigRequest) (*runtimeapi.RuntimeConfigResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.noConfig {
		return c.UnimplementedRuntimeServiceServer.RuntimeConfig(ctx, r)
	}
	return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: c.driver}}, nil
}

func (c *fakeCRI) ListImages(context.Context, *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := &runtimeapi.ListImagesResponse{}
	for _, name := range c.images {
		list.Images = append(list.Images, &runtimeapi.Image{Id: name, RepoTags: []string{name}})
	}
	return list, nil
}

func (c *fakeCRI) ImageFsInfo(ctx context.Context, _ *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	c.mu.Lock()
	slow := c.slow
	c.mu.Unlock()
	select {
	case <-time.After(slow):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mount == "" {
		return &runtimeapi.ImageFsInfoResponse{}, nil
	}
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{
		{Timestamp: 1, FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: c.mount}},
	}}, nil
}
