package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"k8slab/config"
	"k8slab/lab/diagnose/fact"
	"k8slab/lab/join"
	"k8slab/lab/node"
)

// worldNode is a machine over SSH.
type worldNode struct {
	w       *world
	name    string
	mutated func(string) error
}

func (n *worldNode) Name() string { return n.name }
func (n *worldNode) Close() error { return nil }

func (n *worldNode) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	return n.w.dial(ctx, n.name, address)
}

func (n *worldNode) Copy(_ context.Context, file string, _ fs.FileMode, content io.Reader) error {
	if err := n.mutated(n.name + ": write " + file); err != nil {
		return err
	}
	text, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	b := n.w.box(n.name)
	if err := n.w.called(n.name + ": write " + file); err != nil {
		return err
	}
	if err := b.answers(); err != nil {
		return err
	}
	b.files[file] = string(text)
	if file == manifestDir+b.crashing+".yaml" && string(text) == manifestOf(b.crashing) {
		b.crashing = ""
	}
	return nil
}

func (n *worldNode) Read(ctx context.Context, argv ...string) (string, error) {
	var out strings.Builder
	err := n.Run(ctx, node.Command{Argv: argv, Stdout: &out, ReadOnly: true})
	return out.String(), err
}

func (n *worldNode) Run(ctx context.Context, cmd node.Command) error {
	line := strings.Join(cmd.Argv, " ")
	if !cmd.ReadOnly {
		if err := n.mutated(n.name + ": " + line); err != nil {
			return err
		}
	}
	stdin := ""
	if cmd.Stdin != nil {
		text, err := io.ReadAll(cmd.Stdin)
		if err != nil {
			return err
		}
		stdin = string(text)
	}
	if strings.HasPrefix(line, labnodePath+" join") || strings.HasPrefix(line, labnodePath+" follow") {
		n.w.waitForJoin(ctx, n.name, stdin)
	}
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	b := n.w.box(n.name)
	if err := n.w.called(n.name + ": " + line); err != nil {
		return err
	}
	if err := b.answers(); err != nil {
		return err
	}
	out, status := n.w.command(b, cmd.Argv, stdin)
	if cmd.Stdout != nil {
		_, _ = io.WriteString(cmd.Stdout, out)
	}
	if status != 0 {
		return &node.ExitError{Node: n.name, Argv: cmd.Argv, Status: status, Stdout: out}
	}
	return nil
}

// command is what the programs on a machine do.
func (w *world) command(b *box, argv []string, stdin string) (out string, status int) {
	line := strings.Join(argv, " ")
	if out, status, known := w.damaged(b, argv, stdin); known {
		return out, status
	}
	if out, status, known := w.sideCommand(b, argv); known {
		return out, status
	}
	switch {
	case line == "true", line == "sync", argv[0] == "systemctl" && argv[1] != "show", argv[0] == "mkdir", line == "/usr/lib/k8slab/follow":
		if line == "systemctl restart kubelet" && b.facts.Joined {
			b.heals("services")
			if w.objects["/api/v1/nodes/"+b.node.Name] == nil {
				w.addNode(b)
			}
		}
		return "", 0
	case argv[0] == "sh" && len(argv) == 7 && argv[4] == "/": // a backup
		return packed(argv[6]), 0
	case argv[0] == "cat" && len(argv) == 2:
		return w.file(b, argv[1])
	case argv[0] == "tail":
		return w.filesOf(b, argv[4:])
	case argv[0] == "/bin/sh" && strings.Contains(line, join.InitUnit), argv[0] == "getent":
		return "", map[bool]int{true: 2}[argv[0] == "getent"]
	case argv[0] == "sh" && strings.Contains(line, "tar --create"): // an archive of nothing, and its mark
		return strings.Repeat("\x00", 1024) + argv[len(argv)-1], 0
	case argv[0] == "sh" && strings.Contains(line, subnetFile):
		if b.noSubnet {
			return "", 0
		}
		return w.file(b, subnetFile)
	case argv[0] == "systemctl": // show
		return "inactive\n", 0
	case argv[0] == "find" && strings.HasSuffix(line, "/var/lib/etcd/member"):
		if b.voter {
			return "/var/lib/etcd/member\n", 0
		}
		return "", 0
	case argv[0] == "systemd-run":
		return w.kubeadmInit(b)
	case strings.HasPrefix(line, "kubeadm init phase upload-certs"):
		var c struct{ CertificateKey string }
		_ = yaml.Unmarshal([]byte(b.files["/run/k8slab/kubeadm.yaml"]), &c)
		w.upload(c.CertificateKey)
		return "", 0
	case argv[0] == labnodePath:
		return w.labnode(b, argv[1:], stdin)
	}
	if out, status, known := w.etcdCommand(b, argv); known {
		return out, status
	}
	_ = w.unknown(b.node.Name + ": " + line)
	return "", 127
}

const labnodePath = "/usr/bin/labnode"

// etcdCommand is what a restore of etcd asks for. The data of the new cluster take the old ones' place with the second move.
func (w *world) etcdCommand(b *box, argv []string) (out string, status int, known bool) {
	line := strings.Join(argv, " ")
	switch {
	case line == "etcdutl version":
		return "etcdutl version: 3.6.8\nAPI version: 3.6\n", 0, true
	case argv[0] == "etcdutl", argv[0] == "crictl", argv[0] == "find" && strings.Contains(line, "-exec"):
		return "", 0, true
	case argv[0] == "find": // the data directory
		return "/var/lib/etcd\n", 0, true
	case strings.HasPrefix(line, "mv -T /var/lib/etcd.new"):
		w.members = nil
		w.addMember(b.node.Name, false)
		return "", 0, true
	case argv[0] == "mv":
		return "", 0, true
	}
	return "", 0, false
}

const etcdManifest = `apiVersion: v1
kind: Pod
metadata: {name: etcd, namespace: kube-system}
spec:
  containers:
  - name: etcd
    command: [etcd, "--name=%s", "--data-dir=/var/lib/etcd", "--initial-advertise-peer-urls=https://%s:2380"]
`

// filesOf is what `tail -v -n +1` prints of files.
func (w *world) filesOf(b *box, names []string) (out string, status int) {
	for _, name := range names {
		text, missing := w.file(b, name)
		if missing != 0 {
			status = missing
			continue
		}
		out += "==> " + name + " <==\n" + text + "\n"
	}
	return out, status
}

func (w *world) file(b *box, name string) (string, int) {
	missing := "cat: " + name + ": No such file or directory"
	if text, ok := b.files[name]; ok && text == "" {
		return missing, 1
	}
	if name == "/etc/kubernetes/manifests/etcd.yaml" && b.voter && b.files[name] == "" {
		return fmt.Sprintf(etcdManifest, b.node.Name, b.node.IP), 0
	}
	if n := w.objects["/api/v1/nodes/"+b.node.Name]; name == subnetFile && n != nil && b.files[name] == "" && !b.noSubnet {
		return "FLANNEL_SUBNET=" + n["spec"].(object)["podCIDR"].(string) + "\n", 0 // flannel writes it when it starts
	}
	if text, ok := b.files[name]; ok {
		return text, 0
	}
	if text := w.ofKubeadm(b, name); text != "" && b.facts.Joined {
		return text, 0
	}
	return missing, 1
}

// upload puts the certificates into the cluster. kubeadm deletes them when the token that stands for their life goes.
func (w *world) upload(key string) {
	w.uploaded = key
	w.addToken("certs0", "Proxy for managing TTL for the kubeadm-certs secret")
}

func (w *world) kubeadmInit(b *box) (string, int) {
	if len(w.members) > 0 {
		w.broken = fmt.Errorf("a second cluster is made on %s", b.node.Name)
	}
	var c struct {
		CertificateKey  string
		BootstrapTokens []struct{ Token, Description string }
	}
	if b.initFails != "" {
		b.facts.Begun, b.facts.Dirty, b.files["/var/log/k8slab-kubeadm.log"], b.initFails = true, true, b.initFails, ""
		return "", 0
	}
	if b.facts.Dirty {
		w.broken = fmt.Errorf("kubeadm init on %s, where files of an earlier one are", b.node.Name)
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(b.files["/run/k8slab/kubeadm.yaml"], "---\n"), "---\n")
	_ = yaml.Unmarshal([]byte(first), &c)
	b.facts.Joined, b.facts.CA, b.voter = true, "ca", true
	w.addMember(b.node.Name, false)
	w.addNode(b)
	w.upload(c.CertificateKey)
	for _, t := range c.BootstrapTokens {
		id, _, _ := strings.Cut(t.Token, ".")
		w.addToken(id, t.Description)
	}
	for _, phase := range []string{"bootstrap-token", "upload-config kubeadm", "upload-config kubelet"} {
		w.initPhase(phase)
	}
	w.defaults()
	w.addon("kube-proxy")
	w.addon("coredns")
	return "", 0
}

func (w *world) labnode(b *box, argv []string, stdin string) (string, int) {
	answer := func(v any) string { text, _ := json.Marshal(v); return string(text) + "\n" }
	switch argv[0] {
	case "facts":
		facts := b.facts
		facts.EtcdData = b.voter
		return answer(facts), 0
	case "validate", "mend", "preflight":
		var checks []object
		for _, id := range []string{"kubelet", "etcd-member", "api-server", "controller-manager", "scheduler", "node"} {
			checks = append(checks, object{"id": id, "result": b.checked(argv[0], id)})
		}
		if b.blocks != "" && argv[0] == "preflight" {
			checks = append(checks, object{"id": "runtime", "result": "blocked", "evidence": b.blocks})
		}
		if argv[0] != "validate" {
			checks = append(checks, b.mended(slices.Contains(argv, "--dry-run") || argv[0] == "preflight" && !slices.Contains(argv, "--fix"))...)
		}
		return answer(object{"checks": checks}), 0
	case "collect":
		return answer(w.collect(b)), 0
	case "files":
		found, err := b.compare(argv[1] == "--restore", stdin)
		return answer(found), map[bool]int{true: 0, false: 1}[err == nil]
	case "follow":
		return w.followed(b)
	case "reset":
		b.heals("rejoin")
		b.facts, b.voter = join.Facts{MachineID: b.facts.MachineID}, false
		return "", 0
	case "join":
		o := w.join(b, stdin)
		if o.Joined {
			w.joins = append(w.joins, b.node.Name)
		}
		return answer(object{"outcome": o}), map[bool]int{true: 0, false: 1}[o.Joined]
	}
	_ = w.unknown("labnode " + strings.Join(argv, " "))
	return "", 2
}

// collect is what a healthy machine tells a diagnosis.
func (w *world) collect(b *box) fact.Node {
	unit := fact.Unit{Load: "loaded", Active: "active", Sub: "running", Since: time.Now().Add(-time.Hour), Started: time.Now().Add(-time.Hour)}
	n := fact.Node{Time: time.Now(), Facts: b.facts, Units: map[string]fact.Unit{"kubelet": unit, "containerd": unit}}
	n.Files, _ = b.compare(false, "")
	if b.facts.Joined && b.node.Role == config.ControlPlane {
		n.Manifests = []string{"etcd.yaml", "kube-apiserver.yaml", "kube-controller-manager.yaml", "kube-scheduler.yaml"}
	}
	switch {
	case b.facts.Joined && w.objects["/api/v1/nodes/"+b.node.Name] == nil:
		n.Member = []join.Check{{ID: join.CheckNode, Result: join.Blocked, Reason: join.NodeMissing, Evidence: "the cluster has no Node " + b.node.Name}}
	case b.ill != "" && b.facts.Joined:
		n.Member = []join.Check{b.illness}
	}
	return n
}

// join is `kubeadm join`: it refuses what kubeadm would refuse.
func (w *world) join(b *box, configuration string) join.Outcome {
	var c struct {
		Discovery    struct{ BootstrapToken struct{ Token string } }
		ControlPlane *struct{ CertificateKey string }
	}
	if err := yaml.Unmarshal([]byte(strings.TrimPrefix(configuration, "---\n")), &c); err != nil {
		w.broken = err
	}
	failed := func(id, why string) join.Outcome {
		b.facts.Dirty, b.facts.Begun = true, true
		return join.Outcome{Symptom: joinSymptom(id), Evidence: why, Phase: "kubeadm", ExitCode: 1, Elapsed: time.Second}
	}
	if len(b.failures) > 0 {
		o := b.failures[0]
		b.failures, b.facts.Dirty, b.facts.Begun = b.failures[1:], true, true
		return o
	}
	if b.stop {
		b.stop = false
		return failed("", "kubeadm was ended in kubelet-wait-bootstrap: terminated")
	}
	if b.outage != nil {
		b.facts.Dirty = true
		return *b.outage
	}
	if b.facts.Joined || b.facts.Dirty {
		return failed("leftover-state", "files of an earlier join are there")
	}
	id, _, _ := strings.Cut(c.Discovery.BootstrapToken.Token, ".")
	if w.objects["/api/v1/namespaces/kube-system/secrets/bootstrap-token-"+id] == nil {
		return failed("token-expired", "the token is unknown")
	}
	if n := w.objects["/api/v1/nodes/"+b.node.Name]; n != nil {
		return failed("node-name-exists", "a Node of this name is there")
	}
	if c.ControlPlane != nil {
		if c.ControlPlane.CertificateKey != w.uploaded || w.uploaded == "" {
			return failed("certificate-key-expired", "the key does not decrypt the certificates")
		}
		for _, m := range w.members {
			if m.learner || !w.runs(m) {
				return failed("etcd-too-many-learners", "etcd is not healthy")
			}
		}
		b.voter = true
		w.addMember(b.node.Name, false)
	}
	b.facts.Joined, b.facts.CA = true, "ca"
	w.addNode(b)
	return join.Outcome{Joined: true, Finished: true, Phase: "validate"}
}
