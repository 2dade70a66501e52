package join

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"k8slab/lab/symptom"
)

// kubelet's default hard eviction thresholds (pkg/kubelet/apis/config/v1beta1/defaults_linux.go): below them it evicts pods from the start.
const (
	evictFreePercent       = 10 // nodefs.available
	evictImagesPercent     = 15 // imagefs.available
	evictFreeInodesPercent = 5  // nodefs.inodesFree
)

// diskPaths are where a node writes.
func (p *preflight) diskPaths() []string {
	paths := []string{"/var/lib/kubelet", "/etc/kubernetes"}
	if data := p.runtime().data; data != "" {
		paths = append(paths, data)
	}
	if p.t.ControlPlane {
		paths = append(paths, p.m.etcdDir())
	}
	return paths
}

func checkDisk(_ context.Context, p *preflight) Check {
	worst := ok("")
	var seen []string
	for _, dir := range p.diskPaths() {
		place := p.m.existing(dir)
		s, err := p.m.Space(p.m.Path(place))
		if err != nil {
			return unmade(err)
		}
		c := judgeSpace(dir, s, dir == p.runtime().data)
		if c.Result == OK {
			if !slices.Contains(seen, c.Evidence) {
				seen = append(seen, c.Evidence)
			}
			continue
		}
		c.Hint = p.m.withoutTmpfs(dir, c.Hint)
		if severity[c.Result] < severity[worst.Result] {
			worst = c
		}
	}
	if worst.Result == OK {
		worst.Evidence = strings.Join(seen, "; ")
	}
	return worst
}

// withoutTmpfs is the hint, or how to take away a tmpfs that is mounted on the directory itself: nothing that a node needs is only in memory.
func (m Machine) withoutTmpfs(dir, hint string) string {
	mounts, _ := m.Read("/proc/mounts")
	kind := ""
	for line := range strings.Lines(mounts) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[1] == dir { // the last one hides the others
			kind = fields[2]
		}
	}
	if kind != "tmpfs" {
		return hint
	}
	return symptom.Unmount.With(dir) + " takes away the tmpfs that is mounted there"
}

func judgeSpace(dir string, s Space, ofImages bool) Check {
	hint := "free space, or give the machine a bigger disk: crictl rmi --prune; journalctl --vacuum-size=100M"
	free := percent(s.FreeBytes, s.Bytes)
	switch {
	case s.ReadOnly:
		return blocked(symptom.ReadOnlyFilesystem, "mount -o remount,rw the file system of "+dir+"; dmesg says why it is read-only", "%s is read-only", dir)
	case s.Bytes == 0:
		return warn(symptom.DiskFull, hint, "the file system of %s says that it has no size", dir)
	case free < evictFreePercent:
		return blocked(symptom.DiskFull, hint, "%s has %d %% (%s) free: kubelet evicts pods below %d %%", dir, free, size(s.FreeBytes), evictFreePercent)
	case s.Inodes > 0 && percent(s.FreeInodes, s.Inodes) < evictFreeInodesPercent:
		return blocked(symptom.DiskFull, hint, "%s has %d %% of its inodes free: kubelet evicts pods below %d %%",
			dir, percent(s.FreeInodes, s.Inodes), evictFreeInodesPercent)
	case ofImages && free < evictImagesPercent:
		return warn(symptom.DiskFull, hint, "%s has %d %% (%s) free: kubelet removes images below %d %%", dir, free, size(s.FreeBytes), evictImagesPercent)
	}
	return ok("%s free of %s", size(s.FreeBytes), size(s.Bytes))
}

func percent(part, whole uint64) int {
	if whole == 0 {
		return 0
	}
	return int(float64(part) / float64(whole) * 100)
}

func size(bytes uint64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

// existing is the path, or the nearest directory above it that exists.
func (m Machine) existing(dir string) string {
	for dir != "/" && !m.Exists(dir) {
		dir = path.Dir(dir)
	}
	return dir
}

// How etcd's disk is measured: etcd's write-ahead log is written in small blocks, each followed by fdatasync.
const (
	syncBlock  = 2 << 10
	syncBudget = 300 * time.Millisecond
	syncFewest = 5 // also on a disk that is slower than the budget
	// etcd's hardware guide asks for a 99th percentile below this.
	syncSlow = 10 * time.Millisecond
	// etcd's heartbeat interval. A member whose usual write takes longer cannot follow a leader, so elections never end. The median decides,
	// because on a busy host a single write can take that long by chance, and chance must not refuse a join.
	syncHopeless = 100 * time.Millisecond
)

func checkEtcdDisk(ctx context.Context, p *preflight) Check {
	dir := p.m.existing(p.m.etcdDir())
	samples, err := syncLatencies(ctx, p.m.Path(dir), p.m.Now)
	if err != nil {
		if errors.Is(err, syscall.EROFS) {
			return blocked(symptom.ReadOnlyFilesystem, "mount -o remount,rw the file system of "+dir, "%s: %v", dir, err)
		}
		return unmade(fmt.Errorf("measure the disk at %s: %w", dir, err))
	}
	return judgeLatencies(p.m.etcdDir(), samples)
}

func judgeLatencies(dir string, samples []time.Duration) Check {
	if len(samples) == 0 {
		return unmade(errors.New("the disk answered no write in time"))
	}
	slices.Sort(samples)
	median, p99 := samples[len(samples)/2], samples[len(samples)*99/100]
	evidence := fmt.Sprintf("fdatasync of 2 KiB: median %s, 99th percentile %s of %d", round(median), round(p99), len(samples))
	hint := "give " + dir + " a faster disk, or the machine less to do"
	switch {
	case median > syncHopeless:
		return blocked(symptom.EtcdSlow, hint, "%s: longer than etcd's heartbeat of %s", evidence, syncHopeless)
	case p99 > syncSlow:
		return warn(symptom.EtcdSlow, hint, "%s: etcd asks for %s", evidence, syncSlow)
	}
	return ok("%s", evidence)
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// syncLatencies writes blocks to a file without a name, which is gone whatever happens, and times each until it is on the disk.
func syncLatencies(ctx context.Context, dir string, now func() time.Time) ([]time.Duration, error) {
	file, err := namelessFile(dir)
	if err != nil {
		return nil, fmt.Errorf("make a temporary file: %w", err)
	}
	defer file.Close()
	block := make([]byte, syncBlock)
	var samples []time.Duration
	start := now()
	for offset := int64(0); ctx.Err() == nil && (now().Sub(start) < syncBudget || len(samples) < syncFewest); offset += syncBlock {
		begin := now()
		if _, err := file.WriteAt(block, offset); err != nil {
			return nil, err
		}
		if err := unix.Fdatasync(int(file.Fd())); err != nil {
			return nil, err
		}
		samples = append(samples, now().Sub(begin))
	}
	return samples, nil
}

// namelessFile makes a file that has no name, or on a file system that cannot, one that loses it at once.
func namelessFile(dir string) (*os.File, error) {
	file, err := os.OpenFile(dir, unix.O_TMPFILE|os.O_WRONLY, 0o600)
	if err == nil || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EACCES) {
		return file, err
	}
	file, err = os.CreateTemp(dir, ".k8slab-*")
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}
