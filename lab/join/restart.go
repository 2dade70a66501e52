package join

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// KubeletRestart finds what would keep kubelet from starting again as it is configured now, although the running one may work: its unit,
// its program, its flags, its configuration, its kubeconfig and the cluster's CA. It starts no kubelet. What costs more than reading is
// done only for what changed since kubelet started, because it did start with the rest. Its error is a question that was not answered.
func KubeletRestart(ctx context.Context, m Machine) ([]Defect, error) {
	out, err := m.Run(ctx, "systemctl", "show", "kubelet.service", "--timestamp=unix", "--property="+unitProperties+",ExecMainStartTimestamp")
	if err != nil {
		return nil, fmt.Errorf("ask systemd: %w", err)
	}
	r := &restart{m: m, unit: ParseUnits(out)["kubelet.service"]}
	if r.unit.absent() || r.unit.masked() { // which has a check of its own
		return nil, nil
	}
	r.args = m.arguments(r.unit)
	found := slices.Concat(r.loads(ctx), r.program(ctx), r.flagsFile(), r.name(), r.runtime(), r.config(), r.kubeconfig())
	return found, context.Cause(ctx) // a program that was cut off proves nothing
}

type restart struct {
	m    Machine
	unit unit
	args []string // of kubelet, its path first
}

// arguments are what systemd would start, with the variables that it would put in.
func (m Machine) arguments(u unit) []string {
	env := m.environment(u)
	var args []string
	for _, word := range strings.Fields(commandLine(u["ExecStart"])) {
		if name, isVariable := strings.CutPrefix(word, "$"); isVariable {
			word = env[strings.Trim(name, "{}")]
		}
		args = append(args, strings.Fields(word)...)
	}
	return args
}

// Changed is when a file, or its place, last changed. Unlike the time of its content nothing can set it back.
func (m Machine) Changed(file string) (time.Time, error) {
	info, err := os.Stat(m.Path(file))
	if err != nil {
		return time.Time{}, err
	}
	raw, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.ModTime(), nil
	}
	return time.Unix(raw.Ctim.Sec, raw.Ctim.Nsec), nil
}

// changed reports whether a file may have changed since the second in which the running kubelet started; true when none runs.
func (r *restart) changed(file string) bool {
	started, err := strconv.ParseInt(strings.TrimPrefix(r.unit["ExecMainStartTimestamp"], "@"), 10, 64)
	if err != nil || !r.unit.active() {
		return true
	}
	at, err := r.m.Changed(file)
	return err != nil || at.Unix() > started
}

// loads judges the unit. What systemd has loaded is right by its LoadState; a file that changed since then is not loaded yet.
func (r *restart) loads(ctx context.Context) []Defect {
	if state := r.unit["LoadState"]; state != "loaded" {
		return []Defect{wrong(symptom.KubeletNotRunning, "kubelet.service", "systemd cannot load it: %s", state)}
	}
	if r.unit["NeedDaemonReload"] != "yes" {
		return nil
	}
	_, err := r.m.Run(ctx, "systemd-analyze", "verify", "--man=no", "--recursive-errors=no", "kubelet.service")
	if err == nil || errors.Is(err, exec.ErrNotFound) || ctx.Err() != nil {
		return nil
	}
	return []Defect{wrong(symptom.FileChanged, "kubelet.service", "its files changed, and systemd could not load them again: %s", said(err))}
}

// program judges the program and its flags. kubelet reads all its flags before it obeys --version.
func (r *restart) program(ctx context.Context) []Defect {
	if len(r.args) == 0 {
		return nil
	}
	file := r.args[0]
	info, err := os.Stat(r.m.Path(file))
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return []Defect{wrong(symptom.KubeBinariesMissing, file, "kubelet's unit starts it, and it is not there or not executable")}
	}
	line, _ := r.m.Read("/proc/" + r.unit["MainPID"] + "/cmdline")
	if running := strings.FieldsFunc(line, func(c rune) bool { return c == 0 }); slices.Equal(running, r.args) && !r.changed(file) {
		return nil
	}
	_, err = r.m.Run(ctx, append(slices.Clone(r.args), "--version")...)
	switch _, ran := errors.AsType[*exec.ExitError](err); {
	case err == nil, ctx.Err() != nil:
		return nil
	case ran && strings.Contains(said(err), "flag"):
		return []Defect{wrong(symptom.KubeletFlagRemoved, "kubelet's flags", "%s (%s)", said(err), strings.Join(r.args[1:], " "))}
	}
	return []Defect{wrong(symptom.FileChanged, file, "it does not run: %s", said(err))}
}

// flagsFile judges the file with the flags that kubeadm gave this node, without which kubelet may take another address or name.
func (r *restart) flagsFile() []Defect {
	if !strings.Contains(r.unit["EnvironmentFiles"], kubeletFlags) {
		return nil
	}
	text, err := r.m.Read(kubeletFlags)
	if err != nil {
		return []Defect{wrong(symptom.FileChanged, kubeletFlags, "kubelet would start without kubeadm's flags: %s", Plain(err))}
	}
	if _, set := parseEnvironment(text)["KUBELET_KUBEADM_ARGS"]; !set {
		return []Defect{wrong(symptom.FileChanged, kubeletFlags, "kubelet would start without kubeadm's flags: it sets no KUBELET_KUBEADM_ARGS")}
	}
	return nil
}

// name judges the name under which kubelet would serve: the API server lets it speak for the Node of its certificate alone.
func (r *restart) name() []Defect {
	own, name := r.m.nodeName(), strings.ToLower(cmp.Or(flagValue(r.args, "hostname-override"), r.m.Hostname()))
	if own == "" || own == name {
		return nil
	}
	d := wrong(symptom.NodeNameMismatch, "kubelet's name", "it would be Node %s, and its certificate is of Node %s", name, own)
	d.Hint = "hostnamectl set-hostname " + own + "; systemctl restart kubelet"
	return []Defect{d}
}

// runtime judges the socket that kubelet's flags name, or its configuration. One of an installed runtime may be away for a while.
func (r *restart) runtime() []Defect {
	where, socket := "kubelet's flags", socketPath(flagValue(r.args, "container-runtime-endpoint"))
	if socket == "" {
		where, socket = "kubelet's configuration", r.m.kubeletSocket()
	}
	if socket == "" || r.m.Exists(socket) || r.m.Find(runtimeAt(socket).program) != "" {
		return nil
	}
	for _, other := range r.m.sockets() {
		return []Defect{wrong(symptom.CRIEndpointWrong, where, "there is no %s, which is named there, but %s", socket, other)}
	}
	return nil // no runtime runs, which has a check of its own
}

// Plain is an error of a file without the file's name, which stands before it.
func Plain(err error) string {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		return inner.Err.Error()
	}
	return err.Error()
}

// kubeconfig judges what kubelet is to talk to the API server with. How long certificates are valid is judged with all others.
func (r *restart) kubeconfig() []Defect {
	file, bootstrap := flagValue(r.args, "kubeconfig"), flagValue(r.args, "bootstrap-kubeconfig")
	if file == "" || bootstrap != "" && r.m.Exists(bootstrap) { // standalone, which has a check of its own; or it can ask for a new one
		return nil
	}
	text, err := r.m.Read(file)
	if errors.Is(err, os.ErrNotExist) {
		return []Defect{wrong(symptom.BootstrapKubeconfigMissing, file, "it is missing, and kubelet has no other way to its credentials")}
	}
	if err != nil {
		return []Defect{wrong(symptom.FileChanged, file, "%s", Plain(err))}
	}
	c, err := kube.ReadCredentials([]byte(text))
	if err != nil {
		return []Defect{wrong(symptom.FileChanged, file, "%v", err)}
	}
	where := file
	for _, named := range []struct {
		file string
		into *[]byte
	}{{c.CertFile, &c.Cert}, {c.KeyFile, &c.Key}} { // mostly one file
		if named.file == "" {
			continue
		}
		where = named.file
		text, err := r.m.Read(where)
		if err != nil {
			return []Defect{wrong(symptom.BootstrapKubeconfigMissing, where, "%s names it: %s", file, Plain(err))}
		}
		*named.into = []byte(text)
	}
	if _, err := tls.X509KeyPair(c.Cert, c.Key); err != nil {
		return []Defect{wrong(symptom.BootstrapKubeconfigMissing, where, "kubelet cannot use its client certificate: %v", err)}
	}
	return nil
}

// clientCA judges the CA by which kubelet knows the API server: it does not start without.
func (m Machine) clientCA(file string) []Defect {
	if file == "" {
		return nil
	}
	text, err := m.Read(file)
	if err == nil {
		_, err = kube.Certificates([]byte(text))
	}
	if err != nil {
		return []Defect{wrong(symptom.FileChanged, file, "kubelet does not start without it: %s", Plain(err))}
	}
	return nil
}
