package repair

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"k8slab/config"
	"k8slab/lab/kube"
	"k8slab/lab/session"
	"k8slab/lab/symptom"
)

const (
	kubeletDir  = "/var/lib/kubelet/"
	kubeletConf = kubernetesDir + "kubelet.conf"
	kubeletPEM  = kubeletDir + "pki/kubelet-client-current.pem"
	ownPEM      = kubeletDir + "pki/kubelet-client-k8slab.pem"
)

// kubeletFiles are what kubeadm writes for kubelet, and whether a text can be one of them.
var kubeletFiles = map[string]func(string) bool{
	"config.yaml": func(text string) bool {
		var is struct{ Kind string }
		return yaml.Unmarshal([]byte(text), &is) == nil && is.Kind == "KubeletConfiguration"
	},
	"instance-config.yaml": func(text string) bool {
		var is struct{ ContainerRuntimeEndpoint string }
		return yaml.Unmarshal([]byte(text), &is) == nil && is.ContainerRuntimeEndpoint != ""
	},
	"kubeadm-flags.env": func(text string) bool { return strings.HasPrefix(text, `KUBELET_KUBEADM_ARGS="`) },
}

// kubelets restores what kubelet starts with: its configuration and flags, by kubeadm on the node; its client certificate, signed on a
// control plane. The authority's key stays there.
func (r *repairRun) kubelets(ctx context.Context) error {
	return session.ForEachNode(r.Cluster.Members(), func(n config.Node) error {
		if f := r.Fact(n); !f.Joined || f.Running() {
			return nil
		}
		on := r.Nodes[n.Name]
		files := []string{kubeletConf, kubeletPEM, pkiDir + "ca.crt"}
		for name := range kubeletFiles {
			files = append(files, kubeletDir+name)
		}
		is, err := readFiles(ctx, on, files...)
		if err != nil {
			return err
		}
		before := r.count(n.Name)
		err = errors.Join(r.kubeletConfiguration(ctx, n, is), r.kubeletLogin(ctx, n, is), r.kubeletState(ctx, n))
		if err == nil && r.count(n.Name) > before && !r.DryRun {
			err = session.Do(ctx, on, "systemctl", "restart", "kubelet")
		}
		return err
	})
}

// kubeletConfiguration restores kubelet's files that cannot be read, and where the node fails, those that differ from what kubeadm makes.
func (r *repairRun) kubeletConfiguration(ctx context.Context, n config.Node, is map[string]string) error {
	suspect := r.fails(n.Name)
	for name, sound := range kubeletFiles {
		suspect = suspect || !sound(is[kubeletDir+name])
	}
	if !suspect {
		return nil
	}
	made, err := r.made(ctx, n, "kubelet-start")
	if err != nil {
		return err
	}
	for name, sound := range kubeletFiles {
		file, want := kubeletDir+name, made[name]
		if !sound(want) || sound(is[file]) && sameText(is[file], want) {
			continue
		}
		if !r.DryRun {
			if err := save(ctx, r.Nodes[n.Name], file); err != nil {
				return err
			}
			if err := r.Nodes[n.Name].Copy(ctx, file, 0o644, strings.NewReader(want)); err != nil {
				return err
			}
		}
		evidence := file + " is not what kubeadm makes of the cluster's configuration"
		if is[file] == "" {
			evidence = file + " is missing or empty"
		}
		r.repaired(Repaired{Node: n.Name, Symptom: string(symptom.FileChanged), Evidence: evidence},
			"write what kubeadm makes", "wrote what kubeadm makes, and restarted kubelet")
	}
	return nil
}

// kubeletState moves files of kubelet's own aside that are empty or cut, as a disk without space leaves them. kubelet does not start with
// such a file, and makes a new one.
func (r *repairRun) kubeletState(ctx context.Context, n config.Node) error {
	on, serving := r.Nodes[n.Name], kubeletDir+"pki/kubelet."
	out, err := on.Read(ctx, "find", kubeletDir, "-maxdepth", "2", "-type", "f", "(", "-name", "*_manager_state", "-o", "-name", "*_pods_state",
		"-o", "-name", "kubelet_internal_checkpoint", "-o", "-size", "0", "(", "-name", "kubelet.crt", "-o", "-name", "kubelet.key", ")", ")")
	if err != nil {
		return err
	}
	found := strings.Fields(out)
	if len(found) == 0 {
		return nil
	}
	state := slices.DeleteFunc(slices.Clone(found), func(file string) bool { return strings.HasPrefix(file, serving) })
	is, err := readFiles(ctx, on, state...)
	if err != nil {
		return err
	}
	cut := slices.DeleteFunc(found, func(file string) bool { return json.Valid([]byte(is[file])) })
	if len(cut) == 0 {
		return nil
	}
	evidence := "empty or cut, and kubelet does not start with it: " + strings.Join(cut, ", ")
	if strings.Contains(evidence, serving) { // the two belong together
		cut = append(cut, serving+"crt", serving+"key")
	}
	if !r.DryRun {
		if err := save(ctx, on, cut...); err != nil {
			return err
		}
	}
	r.repaired(Repaired{Node: n.Name, Symptom: string(symptom.FileChanged), Evidence: evidence},
		"move it aside; kubelet makes a new one", "moved it aside, and restarted kubelet, which makes a new one")
	return nil
}

// sameText compares two YAML documents by what they say, and other texts as they are.
func sameText(a, b string) bool {
	var one, other any
	if yaml.Unmarshal([]byte(a), &one) == nil && yaml.Unmarshal([]byte(b), &other) == nil {
		return reflect.DeepEqual(one, other)
	}
	return strings.TrimSpace(a) == strings.TrimSpace(b)
}

// kubeletLogin gives kubelet a new client certificate and kubeconfig, if one of them is missing or not valid.
func (r *repairRun) kubeletLogin(ctx context.Context, n config.Node, is map[string]string) error {
	from := r.Admin.From
	authority, err := r.Nodes[from.Name].Read(ctx, "cat", pkiDir+"ca.crt")
	if err != nil {
		return err
	}
	now := time.Now()
	wrong := wrongLogin(is[kubeletConf], authority, r.Documents().Servers, now)
	file := kubeletConf
	if wrong == nil && strings.Contains(is[kubeletConf], kubeletPEM) {
		file, wrong = kubeletPEM, wrongPair(is[kubeletPEM], is[kubeletPEM], authority, nil, now)
	}
	public := strings.TrimSpace(is[pkiDir+"ca.crt"]) == strings.TrimSpace(authority)
	if wrong == nil && public {
		return nil
	}
	if wrong == nil {
		file, wrong = pkiDir+"ca.crt", errors.New("it is not the cluster's authority")
	}
	if !r.DryRun {
		if err := r.newLogin(ctx, n, from, authority); err != nil {
			return err
		}
	}
	r.repaired(Repaired{Node: n.Name, Symptom: string(causeOf(wrong)), Evidence: fmt.Sprintf("%s: %v", file, wrong)},
		"have kubeadm on "+from.Name+" sign a new client certificate for kubelet",
		"had kubeadm on "+from.Name+" sign a new client certificate for kubelet")
	return nil
}

// newLogin has kubeadm on a control plane make a kubeconfig of the node's identity, and writes it as kubelet keeps it: the certificate is
// in a file that kubelet renews.
func (r *repairRun) newLogin(ctx context.Context, n, from config.Node, authority string) error {
	text, err := r.kubeadm(ctx, from, true, "kubeconfig", "user", "--org", "system:nodes", "--client-name", kube.NodeUser+n.Name)
	if err != nil {
		return err
	}
	pair, reference, err := splitLogin(text)
	if err != nil {
		return fmt.Errorf("%s: kubeadm kubeconfig user: %w", from.Name, err)
	}
	on := r.Nodes[n.Name]
	if err := save(ctx, on, kubeletConf); err != nil {
		return err
	}
	for _, f := range []struct{ file, text string }{{pkiDir + "ca.crt", authority}, {ownPEM, pair}, {kubeletConf, reference}} {
		if f.file == pkiDir+"ca.crt" && n.Role == config.ControlPlane {
			continue // credentials cares for it
		}
		if err := on.Copy(ctx, f.file, 0o600, strings.NewReader(f.text)); err != nil {
			return err
		}
	}
	return session.Do(ctx, on, "ln", "-sfnT", ownPEM, kubeletPEM)
}

// splitLogin takes certificate and key out of a kubeconfig, which then refers to kubelet's file.
func splitLogin(text string) (pair, reference string, err error) {
	var k map[string]any
	if err := yaml.Unmarshal([]byte(text), &k); err != nil {
		return "", "", err
	}
	users, _ := k["users"].([]any)
	if len(users) != 1 {
		return "", "", errors.New("it has not one user")
	}
	one, _ := users[0].(map[string]any)
	user, _ := one["user"].(map[string]any)
	for _, key := range []string{"client-certificate", "client-key"} {
		encoded, _ := user[key+"-data"].(string)
		data, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(data) == 0 {
			return "", "", errors.New("it has no " + key)
		}
		pair += string(data)
		delete(user, key+"-data")
		user[key] = kubeletPEM
	}
	made, err := yaml.Marshal(k)
	return pair, string(made), err
}

// count is how much was found on the node.
func (r *repairRun) count(name string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.found {
		if f.Node == name {
			n++
		}
	}
	return n
}
