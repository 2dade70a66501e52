package fact

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

const manifestDir = "/etc/kubernetes/manifests"

// components are the static pods that kubeadm makes, in files of their names.
var components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// manifestTime is what kubelet may take to run a manifest that changed: it looks at the latest every 20 s, and ends the old pod first.
const manifestTime = time.Minute

// manifest is a file of kubelet's directory.
type manifest struct {
	kube.StaticPod
	file    string
	changed time.Time
}

// prefix is how the names of its pods begin: kubelet adds the node's name.
func (m manifest) prefix() string { return m.Namespace + "/" + m.Name + "-" }

// staticPods reads kubelet's manifests, and compares them with what runs.
func (w *measurer) staticPods(ctx context.Context) ([]join.Defect, error) {
	manifests, found := w.readManifests()
	if len(manifests) == 0 {
		return found, nil
	}
	prefixes := make([]string, 0, len(manifests))
	for _, p := range manifests {
		prefixes = append(prefixes, p.prefix())
	}
	processes, err := join.Processes(ctx, w.m, prefixes)
	if err != nil {
		return found, nil // a runtime that does not answer has checks of its own
	}
	for _, p := range manifests {
		if w.m.Now().Sub(p.changed) > manifestTime {
			found = append(found, p.compare(processes)...)
		}
	}
	return found, nil
}

// readManifests reads what kubelet runs: every file whose name does not begin with a dot, whatever its name ends in.
func (w *measurer) readManifests() (all []manifest, found []join.Defect) {
	bad := func(file, hint, format string, args ...any) {
		found = append(found, join.Defect{Symptom: symptom.FileChanged, Where: file, Text: fmt.Sprintf(format, args...), Hint: hint})
	}
	for _, name := range w.m.List(manifestDir) {
		file := path.Join(manifestDir, name)
		info, err := os.Stat(w.m.Path(file))
		if strings.HasPrefix(name, ".") || err == nil && info.IsDir() {
			continue
		}
		text, readErr := w.m.Read(file)
		if err == nil {
			err = readErr
		}
		if err != nil {
			bad(file, "", "kubelet cannot read it: %s", join.Plain(err))
			continue
		}
		pod, err := kube.ReadStaticPod([]byte(text))
		if err != nil {
			bad(file, "", "kubelet does not run it: %v", err)
			continue
		}
		own := strings.TrimSuffix(name, ".yaml")
		if slices.Contains(components, own) && (pod.Name != own || pod.Namespace != "kube-system") {
			bad(file, "", "it is to be the pod kube-system/%s, and is %s/%s", own, pod.Namespace, pod.Name)
		}
		changed, err := w.m.Changed(file)
		if err != nil {
			continue // it has just gone
		}
		m := manifest{pod, file, changed}
		if i := slices.IndexFunc(all, func(o manifest) bool { return o.prefix() == m.prefix() }); i >= 0 {
			bad(file, "mv "+file+" /root: kubelet reads every file in the directory, copies too",
				"it defines the pod %s/%s, as %s does: kubelet runs either", pod.Namespace, pod.Name, path.Base(all[i].file))
		}
		all = append(all, m)
	}
	return all, found
}

// compare says what of a manifest does not run as it is written. One that crashes has checks of its own.
func (m manifest) compare(processes []join.Process) []join.Defect {
	known := slices.ContainsFunc(processes, func(p join.Process) bool { return strings.HasPrefix(p.Pod, m.prefix()) })
	if !known {
		return []join.Defect{{Where: m.file, Text: "kubelet has made no container of it"}}
	}
	var found []join.Defect
	for _, p := range processes {
		i := slices.IndexFunc(m.Containers, func(c kube.StaticContainer) bool { return c.Name == p.Container })
		if i < 0 || !p.Running || !strings.HasPrefix(p.Pod, m.prefix()) {
			continue
		}
		want := m.Containers[i]
		if p.Image != "" && p.Image != want.Image {
			found = append(found, join.Defect{Where: m.file, Text: fmt.Sprintf("%s runs %s and is to run %s", want.Name, p.Image, want.Image)})
		}
		expands := slices.ContainsFunc(want.Command, func(word string) bool { return strings.Contains(word, "$(") })
		if len(p.Command) == 0 || len(want.Command) == 0 || expands || slices.Equal(p.Command, want.Command) {
			continue
		}
		text := fmt.Sprintf("%s does not run as it says: %s", want.Name, difference(want.Command, p.Command))
		found = append(found, join.Defect{Where: m.file, Text: text})
	}
	return found
}

// difference names the words of two commands that only one of them has.
func difference(want, runs []string) string {
	only := func(a, b []string) string {
		words := slices.DeleteFunc(slices.Clone(a), func(word string) bool { return slices.Contains(b, word) })
		return strings.Join(words, " ")
	}
	return fmt.Sprintf("in the manifest only: %q; in the running container only: %q", only(want, runs), only(runs, want))
}
