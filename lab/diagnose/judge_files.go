package diagnose

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/inventory"
	"k8slab/lab/symptom"
)

// extraFile is the detail of a file-changed that is about files which the image does not have. Whoever put them there may want them.
const extraFile = "extra"

// files judges the files that a component needs and that are not as the image made them. What another rule has named already gets more
// evidence, and labctl repair as its remedy, because that puts the files back.
func (j *judgement) files(m *fact.Machine) {
	rest := map[string][]inventory.Difference{}
	for _, d := range m.Inside.Files {
		if d.Component == "" || d.Kind == inventory.Extra {
			continue
		}
		if id, told := j.tellsOf(m, d); told {
			j.find(id, m.Name, "files", d.String()).Repairable = true
			continue
		}
		rest[d.Component] = append(rest[d.Component], d)
	}
	for _, component := range sortedComponents(rest) {
		j.changed(m, component, rest[component]).Repairable = true
	}
}

// comforts warns of changed files that no component needs, and of extra files.
func (j *judgement) comforts() {
	for i := range j.f.Machines {
		m := &j.f.Machines[i]
		if silent(m) || m.Inside == nil {
			continue
		}
		var comforts, extra []inventory.Difference
		for _, d := range m.Inside.Files {
			_, told := j.tellsOf(m, d)
			switch {
			case d.Kind == inventory.Extra && !told:
				extra = append(extra, d)
			case d.Kind != inventory.Extra && d.Component == "":
				comforts = append(comforts, d)
			}
		}
		if len(comforts) > 0 {
			f := j.changed(m, "", comforts)
			f.Level, f.Repairable = symptom.Warn, true
		}
		if len(extra) > 0 {
			f := j.changed(m, extraFile, extra)
			f.Level = symptom.Warn
			f.Meaning = "A file that the node's image does not have changes what a component does."
			f.Hint = "Nothing, if you put it there; else remove it, `systemctl daemon-reload`, and restart the component."
		}
	}
}

// changed adds one finding for the files of a component, of which there are some.
func (j *judgement) changed(m *fact.Machine, component string, all []inventory.Difference) (f *symptom.Finding) {
	shown := all
	if len(all) > evidenceLimit {
		shown = all[:evidenceLimit-1]
	}
	for _, d := range shown {
		f = j.findKind(symptom.FileChanged, component, m.Name, "files", d.String())
	}
	if more := len(all) - len(shown); more > 0 {
		f = j.findKind(symptom.FileChanged, component, m.Name, "files", fmt.Sprintf("and %d more files; `labnode files` there lists them", more))
	}
	return f
}

// tellsOf finds what names the difference already.
func (j *judgement) tellsOf(m *fact.Machine, d inventory.Difference) (symptom.ID, bool) {
	names := CausesOfFile(d)
	i := slices.IndexFunc(names, func(id symptom.ID) bool { return j.has(id, m.Name) })
	if i < 0 {
		return "", false
	}
	return names[i], true
}

// CausesOfFile are the causes that a difference of this file is called, if a check or a measurement shows one of them.
func CausesOfFile(d inventory.Difference) []symptom.ID {
	dir, name := path.Split(d.Path)
	switch {
	case dir == "/opt/cni/bin/" && d.Kind == inventory.Missing:
		return []symptom.ID{symptom.CNIPluginBinaryMissing}
	case dir == "/usr/bin/" && d.Kind == inventory.Missing && (name == "kubeadm" || name == "kubelet"):
		return []symptom.ID{symptom.KubeBinariesMissing}
	case strings.HasPrefix(d.Path, "/etc/cni/net.d"):
		return []symptom.ID{symptom.CNINotInitialized, symptom.CNIStaleConfig}
	case d.Path == "/etc/containerd/config.toml" && d.Kind == inventory.Changed:
		return []symptom.ID{symptom.CRIPluginDisabled, symptom.CgroupDriverMismatch, symptom.SandboxImageMisconfigured}
	case strings.Contains(d.Path, "/systemd/system/kubelet.service.d/"):
		return []symptom.ID{symptom.KubeletStandalone}
	case d.Kind == inventory.Masks && name == "containerd.service":
		return []symptom.ID{symptom.RuntimeSocketMissing}
	case d.Kind == inventory.Masks && name == "kubelet.service":
		return []symptom.ID{symptom.KubeletNotRunning}
	}
	return nil
}

// bystanders are components whose files break nothing that a cluster's other parts would show.
var bystanders = []string{"", extraFile, "kubeadm", "ssh", "labctl's tools"}

// breaks reports whether changed files can be the cause of another failure.
func breaks(f symptom.Finding) bool {
	return f.Symptom != symptom.FileChanged || f.Level == symptom.Fail && !slices.Contains(bystanders, f.Detail)
}

func sortedComponents(all map[string][]inventory.Difference) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
