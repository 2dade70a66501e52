package scenarios

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"k8slab/lab/symptom"
)

var slowEtcdDisk = Fault{
	Name:    "slow-etcd-disk",
	Story:   "the disk under etcd takes a second for what should take milliseconds: a busy neighbour, a worn card (control-plane-join-failures)",
	Roles:   controlPlane,
	Symptom: symptom.EtcdSlow,
	Applies: threeControlPlanes,
	Inject:  func(ctx context.Context, s Site) error { return s.throttle(ctx, "2") },
	Bites:   slowWrites("0.512"),
	Once:    true,
	Recover: repair,
	Stops:   true,
	Restore: func(ctx context.Context, s Site) error { return s.throttle(ctx, "0") },
}

// throttling limits how often a second etcd may write to its disk; 0 is as often as it likes.
const throttling = `
	pid=$(pgrep --oldest --exact etcd) || test "$1" = 0
	test -n "$pid" || exit 0
	device=$(findmnt --noheadings --output MAJ:MIN --target /var/lib/etcd | tr -d ' ')
	group=$(sed -n 's/^[0-9]*:blkio://p' "/proc/$pid/cgroup")
	if test -n "$group"; then
		echo "$device $1" > "/sys/fs/cgroup/blkio$group/blkio.throttle.write_iops_device"
		exit
	fi
	group=$(sed -n 's/^0:://p' "/proc/$pid/cgroup")
	test "$1" != 0 || set max
	echo "$device wiops=$1" > "/sys/fs/cgroup$group/io.max"`

// throttle lets the node's etcd write to its disk so many times a second. With its container the limit ends.
func (s Site) throttle(ctx context.Context, writes string) error {
	return s.shell(ctx, s.Node, throttling, writes)
}

// slowWrites wants etcd itself to have measured several writes to its log of more than so many seconds, a step of its histogram.
func slowWrites(bound string) func(context.Context, Site) error {
	return func(ctx context.Context, s Site) error {
		slow, err := s.Run(ctx, s.Node, "sh", "-c", `
			curl --silent --show-error --fail http://127.0.0.1:2381/metrics | awk -v step="le=\"$1\"" '
				/^etcd_disk_wal_fsync_duration_seconds_bucket/ && index($1, step) {fast = $2}
				/^etcd_disk_wal_fsync_duration_seconds_count/ {all = $2}
				END {print all - fast}'`, "sh", bound)
		if err != nil {
			return err
		}
		if n, err := strconv.Atoi(strings.TrimSpace(slow)); err != nil || n < 3 {
			return fmt.Errorf("etcd has measured %.20q writes of more than %s s", slow, bound)
		}
		return nil
	}
}
