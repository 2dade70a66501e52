package fact

import (
	"context"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"k8slab/lab/join"
	"k8slab/lab/symptom"
)

// resolver reads the file that kubelet makes each pod's resolv.conf of. Without it no pod starts.
func (w *measurer) resolver(context.Context) ([]join.Defect, error) {
	var config struct {
		ResolvConf *string `json:"resolvConf"`
	}
	text, err := w.m.Read("/var/lib/kubelet/config.yaml")
	if err != nil || yaml.Unmarshal([]byte(text), &config) != nil {
		return nil, errSkipped // which another organ says
	}
	file := "/etc/resolv.conf"
	if config.ResolvConf != nil {
		file = *config.ResolvConf
	}
	if file == "" { // pods then get none
		return nil, nil
	}
	if _, err := w.m.Read(file); err != nil {
		d := join.Defect{Symptom: symptom.FileChanged, Where: file, Text: "kubelet gives it to pods, and none can start: " + join.Plain(err)}
		d.Hint = "write it again, such as an empty one where the network has no DNS server, or correct resolvConf in /var/lib/kubelet/config.yaml"
		return []join.Defect{d}, nil
	}
	return nil, nil
}

// written are the directories that programs of a node write to. What kubelet evicts pods for is a check of its own, with higher limits.
var written = []string{"/etc/kubernetes", "/var/lib", "/var/log", "/run", "/tmp"}

// leastSpace and leastInodes are what a program needs to write at all.
const (
	leastSpace  = 1 << 20
	leastInodes = 16
)

// fileSystems judges whether those directories can be written to.
func (w *measurer) fileSystems(context.Context) ([]join.Defect, error) {
	var found []join.Defect
	for _, dir := range written {
		if _, err := os.Stat(w.m.Path(dir)); err != nil {
			continue
		}
		space, err := w.m.Space(w.m.Path(dir))
		if err != nil {
			return found, err
		}
		bad := func(id symptom.ID, hint, format string, args ...any) {
			found = append(found, join.Defect{Symptom: id, Where: dir, Text: fmt.Sprintf(format, args...), Hint: hint})
		}
		free := "df -i " + dir + "; df -h " + dir + ": remove what fills it"
		switch {
		case space.ReadOnly:
			bad(symptom.ReadOnlyFilesystem, "mount -o remount,rw the file system of "+dir+"; dmesg says why it is read-only",
				"its file system is read-only")
		case space.Bytes > 0 && space.FreeBytes < leastSpace:
			bad(symptom.DiskFull, free, "its file system has %d bytes free", space.FreeBytes)
		case space.Inodes > 0 && space.FreeInodes < leastInodes:
			bad(symptom.DiskFull, free, "its file system has %d of %d inodes free: no file can be made", space.FreeInodes, space.Inodes)
		}
	}
	return found, nil
}
