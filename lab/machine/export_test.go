package machine

import (
	"context"
	"testing"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// RefreshPool has libvirt look at the files of the pool.
func (l *Lab) RefreshPool(ctx context.Context) error {
	return l.inPool(ctx, "refresh", func(p pool) error { return p.libvirt.StoragePoolRefresh(p.it, 0) })
}

// StorageSocket is where the daemon is asked for storage pools.
func (l *Lab) StorageSocket() string { return l.cfg.StorageSocket }

// PoolName is the name of the lab's.
func (l *Lab) PoolName() string { return l.cfg.Pool }

// InPoolOf gives the lab the pool of another.
func (l *Lab) InPoolOf(other *Lab) *Lab {
	l.cfg.Pool, l.cfg.PoolDir = other.cfg.Pool, other.cfg.PoolDir
	return l
}

// DefinePool makes a pool of the lab's name as a user does.
func DefinePool(t *testing.T, l *Lab, dir string) (name string) {
	t.Helper()
	err := l.storage.call(t.Context(), "define", func(v *libvirt.Libvirt) error {
		text, err := (&libvirtxml.StoragePool{Type: "dir", Name: l.cfg.Pool, Target: &libvirtxml.StoragePoolTarget{Path: dir}}).Marshal()
		if err != nil {
			return err
		}
		_, err = v.StoragePoolDefineXML(text, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return l.cfg.Pool
}

// StartPool starts it.
func StartPool(t *testing.T, l *Lab) {
	t.Helper()
	err := l.inPool(t.Context(), "start", func(p pool) error { return p.libvirt.StoragePoolCreate(p.it, 0) })
	if err != nil {
		t.Fatal(err)
	}
}

// UndefinePool removes it.
func UndefinePool(t *testing.T, l *Lab) {
	t.Helper()
	err := l.inPool(context.Background(), "undefine", func(p pool) error {
		_ = p.libvirt.StoragePoolDestroy(p.it)
		return p.libvirt.StoragePoolUndefine(p.it)
	})
	if err != nil {
		t.Error(err)
	}
}
