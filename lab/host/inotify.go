package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"k8slab/lab/event"
)

// inotifyInstances are enough for a dozen container nodes, whose systemd, kubelet and containerd share this computer's limit: about 25 a
// node. Linux' own default of 128 ends a sixth node, whose init then fails with "too many open files".
const inotifyInstances = 1024

const inotifyFile = "/proc/sys/fs/inotify/max_user_instances"

// RaiseInotify raises the limit where it is lower, and says so: it is a setting of this computer, which stays.
func RaiseInotify(events *event.Stream) error { return raiseInotify(inotifyFile, events) }

func raiseInotify(path string, events *event.Stream) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	now, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if now >= inotifyInstances {
		return nil
	}
	step := events.Start("", "inotify", 0)
	if err := os.WriteFile(path, []byte(strconv.Itoa(inotifyInstances)), 0o644); err != nil {
		return step.End(fmt.Errorf("container nodes share fs.inotify.max_user_instances, which is %d here, too few for several: %w; run: sudo sysctl fs.inotify.max_user_instances=%d", now, err, inotifyInstances))
	}
	step.EndWith(fmt.Sprintf("fs.inotify.max_user_instances raised from %d to %d", now, inotifyInstances))
	return nil
}
