package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/host"
	"k8slab/lab/image"
	"k8slab/lab/join"
	"k8slab/lab/machine"
	"k8slab/lab/node"
	"k8slab/lab/provision"
	"k8slab/lab/session"
	"k8slab/lab/wait"
)

// kubeadm init runs in a unit of its own, so that a lost connection or a killed labctl does not kill it. A later run finds the unit and
// waits for it. Joins are the business of labnode, in the node.
const (
	kubeadmUnit   = join.InitUnit
	kubeadmConfig = "/run/k8slab/kubeadm.yaml"
	kubeadmLog    = "/var/log/k8slab-kubeadm.log"
	kubeadmScript = "/usr/lib/k8slab/kubeadm"
	followScript  = "/usr/lib/k8slab/follow"
	labnode       = "/usr/bin/labnode"
)

// runInit runs `kubeadm init` on the node with the configuration and waits for its end. When the budget runs out kubeadm is left alone: its
// own timeouts, all shorter, end it.
func runInit(ctx context.Context, s *session.Session, name string, documents []any, budget time.Duration, step *event.Step) error {
	n := s.Nodes[name]
	text, err := marshal(documents)
	if err != nil {
		return err
	}
	if err := n.Copy(ctx, kubeadmConfig, 0o600, strings.NewReader(text)); err != nil {
		return err
	}
	err = n.Run(ctx, node.Command{Argv: []string{
		"systemd-run", "--quiet", "--collect", "--no-block", "--unit", kubeadmUnit, "--service-type=oneshot",
		"--property=RemainAfterExit=no", "--property=UMask=0077",
		"--property=StandardOutput=truncate:" + kubeadmLog, "--property=StandardError=append:" + kubeadmLog,
		kubeadmScript,
	}})
	if err != nil {
		return err
	}
	return awaitInit(ctx, s, name, budget, step)
}

// awaitInit waits until kubeadm's unit on the node has ended, showing what it does, and returns its failure.
func awaitInit(ctx context.Context, s *session.Session, name string, budget time.Duration, step *event.Step) error {
	n := s.Nodes[name]
	return wait.For(ctx, "kubeadm on "+name, budget, 100*time.Millisecond, func(ctx context.Context) error {
		// Ends with the unit; a connection lost meanwhile is made anew by the next round.
		err := n.Run(ctx, node.Command{Argv: []string{followScript}, Stdout: phases(step), ReadOnly: true})
		if err != nil {
			return err
		}
		f, err := s.ReadFacts(ctx, n)
		if err != nil {
			return err
		}
		if f.Running() {
			return errors.New("it is still running")
		}
		if !f.Joined {
			return wait.Hopeless(kubeadmFailure(ctx, s, name))
		}
		return nil
	})
}

// kubeadmFailure is what kubeadm said at its end.
func kubeadmFailure(ctx context.Context, s *session.Session, name string) error {
	out, err := s.Nodes[name].Read(ctx, "tail", "-n", "25", kubeadmLog)
	if err != nil {
		return fmt.Errorf("%s: kubeadm failed and its log cannot be read: %w", name, err)
	}
	return fmt.Errorf("%s: kubeadm failed: %s\nnext: labctl ssh %s cat %s; labctl logs %s --unit kubelet",
		name, event.Redact(cause(out)), name, kubeadmLog, name)
}

// cause is the part of kubeadm's output that says why: from its first error line on.
func cause(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "error") || strings.Contains(line, "[ERROR") || strings.Contains(line, "error execution phase") {
			return strings.Join(lines[i:], "\n")
		}
	}
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// phases shows kubeadm's "[phase] text" lines as progress.
func phases(step *event.Step) *node.Lines {
	return &node.Lines{Each: func(line []byte) error {
		if bytes.HasPrefix(line, []byte("[")) {
			step.Progress("%s", line)
		}
		return nil
	}}
}

type object = map[string]any

const kubeadmAPI = "kubeadm.k8s.io/v1beta4"

// initDocuments configure `kubeadm init` on the node.
func initDocuments(s *session.Session, n config.Node, token, certificateKey string) []any {
	c := s.Cluster
	return []any{
		slowProbes(s, object{
			"apiVersion": kubeadmAPI, "kind": "InitConfiguration",
			"bootstrapTokens": []any{object{
				"token": token, "description": tokenMark + "init", "ttl": tokenTTL.String(), "usages": []string{"signing", "authentication"},
				"groups": []string{"system:bootstrappers:kubeadm:default-node-token"},
			}},
			"certificateKey":   certificateKey,
			"localAPIEndpoint": object{"advertiseAddress": n.IP.String(), "bindPort": 6443},
			"nodeRegistration": registration(s, n),
			"timeouts":         timeouts(s),
		}),
		lowCPU(s, object{
			"apiVersion": kubeadmAPI, "kind": "ClusterConfiguration",
			"clusterName":          c.Name,
			"kubernetesVersion":    c.Kubernetes.Version,
			"controlPlaneEndpoint": s.Endpoint(),
			"controllerManager":    object{"extraArgs": leaderElection(s, "kube-api-qps=100", "kube-api-burst=200")},
			"scheduler":            object{"extraArgs": leaderElection(s)},
			"networking":           object{"podSubnet": c.Network.PodSubnet.String(), "serviceSubnet": c.Network.ServiceSubnet.String()},
		}),
		object{
			"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
			"cgroupDriver": "systemd",
			"failCgroupV1": false, // containers share this computer's hierarchy; kubelet 1.35 and newer refuse v1 by default
			"failSwapOn":   false, // and its swap; pods do not use it, as NoSwap is kubelet's default
		},
		object{
			"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
			"mode":      "nftables",
			"conntrack": object{"maxPerCore": 0}, // a container may not change the computer's connection tracking
		},
	}
}

// joinDocuments configure `kubeadm join` on the node.
func joinDocuments(s *session.Session, n config.Node, token, caHash, certificateKey string) []any {
	join := object{
		"apiVersion": kubeadmAPI, "kind": "JoinConfiguration",
		"discovery": object{"bootstrapToken": object{
			"apiServerEndpoint": s.Endpoint(), "token": token, "caCertHashes": []string{caHash},
		}},
		"nodeRegistration": registration(s, n),
		"timeouts":         timeouts(s),
	}
	if n.Role == config.ControlPlane {
		join["controlPlane"] = object{
			"localAPIEndpoint": object{"advertiseAddress": n.IP.String(), "bindPort": 6443},
			"certificateKey":   certificateKey,
		}
		join = slowProbes(s, join)
	}
	return []any{join}
}

// slowProbes has kubeadm patch an emulated control plane's manifests, with files of the image: kubelet waits longer until it kills an API
// server or an etcd that is only slow.
func slowProbes(s *session.Session, configuration object) object {
	if s.Emulated() {
		configuration["patches"] = object{"directory": image.SlowProbes}
	}
	return configuration
}

// lowCPU has an emulated control plane spend its processors on little else than the API server. That one waits for etcd: with the 2 s of the
// default it was unready for 2 minutes while a worker joined.
func lowCPU(s *session.Session, configuration object) object {
	if !s.Emulated() {
		return configuration
	}
	configuration["apiServer"] = object{
		"extraArgs": arguments("etcd-healthcheck-timeout=10s", "etcd-readycheck-timeout=10s"),
		"extraEnvs": arguments(machine.EmulatedGOGC),
	}
	frugal := arguments(machine.EmulatedGOGC, machine.EmulatedGOMAXPROCS)
	for _, component := range []string{"controllerManager", "scheduler"} {
		configuration[component].(object)["extraEnvs"] = frugal
	}
	configuration["etcd"] = object{"local": object{"extraEnvs": frugal}}
	return configuration
}

// leaderElection lets a control plane's controllers begin sooner after its start, without changing when they fail over: by default a first
// attempt for the lease that comes too early is repeated only seconds later, and clients of a new cluster are throttled. An emulated
// machine is so slow that controllers lose the lease, and restart, unless they get more time to renew it; one that restarts nevertheless,
// because the API server was not healthy in its first ten seconds, would wait for that long for its own lease. The only control plane that
// cluster.yaml has needs none.
func leaderElection(s *session.Session, more ...string) []any {
	timing := []string{"leader-elect-retry-period=500ms"}
	switch {
	case s.Emulated() && loneControlPlane(s):
		timing = []string{"leader-elect=false"}
	case s.Emulated():
		timing = []string{"leader-elect-lease-duration=2m0s", "leader-elect-renew-deadline=1m40s", "leader-elect-retry-period=5s"}
	}
	return arguments(append(timing, more...)...)
}

// arguments are kubeadm's form of name=value.
func arguments(all ...string) []any {
	var args []any
	for _, arg := range all {
		name, value, _ := strings.Cut(arg, "=")
		args = append(args, object{"name": name, "value": value})
	}
	return args
}

// loneControlPlane tells whether there will never be another one, not by an onboarding either.
func loneControlPlane(s *session.Session) bool { return len(provision.EveryControlPlane(s)) == 1 }

func registration(s *session.Session, n config.Node) object {
	r := object{
		"name":             n.Name,
		"criSocket":        "unix:///run/containerd/containerd.sock",
		"imagePullPolicy":  "IfNotPresent",
		"kubeletExtraArgs": []any{object{"name": "node-ip", "value": n.IP.String()}},
	}
	if ignored := ignoredChecks(s); len(ignored) > 0 {
		r["ignorePreflightErrors"] = ignored
	}
	return r
}

// ignoredChecks are kubeadm's checks that do not hold on the lab's machines: a container has this computer's kernel configuration and
// cgroups, memory and processors, which these read.
func ignoredChecks(s *session.Session) []string {
	if s.URI == host.Containers {
		return []string{"SystemVerification", "Mem", "NumCPU"}
	}
	return nil
}

// timeouts are set explicitly so that the budget around kubeadm is known to be longer than their sum.
func timeouts(s *session.Session) object {
	return object{
		"discovery":                        "1m0s",
		"kubernetesAPICall":                "3m0s", // an emulated API server needs over a minute to its first write
		"etcdAPICall":                      "2m0s",
		"tlsBootstrap":                     (time.Duration(s.Cluster.Tuning.WorkerJoinTimeoutSeconds) * time.Second).String(),
		"kubeletHealthCheck":               "2m0s",
		"controlPlaneComponentHealthCheck": "4m0s",
	}
}

func marshal(documents []any) (string, error) {
	var out strings.Builder
	for _, d := range documents {
		text, err := yaml.Marshal(d)
		if err != nil {
			return "", err
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.String(), nil
}

// ManifestConfiguration is what kubeadm needs of the node itself to make the manifests of a control plane that has joined.
func ManifestConfiguration(s *session.Session, n config.Node) (string, error) {
	return marshal([]any{slowProbes(s, object{
		"apiVersion": kubeadmAPI, "kind": "InitConfiguration", "nodeRegistration": registration(s, n),
		"localAPIEndpoint": object{"advertiseAddress": n.IP.String(), "bindPort": 6443},
	})})
}
