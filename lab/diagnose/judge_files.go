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

// changedFiles are files of a machine that belong to one finding.
type changedFiles struct {
	id     symptom.ID // of the finding that names them already, if there is one
	detail string     // of a file-changed: what needs them, or extraFile
	files  []fact.Difference
}

// fails tells whether something does not work because of the files.
func (c changedFiles) fails() bool {
	return c.detail != "" && c.detail != extraFile || c.id != symptom.FileChanged
}

// sortedFiles groups the files of a machine. told are the findings that it has already.
func sortedFiles(files []fact.Difference, told func(symptom.ID) bool) []changedFiles {
	var all []changedFiles
	for _, d := range files {
		c := changedFiles{id: symptom.FileChanged, detail: d.Component}
		names := CausesOfFile(d)
		switch i := slices.IndexFunc(names, told); {
		case i >= 0:
			c.id, c.detail = names[i], ""
		case d.Kind == inventory.Extra:
			c.detail = extraFile
		}
		i := slices.IndexFunc(all, func(o changedFiles) bool { return o.id == c.id && o.detail == c.detail })
		if i < 0 {
			i, all = len(all), append(all, c)
		}
		all[i].files = append(all[i].files, d)
	}
	return all
}

// lines tell of the files, of many only the first.
func (c changedFiles) lines(most int) []string {
	shown := c.files
	if len(shown) > most {
		shown = shown[:most-1]
	}
	var lines []string
	for _, d := range shown {
		lines = append(lines, d.String())
	}
	if more := len(c.files) - len(shown); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more files; `labnode files` there lists them", more))
	}
	return lines
}

// CausesOfFile are the causes that a difference of this file is called, if a check or a measurement shows one of them.
func CausesOfFile(d fact.Difference) []symptom.ID {
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
