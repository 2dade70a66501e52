package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// bystanders are sandboxes that no trial may touch: a pod's, one of a stranger in the trials' namespace, and a trial that is being made.
var bystanders = []string{"a-pod", "a-stranger", "a-young-trial"}

// canTry is a member's runtime, where flannel runs.
func canTry(f *fakeMachine) *fakeCRI {
	f.write("/run/flannel/subnet.env", "FLANNEL_SUBNET=10.244.3.1/24\n")
	return serveCRI(f, "")
}

func withBystanders(c *fakeCRI) *fakeCRI {
	now := time.Now().UnixNano()
	old := time.Now().Add(-time.Hour).UnixNano()
	at := func(id, namespace, label string, created int64) {
		p := &runtimeapi.PodSandbox{Id: id, Metadata: &runtimeapi.PodSandboxMetadata{Name: id, Namespace: namespace}, CreatedAt: created}
		if label != "" {
			p.Labels = map[string]string{trialLabel: label}
		}
		c.sandboxes.put(p)
	}
	at("a-pod", "default", "of-a-user", old)
	at("a-stranger", trialNamespace, "", old)
	at("a-young-trial", trialNamespace, "trial-young", now)
	at("an-old-trial", trialNamespace, "trial-old", old)
	return c
}

func TestTrySandbox(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prepare func(*fakeMachine, *fakeCRI)
		want    func(error) bool
		made    int
	}{
		{"it works", func(*fakeMachine, *fakeCRI) {}, func(err error) bool { return err == nil }, 1},
		{"no sandbox", func(_ *fakeMachine, c *fakeCRI) {
			c.sandboxes.run = func(context.Context) error {
				return status.Error(codes.Unknown, "exec: \"runc\": executable file not found in $PATH")
			}
		}, says("run a sandbox: exec: \"runc\"", false), 1},
		{"no image", func(_ *fakeMachine, c *fakeCRI) { c.images = []string{"example.com/etcd:3.6.8-0"} }, func(err error) bool {
			failed, ok := errors.AsType[*TrialError](err)
			return ok && failed.Missing == "example.com/pause:3.10.2" && failed.Other == ""
		}, 0},
		{"another image", func(_ *fakeMachine, c *fakeCRI) { c.images = []string{"example.com/pause:3.9"} }, func(err error) bool {
			failed, ok := errors.AsType[*TrialError](err)
			return ok && failed.Missing == "example.com/pause:3.10.2" && failed.Other == "example.com/pause:3.9"
		}, 0},
		{"no answer", func(_ *fakeMachine, c *fakeCRI) {
			c.sandboxes.run = func(ctx context.Context) error { <-ctx.Done(); return status.FromContextError(ctx.Err()).Err() }
		}, says("run a sandbox", true), 1},
		{"kubelet ends it", func(_ *fakeMachine, c *fakeCRI) {
			c.sandboxes.run = func(context.Context) error { c.sandboxes.drop("made-1"); return nil }
		}, func(err error) bool { return err == nil }, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFakeMachine(t)
			c := withBystanders(canTry(f))
			tt.prepare(f, c)
			if err := TrySandbox(t.Context(), f.Machine); !tt.want(err) {
				t.Errorf("%v", err)
			}
			if left := c.sandboxes.names(); !slices.Equal(left, bystanders) {
				t.Errorf("left over: %v", left)
			}
			if c.sandboxes.made != tt.made {
				t.Errorf("%d were made, not %d", c.sandboxes.made, tt.made)
			}
		})
	}
}

func says(text string, late bool) func(error) bool {
	return func(err error) bool {
		failed, ok := errors.AsType[*TrialError](err)
		return ok && failed.Late == late && strings.HasPrefix(failed.Error(), text)
	}
}

// Its caller goes away, and nothing stays.
func TestTrialOfACallerWhoGoesAway(t *testing.T) {
	f := newFakeMachine(t)
	c := withBystanders(canTry(f))
	ctx, cancel := context.WithCancel(t.Context())
	c.sandboxes.run = func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	if err := TrySandbox(ctx, f.Machine); !says("run a sandbox", true)(err) {
		t.Error(err)
	}
	if left := c.sandboxes.names(); !slices.Equal(left, bystanders) {
		t.Errorf("left over: %v", left)
	}
}

func TestUntried(t *testing.T) {
	f := newFakeMachine(t)
	if err := TrySandbox(t.Context(), f.Machine); !errors.Is(err, ErrUntried) {
		t.Errorf("without a socket: %v", err)
	}
	serveCRI(f, "cri")
	if err := TrySandbox(t.Context(), f.Machine); !errors.Is(err, ErrUntried) {
		t.Errorf("without CRI: %v", err)
	}
	f = newFakeMachine(t)
	serveCRI(f, "")
	if err := TrySandbox(t.Context(), f.Machine); !errors.Is(err, ErrUntried) {
		t.Errorf("where flannel has no subnet: %v", err)
	}
}

// Two at once have names of their own, and cgroups where kubelet puts pods.
func TestTrialsAtOnce(t *testing.T) {
	f := newFakeMachine(t)
	c := canTry(f)
	c.driver = runtimeapi.CgroupDriver_SYSTEMD
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := TrySandbox(t.Context(), f.Machine); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, config := range c.sandboxes.configs {
		seen[config.Metadata.Uid] = true
		if config.Linux.CgroupParent != "kubepods.slice" || config.Metadata.Namespace != trialNamespace {
			t.Errorf("%+v", config)
		}
	}
	if len(seen) != 4 || len(c.sandboxes.names()) != 0 {
		t.Errorf("%v, left over: %v", seen, c.sandboxes.names())
	}
}

func TestProcesses(t *testing.T) {
	f := newFakeMachine(t)
	c := canTry(f)
	c.sandboxes.info = `{"config":{"image":{"user_specified_image":"example.com/etcd:1"}},"runtimeSpec":{"process":{"args":["etcd","--name=cp1"]}}}`
	at := func(pod string, state runtimeapi.ContainerState) {
		c.sandboxes.list = append(c.sandboxes.list, &runtimeapi.Container{Metadata: &runtimeapi.ContainerMetadata{Name: "etcd"}, State: state,
			Labels: map[string]string{"io.kubernetes.pod.namespace": "kube-system", "io.kubernetes.pod.name": pod}})
	}
	at("etcd-cp1", runtimeapi.ContainerState_CONTAINER_RUNNING)
	at("etcd-cp1", runtimeapi.ContainerState_CONTAINER_EXITED)
	at("coredns-x", runtimeapi.ContainerState_CONTAINER_RUNNING)
	got, err := Processes(t.Context(), f.Machine, []string{"kube-system/etcd-"})
	want := []Process{{"kube-system/etcd-cp1", "etcd", "example.com/etcd:1", []string{"etcd", "--name=cp1"}, true}, {"kube-system/etcd-cp1", "etcd", "", nil, false}}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v %v", got, err)
	}

	c.sandboxes.gone = status.Error(codes.NotFound, "an error occurred when try to find container")
	if got, err = Processes(t.Context(), f.Machine, []string{"kube-system/etcd-"}); err != nil || fmt.Sprint(got) != fmt.Sprint(want[1:]) {
		t.Errorf("one that ended meanwhile: %v %v", got, err)
	}
	c.sandboxes.gone = status.Error(codes.DeadlineExceeded, "context deadline exceeded")
	if got, err = Processes(t.Context(), f.Machine, []string{"kube-system/etcd-"}); err == nil {
		t.Errorf("a runtime that is too slow: %v", got)
	}
}
