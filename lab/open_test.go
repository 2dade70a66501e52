package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/gofrs/flock"

	"k8slab/lab/labtest"
)

// Several may use a lab at once, as a fault's circle does while it watches etcd.
func TestALabIsOpenedByMany(t *testing.T) {
	l := newLab(t, labtest.Three)
	dir := l.found.Path("libvirt")
	if err := os.MkdirAll(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir) // a socket's path is short
	serve, err := net.Listen("unix", "run/libvirt-sock")
	if err != nil {
		t.Fatal(err)
	}
	defer serve.Close()
	lock := flock.New("serve.lock")
	if locked, err := lock.TryLock(); err != nil || !locked {
		t.Fatal(locked, err)
	}
	defer lock.Close()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("serve.pid", fmt.Appendf(nil, "%d 1 1 %s", os.Getpid(), boot), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.found.ID(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nobody answers here: what counts is what they do with the lab's own values
	for range 8 {
		wg.Go(func() { _, _ = l.EtcdMembers(ctx) }) // as two checks of validate do at once
		wg.Go(func() { _, _ = l.Dial(ctx, "tcp", "10.30.0.11:10250") })
		wg.Go(func() { _, _ = l.Host() })
		wg.Go(func() {
			n, err := l.Node("cp1")
			if err != nil {
				t.Error(err)
				return
			}
			_ = n.Close()
		})
	}
	wg.Wait()
}
