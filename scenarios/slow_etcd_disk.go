package scenarios

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8slab/lab/symptom"
)

var slowEtcdDisk = Fault{
	Name:    "slow-etcd-disk",
	Story:   "the disk under etcd takes a second for what should take milliseconds: a busy neighbour, a worn card (control-plane-join-failures)",
	Roles:   controlPlane,
	Symptom: symptom.EtcdSlow,
	Applies: threeControlPlanes,
	Inject:  func(ctx context.Context, t Target) error { return t.throttle(ctx, "2") },
	// Earlier counts are of etcd's start or of an earlier fault.
	Effect: func(ctx context.Context, t Target) error {
		before, err := t.slowWrites(ctx, "0.512")
		if err != nil {
			return err
		}
		return t.await(ctx, "etcd to measure slow writes", 6*time.Second, 500*time.Millisecond, func(ctx context.Context) error {
			now, err := t.slowWrites(ctx, "0.512")
			if err == nil && now < before+2 {
				err = absent("since it is being watched etcd has measured %d writes of more than 0.512 s", now-before)
			}
			return err
		})
	},
	Recover: repair,
	ByHand:  "the machine needs a faster disk",
	Restore: func(ctx context.Context, t Target) error { return t.throttle(ctx, "0") },
}

// throttling is the script that limits etcd's disk writes per second; 0 is no limit.
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

// throttle limits how often a second the node's etcd writes to its disk. The limit ends with etcd's container.
func (t Target) throttle(ctx context.Context, writes string) error {
	return t.shell(ctx, t.Node, throttling, writes)
}

// slowWrites counts the writes to etcd's log since its start that took more than bound seconds, which is a bucket of its histogram.
func (t Target) slowWrites(ctx context.Context, bound string) (int, error) {
	slow, err := t.Run(ctx, t.Node, "sh", "-c", `
		curl --silent --show-error --fail http://127.0.0.1:2381/metrics | awk -v step="le=\"$1\"" '
			/^etcd_disk_wal_fsync_duration_seconds_bucket/ && index($1, step) {fast = $2; known = 1}
			/^etcd_disk_wal_fsync_duration_seconds_count/ {all = $2}
			END {if (known) print all - fast}'`, "sh", bound)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(slow))
	if err != nil {
		return 0, fmt.Errorf("etcd measures no writes of more than %s s: %w", bound, err)
	}
	return n, nil
}
