package join

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path"
	"slices"
)

// The units that run kubeadm on a machine: JoinUnit is the engine's, InitUnit the harness's for the first control plane.
const (
	JoinUnit = "k8slab-join.service"
	InitUnit = "k8slab-kubeadm.service"
)

// Facts are what a machine says about itself. They cost one question to systemd and a few files.
type Facts struct {
	Joined    bool   `json:"joined"` // kubeadm finished here
	Dirty     bool   `json:"dirty"`  // something of an init or a join is here
	Begun     bool   `json:"begun"`  // labctl has begun an init or a join here that did not finish
	CA        string `json:"ca"`     // SHA-256, in hexadecimal, of the cluster's CA file; "" without one
	MachineID string `json:"machineID"`
	BootID    string `json:"bootID"`
	Node      string `json:"node,omitempty"` // in kubelet's client certificate
	Role      string `json:"role,omitempty"` // control-plane or worker; "" when it is in no cluster

	// KubeadmUnit and JoinUnit are systemd's ActiveState of InitUnit and JoinUnit: active or activating while kubeadm runs.
	KubeadmUnit string `json:"kubeadmUnit"`
	JoinUnit    string `json:"joinUnit"`
	// Outcome is the end of the last series of joins, nil when there was none or it has not ended.
	Outcome *Outcome `json:"outcome,omitempty"`

	Kubelet        kubeletState `json:"kubelet"`
	KubeletVersion string       `json:"kubeletVersion,omitempty"` // "" when only starting the program would tell
	KubeadmVersion string       `json:"kubeadmVersion,omitempty"`
	// Runtime is the unit of the container runtime that kubelet uses, without ".service": containerd, crio or cri-docker; "" for another.
	Runtime       string `json:"runtime"`
	RuntimeSocket string `json:"runtimeSocket"`
	RuntimeActive string `json:"runtimeActive"`    // its ActiveState
	NodeIP        string `json:"nodeIP,omitempty"` // that kubelet's flags name; "" is kubelet's own choice

	EtcdManifest bool     `json:"etcdManifest"`
	EtcdData     bool     `json:"etcdData"`
	CNI          []string `json:"cni"`         // configuration files, the first is in use
	Placeholder  bool     `json:"placeholder"` // the pod network's placeholder is there

	Made bool `json:"made"` // from a node image of a lab
	// FixedConntrack says that the machine may not set how many connections it tracks, which kube-proxy would: it is a container.
	FixedConntrack bool   `json:"fixedConntrack,omitempty"`
	OtherPKI       string `json:"otherPKI,omitempty"` // the certificates' directory where it is not /etc/kubernetes/pki: then none in files is judged
}

// Running tells whether kubeadm is at work, of the engine or of the harness.
func (f Facts) Running() bool {
	return slices.ContainsFunc([]string{f.KubeadmUnit, f.JoinUnit}, func(state string) bool {
		return state == "active" || state == "activating" || state == "deactivating"
	})
}

// JoinRunning tells whether the engine is at work.
func (f Facts) JoinRunning() bool { return Facts{JoinUnit: f.JoinUnit}.Running() }

// ReadFacts reads them. It changes nothing and starts no program but systemctl, whose failure is its error; the rest is filled in then too.
func ReadFacts(ctx context.Context, m Machine) (Facts, error) {
	f := Facts{
		Joined:       m.Exists(joinedMark) || m.joinedByHand(),
		Dirty:        m.dirty(Target{ControlPlane: true}), // a control plane may have certificates before it joins
		CA:           m.caSum(),
		MachineID:    m.Line("/etc/machine-id"),
		BootID:       m.Line("/proc/sys/kernel/random/boot_id"),
		Node:         m.nodeName(),
		EtcdManifest: m.Exists(etcdManifest),
		EtcdData:     m.Exists(m.etcdData()),
		CNI:          m.cniConfigurations(),
		Placeholder:  m.Exists(placeholderConf),
	}
	if limit, err := os.Stat(m.Path("/proc/sys/net/netfilter/nf_conntrack_max")); err == nil {
		f.FixedConntrack = limit.Mode()&0o200 == 0
	}
	f.Begun = !f.Joined && m.begun()
	if m.Exists(kubeletConf) {
		f.Role = "worker"
		if m.controlPlane() {
			f.Role = "control-plane"
		}
	}
	var o Outcome
	if m.readJSON(outcomeFile, &o) == nil {
		f.Outcome = &o
	}
	f.KubeletVersion, f.KubeadmVersion = m.version("kubelet"), m.version("kubeadm")
	f.Made, f.OtherPKI, f.NodeIP = m.made(), m.OtherPKI(), flagValue(m.kubeletExtra(), "node-ip")
	runtime := m.runtime(Target{})
	f.Runtime, f.RuntimeSocket = runtime.unit, runtime.socket
	names := []string{"kubelet.service", JoinUnit, InitUnit}
	if runtime.unit != "" {
		names = append(names, runtime.service())
	}
	units, err := m.systemd(ctx, names...)
	f.Kubelet = m.kubelet(units["kubelet.service"])
	f.RuntimeActive = units[runtime.service()]["ActiveState"]
	f.JoinUnit, f.KubeadmUnit = units[JoinUnit]["ActiveState"], units[InitUnit]["ActiveState"]
	return f, err
}

// version reads what the linker wrote into a program. Starting the program would take an emulated machine a second.
func (m Machine) version(program string) string {
	file := m.Find(program)
	if file == "" {
		return ""
	}
	r, _ := builtVersion(path.Clean(m.Path(file)))
	return r.text
}

func (m Machine) caSum() string {
	text, err := m.Read(clusterCA)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
