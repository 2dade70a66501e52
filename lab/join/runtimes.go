package join

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"k8slab/lab/symptom"
)

const containerdSocket = "/run/containerd/containerd.sock"

// criRuntime is a container runtime that kubelet can use.
type criRuntime struct {
	unit    string // without ".service"; "" for one that is not known
	socket  string
	program string
	data    string // where it keeps images and containers by default
	config  string // its configuration
	parts   string // the directory with more of it
}

// runtimes are where they listen by default, in kubeadm's order.
var runtimes = []criRuntime{
	{"containerd", containerdSocket, "containerd", "/var/lib/containerd", containerdConfig, "/etc/containerd/conf.d"},
	{"crio", "/run/crio/crio.sock", "crio", "/var/lib/containers", "/etc/crio/crio.conf", "/etc/crio/crio.conf.d"},
	{"cri-docker", "/run/cri-dockerd.sock", "cri-dockerd", "/var/lib/docker", "", ""},
}

const containerdConfig = "/etc/containerd/config.toml"

// runtimeAt is the runtime that listens on the socket. A containerd may listen elsewhere than by default.
func runtimeAt(socket string) criRuntime {
	for _, r := range runtimes {
		if r.socket == socket || path.Base(r.socket) == path.Base(socket) {
			r.socket = socket
			return r
		}
	}
	return criRuntime{socket: socket}
}

// service is its unit, "" for one that is not known.
func (r criRuntime) service() string {
	if r.unit == "" {
		return ""
	}
	return r.unit + ".service"
}

// String is its name.
func (r criRuntime) String() string { return cmp.Or(r.unit, "the container runtime") }

// restarting is how a person starts it anew.
func (r criRuntime) restarting() string {
	if r.unit == "" {
		return "restart the container runtime, and read its journal"
	}
	return fmt.Sprintf("systemctl restart %[1]s; journalctl -u %[1]s", r.unit)
}

// configuration are the texts of its configuration, the later ones over the earlier.
func (r criRuntime) configuration(m Machine) []string {
	var texts []string
	files := []string{r.config}
	for _, name := range m.List(r.parts) {
		files = append(files, path.Join(r.parts, name))
	}
	for _, file := range files {
		if text, err := m.Read(file); err == nil && r.config != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// runtime is the runtime that the machine's kubelet uses, or the target is to use; containerd where that cannot be told.
func (m Machine) runtime(t Target) criRuntime {
	socket, bad := m.runtimeSocket(t)
	if bad.Result != "" {
		return runtimes[0]
	}
	return runtimeAt(socket)
}

func (p *preflight) runtime() criRuntime { return p.m.runtime(p.t) }

// runtimeSocket is the path of the socket to use, or the check that says why there is none.
func (m Machine) runtimeSocket(t Target) (string, Check) {
	present := m.sockets()
	if t.CRISocket == "" {
		if own := m.memberSocket(); own != "" {
			return own, Check{}
		}
		if len(present) > 1 {
			return "", blocked(symptom.CRIEndpointAmbiguous, "set nodeRegistration.criSocket, or remove the unused runtime",
				"more than one runtime: %s", strings.Join(present, ", "))
		}
		return cmp.Or(strings.Join(present, ""), m.installedSocket()), Check{}
	}
	socket := socketPath(t.CRISocket)
	if !m.Exists(socket) && len(present) > 0 && !strings.HasSuffix(socket, present[0]) {
		return "", blocked(symptom.CRIEndpointWrong, "set nodeRegistration.criSocket: unix://"+present[0],
			"there is no %s, but %s", socket, strings.Join(present, ", "))
	}
	return socket, Check{}
}

// sockets are the default ones that are there.
func (m Machine) sockets() (present []string) {
	for _, r := range runtimes {
		if m.Exists(r.socket) {
			present = append(present, r.socket)
		}
	}
	return present
}

// HasRuntime reports whether a container runtime listens, or has listened, on the machine.
func (m Machine) HasRuntime() bool { return len(m.sockets()) > 0 }

// installedSocket is where the first runtime that is installed would listen; containerd's where none is.
func (m Machine) installedSocket() string {
	i := slices.IndexFunc(runtimes, func(r criRuntime) bool { return m.Find(r.program) != "" })
	return runtimes[max(i, 0)].socket
}

// memberSocket is where the kubelet of a member asks its runtime, "" where no runtime can be there: then its flags or its configuration are
// wrong, which has a check of its own.
func (m Machine) memberSocket() string {
	if !m.Exists(kubeletConf) {
		return ""
	}
	socket := cmp.Or(m.kubeletSocket(), containerdSocket) // which is kubelet's default
	if m.Exists(socket) || m.Find(runtimeAt(socket).program) != "" {
		return socket
	}
	return ""
}

// kubeletSocket is the socket that kubelet's flags or its configuration name, "" for none. The flags go first, the later of them foremost.
func (m Machine) kubeletSocket() string {
	if socket := flagValue(m.kubeletExtra(), "container-runtime-endpoint"); socket != "" {
		return socketPath(socket)
	}
	for _, file := range []string{kubeletConfig, instanceConfig} {
		var config struct {
			Endpoint string `json:"containerRuntimeEndpoint"`
		}
		text, _ := m.Read(file)
		if yaml.Unmarshal([]byte(text), &config) == nil && config.Endpoint != "" {
			return socketPath(config.Endpoint)
		}
	}
	return ""
}

// kubeletExtra are the flags that kubeadm and the administrator give this machine's kubelet.
func (m Machine) kubeletExtra() (words []string) {
	for _, file := range []string{kubeletFlags, "/etc/default/kubelet", "/etc/sysconfig/kubelet"} {
		text, _ := m.Read(file)
		words = append(words, KubeletArguments(text)...)
	}
	return words
}

// KubeletArguments are those that a file such as kubeadm-flags.env or /etc/default/kubelet gives kubelet.
func KubeletArguments(text string) []string {
	env := parseEnvironment(text)
	return strings.Fields(env["KUBELET_KUBEADM_ARGS"] + " " + env["KUBELET_EXTRA_ARGS"])
}

// kubeletName is how kubelet names its Node.
func (m Machine) kubeletName() string {
	return strings.ToLower(cmp.Or(flagValue(m.kubeletExtra(), "hostname-override"), m.Hostname()))
}

// socketPath takes the path out of unix:///path. /var/run is /run on every system that systemd runs.
func socketPath(url string) string {
	path := strings.TrimPrefix(url, "unix://")
	if rest, ok := strings.CutPrefix(path, "/var/run/"); ok {
		return "/run/" + rest
	}
	return path
}

func (p *preflight) findUnits(ctx context.Context) (units, error) {
	names := []string{"kubelet.service"}
	service := p.runtime().service()
	if service != "" {
		names = append(names, service)
	}
	out, err := p.m.Run(ctx, slices.Concat([]string{"systemctl", "show"}, names, []string{"--property=" + unitProperties})...)
	if err != nil {
		return units{}, fmt.Errorf("systemd does not answer: %s", said(err))
	}
	byName := ParseUnits(out)
	return units{kubelet: byName["kubelet.service"], runtime: byName[service]}, nil
}
