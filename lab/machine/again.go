package machine

import (
	"strings"

	"github.com/digitalocean/go-libvirt"
)

// startAttempts is how often a container whose first process dies in libvirt's own code is started.
const startAttempts = 3

// again starts a container until its first process gets as far as systemd. Until then that process is a clone of libvirt_lxc, in which libblkid
// looks at the disk; its stack is a few pages of libvirt_lxc's heap, without a guard below. Once in some dozens of starts on a slow computer it
// dies of a corrupt heap ("double free or corruption", a general protection fault in libblkid: libvirt 9.0 of Debian 12). Nothing of it is left
// then, and libvirt's error says no more than that it waited for the log.
func again(start func() error) (err error) {
	for range startAttempts {
		if err = start(); !is(err, libvirt.ErrInternalError) || !strings.Contains(err.Error(), "Timed out while reading log output") {
			break
		}
	}
	return err
}
