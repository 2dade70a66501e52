package lab

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"k8slab/config"
)

const (
	kubernetes = "/etc/kubernetes/"
	pkiFiles   = kubernetes + "pki/"
	kubelets   = "/var/lib/kubelet/"
	kubeletPEM = kubelets + "pki/kubelet-client-current.pem"
)

// manifestOf is the manifest that kubeadm makes of a component, and somebodys is another.
func manifestOf(name string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec: {containers: [{name: " + name + "}]}\n"
}

const somebodys = "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: somebody}]}\n"

// leafFiles are the certificates of kubeadm's phases.
var leafFiles = map[string]string{
	"apiserver": "apiserver", "apiserver-kubelet-client": "apiserver-kubelet-client", "front-proxy-client": "front-proxy-client", "etcd-server": "etcd/server",
	"etcd-peer": "etcd/peer", "etcd-healthcheck-client": "etcd/healthcheck-client", "apiserver-etcd-client": "apiserver-etcd-client",
}

// ofKubeadm is a file that kubeadm made on the machine, "" for none.
func (w *world) ofKubeadm(b *box, name string) string {
	server := "https://" + w.lab.found.Cluster.Network.VirtualIP.String() + ":6443"
	switch name {
	case kubernetes + "kubelet.conf":
		return w.pki.kubeconfig(server)
	case pkiFiles + "ca.crt":
		return string(w.pki.cert)
	case kubelets + "config.yaml":
		return "kind: KubeletConfiguration\n"
	case kubelets + "instance-config.yaml":
		return "containerRuntimeEndpoint: unix:///run/containerd/containerd.sock\n"
	case kubelets + "kubeadm-flags.env":
		return `KUBELET_KUBEADM_ARGS="--node-ip=` + b.node.IP.String() + "\"\n"
	}
	if b.node.Role != config.ControlPlane {
		return ""
	}
	switch dir, base := path.Split(name); {
	case name == pkiFiles+"sa.pub":
		return serviceAccounts()[0]
	case name == pkiFiles+"sa.key":
		return serviceAccounts()[1]
	case strings.HasPrefix(name, pkiFiles) && strings.HasSuffix(name, ".crt"):
		return string(w.pki.cert)
	case strings.HasPrefix(name, pkiFiles) && strings.HasSuffix(name, ".key"):
		return string(w.pki.key)
	case dir == manifestDir:
		return manifestOf(strings.TrimSuffix(base, ".yaml"))
	case slices.Contains([]string{"admin.conf", "controller-manager.conf", "scheduler.conf"}, base):
		return w.pki.kubeconfig(server)
	}
	return ""
}

// kubeadm is what a repair has it do, and the programs around it.
func (w *world) kubeadm(b *box, argv []string, stdin string) (out string, status int, known bool) {
	line := strings.Join(argv, " ")
	switch {
	case argv[0] == "kubectl" && strings.Contains(line, "rollout restart"):
		return "", 0, true
	case argv[0] == "kubectl" && strings.Contains(line, "kubelet-config"):
		return "kind: KubeletConfiguration\n", 0, true
	case argv[0] == "kubectl":
		return "kind: ClusterConfiguration\n", 0, true
	case argv[0] == "cp":
		b.files[argv[3]], _ = w.file(b, argv[2])
		return "", 0, true
	case argv[0] == "find" && strings.Contains(line, "_manager_state"):
		for _, name := range []string{"cpu_manager_state", "allocated_pods_state"} {
			if _, is := b.files[kubelets+name]; is && b.files[kubelets+name+".k8slab-saved"] == "" {
				out += kubelets + name + "\n"
			}
		}
		return out, 0, true
	case argv[0] == "ln":
		b.files[argv[3]] = b.files[argv[2]]
		return "", 0, true
	case argv[0] == "crictl" && slices.Contains(argv, "ps") && !strings.Contains(line, "|"): // of one component; a restore asks for several
		return "id-of-" + strings.Trim(argv[len(argv)-1], "^$") + "\n", 0, true
	case argv[0] == "crictl" && slices.Contains(argv, "stop"):
		if slices.Contains(argv, "id-of-kube-apiserver") {
			w.defaults()
		}
		return "", 0, true
	case argv[0] == "sh" && len(argv) > 3:
		return w.script(b, argv[2], argv[4:], stdin)
	}
	return "", 0, false
}

// script is one of the scripts around kubeadm.
func (w *world) script(b *box, script string, args []string, stdin string) (out string, status int, known bool) {
	needs := func(kinds ...string) {
		for _, kind := range kinds {
			if !strings.Contains(stdin, "kind: "+kind) {
				w.broken = fmt.Errorf("kubeadm %q gets %q", args, stdin)
			}
		}
	}
	switch {
	case strings.Contains(script, "KUBEADM_INIT_DRYRUN_DIR"):
		needs("InitConfiguration", "ClusterConfiguration", "KubeletConfiguration")
		here := b.node.Name
		for _, other := range w.machines { // whose configuration it is
			if strings.Contains(stdin, "name: "+other.node.Name+"\n") {
				b = other
			}
		}
		files := w.makes(b, args)
		if b.node.Name != here && strings.Contains(stdin, "patches:") {
			w.broken = fmt.Errorf("kubeadm on %s would take its own patches for those of %s", here, b.node.Name)
		}
		if b.node.Name != here { // than the machine is called
			files = strings.Replace(files, "--node-ip", "--hostname-override="+b.node.Name+" --node-ip", 1)
		}
		return files, 0, true
	case strings.Contains(script, "kubeadm kubeconfig user") && slices.Contains(args, "system:masters"):
		needs("InitConfiguration", "ClusterConfiguration")
		server := "https://" + w.lab.found.Cluster.Network.VirtualIP.String() + ":6443"
		return strings.ReplaceAll(w.pki.kubeconfig(server), `{"token":"admin"}`, `{"token":"`+superToken+`"}`), 0, true
	case strings.Contains(script, `kubeadm "$@"`):
		needs("InitConfiguration", "ClusterConfiguration")
		return w.phase(b, strings.Join(args, " "), stdin)
	case strings.Contains(script, "k8slab-saved"):
		for _, name := range args {
			if text, status := w.file(b, name); status == 0 {
				b.files[name+".k8slab-saved"], b.files[name] = text, ""
			}
		}
		return "", 0, true
	case strings.Contains(script, "==> $f <=="):
		for _, name := range args {
			text, status := w.file(b, name)
			if status != 0 {
				text = ""
			}
			out += "==> " + name + " <==\n" + text + "\n"
		}
		return out, 0, true
	}
	return "", 0, false
}

// makes are the files of phases that only look.
func (w *world) makes(b *box, phases []string) (out string) {
	var names []string
	if slices.Contains(phases, "etcd local") {
		names = append(names, "etcd")
	}
	if slices.Contains(phases, "control-plane all") {
		names = append(names, "kube-apiserver", "kube-controller-manager", "kube-scheduler")
	}
	for _, name := range names {
		text := manifestOf(name)
		if name == "etcd" {
			text = fmt.Sprintf(etcdManifest, b.node.Name, b.node.IP)
		}
		out += "==> " + name + ".yaml <==\n" + text + "\n"
	}
	if slices.Contains(phases, "kubelet-start") {
		for _, name := range []string{"config.yaml", "instance-config.yaml", "kubeadm-flags.env"} {
			out += "==> " + name + " <==\n" + w.ofKubeadm(b, kubelets+name) + "\n"
		}
	}
	return out
}

// phase is one of kubeadm's that change something or print. It refuses a file that is there and is not its own, as kubeadm does.
func (w *world) phase(b *box, line, stdin string) (out string, status int, known bool) {
	remake := func(files ...string) (string, int, bool) {
		for _, name := range files {
			if b.files[name] != "" {
				return name + " exists already but is not valid", 1, true
			}
			delete(b.files, name)
		}
		return "", 0, true
	}
	name := path.Base(strings.ReplaceAll(line, " ", "/"))
	switch {
	case strings.HasPrefix(line, "init phase certs "):
		return remake(pkiFiles+leafFiles[name]+".crt", pkiFiles+leafFiles[name]+".key")
	case strings.HasPrefix(line, "init phase kubeconfig "):
		return remake(kubernetes + name + ".conf")
	case line == "init phase upload-config all":
		return "", 0, true
	case strings.HasPrefix(line, "kubeconfig user --org system:nodes --client-name system:node:"):
		return w.pki.login("https://"+w.lab.found.Cluster.Network.VirtualIP.String()+":6443", name), 0, true
	case strings.HasPrefix(line, "init phase addon ") && strings.HasSuffix(line, " --print-manifest"):
		return w.addonText(strings.Fields(line)[3]), 0, true
	}
	return "", 0, false
}

// addonText is its manifest in this cluster.
func (w *world) addonText(name string) string {
	text, err := os.ReadFile(filepath.Join("testdata", "addon-"+name+".yaml"))
	if err != nil {
		panic(err)
	}
	return strings.ReplaceAll(string(text), "10.30.0.10", w.lab.found.Cluster.Network.VirtualIP.String())
}

// addon has the cluster have the objects of one of kubeadm's add-ons.
func (w *world) addon(name string) {
	for text := range strings.SplitSeq(w.addonText(name), "---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(text), &o); err != nil || o == nil {
			continue
		}
		w.put(o)
	}
}

// put keeps an object.
func (w *world) put(o object) {
	meta := o["metadata"].(object)
	for _, n := range plurals[o["apiVersion"].(string)] {
		words := strings.Fields(n)
		if words[0] != o["kind"] {
			continue
		}
		at := "/apis/" + o["apiVersion"].(string)
		if o["apiVersion"] == "v1" {
			at = "/api/v1"
		}
		if len(words) == 3 {
			at += "/namespaces/" + meta["namespace"].(string)
		}
		w.objects[at+"/"+words[1]+"/"+meta["name"].(string)] = o
	}
}
