package scenarios

import (
	"context"
	"errors"
	"testing"
	"time"
)

// says is a driver for which each command prints the same.
type says string

func (s says) Run(context.Context, string, ...string) (string, error) { return string(s), nil }
func (s says) Labctl(context.Context, ...string) (string, error)      { return string(s), nil }

func TestSigns(t *testing.T) {
	ago := func(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339Nano) }
	seconds := func(n int) string { return time.Now().Add(-time.Duration(n) * time.Second).UTC().Format(time.RFC3339) }
	crashed := podFails("kube-system", kubeProxyPods)
	for _, tt := range []struct {
		name, said string
		effect     func(context.Context, Target) error
		want       string // "effect", "absence" or "neither"
	}{
		{"a container waits after it ended", "false CrashLoopBackOff \n", crashed, "effect"},
		{"a container has ended", "false  Error\n", crashed, "effect"},
		{"an image is missing", "false ErrImageNeverPull \n", crashed, "effect"},
		{"a pod starts", "false ContainerCreating \n", crashed, "neither"},
		{"a pod is not ready yet", "false  \n", crashed, "neither"},
		{"a pod runs", "true  \n", crashed, "absence"},
		{"there is no pod", "", crashed, "neither"},
		{"an old Lease", ago(21 * time.Second), leaderless("kube-scheduler"), "effect"},
		{"a new Lease", ago(10 * time.Second), leaderless("kube-scheduler"), "absence"},
		{"no Lease", "", leaderless("kube-scheduler"), "neither"},
		{"no pods", "", noPods(kubeProxyPods), "effect"},
		{"pods", "pod/kube-proxy-abcde\n", noPods(kubeProxyPods), "absence"},
		{"a Node that is not Ready", "Unknown", notReady, "effect"},
		{"a Node that is Ready", "True", notReady, "absence"},
		{"a container that was killed for its memory", "137\n", ends("etcd", "137"), "effect"},
		{"a container that ended otherwise", "0\n", ends("etcd", "137"), "neither"},
		{"a container that runs", "running\n", ends("etcd", "137"), "absence"},
		{"a request that waits", "system:bootstrap:abcdef " + seconds(30) + " \n", requestWaits, "effect"},
		{"a request that was made just now", "system:bootstrap:abcdef " + seconds(3) + " \n", requestWaits, "neither"},
		{"a request that was answered", "system:bootstrap:abcdef " + seconds(30) + " Approved\n", requestWaits, "neither"},
		{"a request of a member", "system:node:w1 " + seconds(30) + " \n", requestWaits, "neither"},
		{"a closed port", "closed\n", sshStopped.Effect, "effect"},
		{"an open port", "open\n", sshStopped.Effect, "absence"},
		{"a pod without its image", "fault-probe: 429 Too Many Requests\n", registryRateLimited.Effect, "effect"},
		{"a pod without its image for another reason", "fault-probe: 401 Unauthorized\n", registryRateLimited.Effect, "neither"},
		{"no pod that waits for an image", "", registryRateLimited.Effect, "absence"},
		{"two machines of one identity", "0123", machineIDCloned.Effect, "effect"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.effect(t.Context(), Target{Driver: says(tt.said), Node: "n", ControlPlane: "c"})
			got := "neither"
			if _, absent := errors.AsType[absence](err); absent {
				got = "absence"
			} else if err == nil {
				got = "effect"
			}
			if got != tt.want {
				t.Errorf("%s: %v", got, err)
			}
		})
	}
}
