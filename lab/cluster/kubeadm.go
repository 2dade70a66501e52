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
	"k8slab/lab/join"
	"k8slab/lab/machine"
	"k8slab/lab/node"
	"k8slab/lab/session"
	"k8slab/lab/wait"
)

// kubeadm init runs in a systemd unit of its own, so that a lost connection or a killed labctl does not end it. A later run waits for the
// unit. Joins are labnode's job.
const (
	kubeadmUnit   = join.InitUnit
	kubeadmConfig = "/run/k8slab/kubeadm.yaml"
	kubeadmLog    = "/var/log/k8slab-kubeadm.log"
	kubeadmScript = "/usr/lib/k8slab/kubeadm"
	followScript  = "/usr/lib/k8slab/follow"
)

// runInit runs `kubeadm init` on the node and waits for its end. When the budget runs out kubeadm is not killed: its own timeouts, all
// shorter, have ended it.
func runInit(ctx context.Context, s *session.Session, name string, documents []any, budget time.Duration, step *event.Step) error {
	text, err := marshal(documents)
	if err != nil {
		return err
	}
	script, err := program(s, kubeadmScript, "mkdir -p /var/lib/k8slab && touch "+join.InitMark)
	if err != nil {
		return err
	}
	if err := startKubeadm(ctx, s, name, text, script); err != nil {
		return err
	}
	return awaitInit(ctx, s, name, budget, step)
}

// startKubeadm starts the script, which calls kubeadm with the configuration, in its unit on the node.
func startKubeadm(ctx context.Context, s *session.Session, name, configuration string, script []string) error {
	n := s.Nodes[name]
	if err := n.Copy(ctx, kubeadmConfig, 0o600, strings.NewReader(configuration)); err != nil {
		return err
	}
	return n.Run(ctx, node.Command{Argv: append([]string{
		"systemd-run", "--quiet", "--collect", "--no-block", "--unit", kubeadmUnit, "--service-type=oneshot",
		"--property=RemainAfterExit=no", "--property=UMask=0077",
		"--property=StandardOutput=truncate:" + kubeadmLog, "--property=StandardError=append:" + kubeadmLog,
	}, script...)})
}

// awaitInit waits for the end of kubeadm's unit on the node, shows its phases, and returns its failure.
func awaitInit(ctx context.Context, s *session.Session, name string, budget time.Duration, step *event.Step) error {
	return awaitKubeadm(ctx, s, name, budget, step, func(_ context.Context, f join.Facts) (bool, error) { return f.Joined, nil })
}

// awaitKubeadm is awaitInit for whatever kubeadm does: succeeded tells whether it has done it.
func awaitKubeadm(ctx context.Context, s *session.Session, name string, budget time.Duration, step *event.Step,
	succeeded func(context.Context, join.Facts) (bool, error),
) error {
	n := s.Nodes[name]
	follow, err := program(s, followScript, "")
	if err != nil {
		return err
	}
	return wait.For(ctx, "kubeadm on "+name, budget, 100*time.Millisecond, func(ctx context.Context) error {
		// The script ends when the unit does. After a lost connection the next round runs it again.
		err := n.Run(ctx, node.Command{Argv: follow, Stdout: phases(step), ReadOnly: true})
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
		done, err := succeeded(ctx, f)
		if err == nil && !done {
			err = wait.Hopeless(kubeadmFailure(ctx, s, name))
		}
		return err
	})
}

// kubeadmFailure is the error with the end of kubeadm's log.
func kubeadmFailure(ctx context.Context, s *session.Session, name string) error {
	out, err := s.Nodes[name].Read(ctx, "tail", "-n", "25", kubeadmLog)
	if err != nil {
		return fmt.Errorf("%s: kubeadm failed and its log cannot be read: %w", name, err)
	}
	return fmt.Errorf("%s: kubeadm failed: %s\nnext: labctl ssh %s cat %s; labctl logs %s --unit kubelet",
		name, event.Redact(cause(out)), name, kubeadmLog, name)
}

// cause is kubeadm's output from its first error line on.
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

const (
	kubeadmAPI = "kubeadm.k8s.io/v1beta4"
	kubeletAPI = "kubelet.config.k8s.io/v1beta1"
)

// initDocuments configure `kubeadm init` on the node.
func initDocuments(s *session.Session, n config.Node, token, certificateKey string) []any {
	c := s.Cluster
	init := object{
		"apiVersion": kubeadmAPI, "kind": "InitConfiguration",
		"bootstrapTokens": []any{object{
			"token": token, "description": initMark, "ttl": tokenTTL.String(), "usages": []string{"signing", "authentication"},
			"groups": []string{"system:bootstrappers:kubeadm:default-node-token"},
		}},
		"certificateKey":   certificateKey,
		"localAPIEndpoint": object{"advertiseAddress": n.IP.String(), "bindPort": 6443},
		"nodeRegistration": registration(s, n),
		"timeouts":         timeouts(s),
	}
	if c.OverSSH() { // the rest is as kubeadm has it
		return []any{init, plainCluster(s)}
	}
	return withOptions(s, patched(s, n, init),
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
			"apiVersion": kubeletAPI, "kind": "KubeletConfiguration",
			"cgroupDriver": "systemd",
			"failCgroupV1": false, // containers share this computer's hierarchy; kubelet 1.35 and newer refuse v1 by default
			"failSwapOn":   false, // and its swap; pods do not use it, as NoSwap is kubelet's default
		},
		proxyConfiguration())
}

// proxyConfiguration is kube-proxy's on machines that are containers.
func proxyConfiguration() object {
	return object{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"mode":      "nftables",
		"conntrack": object{"maxPerCore": 0}, // a container may not change the computer's connection tracking
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
	}
	return []any{config.Merge(patched(s, n, join), s.Cluster.Kubernetes.Kubeadm.Join)}
}

// lowCPU leaves an emulated control plane's processors to the API server. The API server's checks of etcd get longer timeouts: with the
// default of 2 s it was not ready for 2 minutes while a worker joined.
func lowCPU(s *session.Session, configuration object) object {
	if !s.Emulated() {
		return configuration
	}
	configuration["apiServer"] = object{
		"extraArgs": arguments("etcd-healthcheck-timeout=10s", "etcd-readycheck-timeout=10s"),
		"extraEnvs": arguments(machine.EmulatedGOGC),
	}
	lowGo := arguments(machine.EmulatedGOGC, machine.EmulatedGOMAXPROCS)
	for _, component := range []string{"controllerManager", "scheduler"} {
		configuration[component].(object)["extraEnvs"] = lowGo
	}
	configuration["etcd"] = object{"local": object{"extraEnvs": lowGo}}
	return configuration
}

// leaderElection are arguments of controllers. They retry for the lease sooner than by default, so that a new cluster starts sooner; when
// they fail over does not change. On an emulated machine they get more time to renew the lease: otherwise they lose it and restart. A
// single emulated control plane has no leader election: a controller that restarts would wait for its own lease to expire.
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

// arguments turns name=value into kubeadm's form.
func arguments(all ...string) []any {
	var args []any
	for _, arg := range all {
		name, value, _ := strings.Cut(arg, "=")
		args = append(args, object{"name": name, "value": value})
	}
	return args
}

// loneControlPlane tells whether cluster.yaml has only one control plane, counting those that are to be onboarded.
func loneControlPlane(s *session.Session) bool { return len(s.EveryControlPlane()) == 1 }

func registration(s *session.Session, n config.Node) object {
	o := s.Cluster.OptionsOf(n)
	r := object{
		"name":             n.Name,
		"criSocket":        "unix:///run/containerd/containerd.sock",
		"imagePullPolicy":  "IfNotPresent",
		"kubeletExtraArgs": arguments(append([]string{"node-ip=" + n.IP.String()}, registered(o)...)...),
	}
	if n.Role == config.ControlPlane && o.Taints != nil {
		r["taints"] = taints(o)
	}
	if s.Cluster.OverSSH() { // whoever set the machines up chose the rest
		r = object{"name": n.Name}
	}
	if ignored := ignoredChecks(s); len(ignored) > 0 {
		r["ignorePreflightErrors"] = ignored
	}
	return r
}

// ignoredChecks are kubeadm's checks that fail in containers, because they read this computer's kernel configuration, cgroups, memory and
// processors.
func ignoredChecks(s *session.Session) []string {
	if s.Cluster.OverSSH() {
		return s.Cluster.Kubernetes.IgnorePreflightErrors
	}
	if s.URI == host.Containers {
		return []string{"SystemVerification", "Mem", "NumCPU"}
	}
	return nil
}

// timeouts are explicit, so that the budget around kubeadm is certain to be longer than their sum.
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
