package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/digitalocean/go-libvirt"
)

// A container's disk has a path that libvirt takes, however long its own is.
func TestLoopPath(t *testing.T) {
	short := &Lab{cfg: Config{URI: "lxc:///system", Dir: "/x/machines", ID: "short"}}
	if got := short.loopPath("cp1"); got != "/x/machines/cp1/disk.img" {
		t.Errorf("got %s", got)
	}
	if err := short.linkLoops("cp1"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(short.loopDir()); err == nil {
		t.Error("a name was made that nobody needs")
	}

	long := &Lab{cfg: Config{URI: "lxc:///system", Dir: filepath.Join(t.TempDir(), strings.Repeat("long", 15)), ID: "0a1b2c3d-0a1b-4c2d-8e3f-0a1b2c3d4e5f"}}
	one, two := long.loopPath("cp1"), long.loopPath("cp2")
	if len(one) > longestLoop || one == two {
		t.Errorf("got %s and %s", one, two)
	}
	t.Cleanup(func() { _ = os.RemoveAll(long.loopDir()) })
	if err := os.MkdirAll(long.loopDir(), 0o700); err != nil {
		t.Logf("not made, because only root may: %v", err)
		return
	}
	if err := errors.Join(os.MkdirAll(long.dir("cp1"), 0o700), makeEmpty(t.Context(), long.extraPath("cp1", 0), 1)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := long.linkLoops("cp1"); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.Readlink(long.extraLoop("cp1", 0)); err != nil || got != long.extraPath("cp1", 0) || len(long.loops("cp1")) != 2 {
		t.Errorf("its empty disk is at %s, %v", got, err)
	}
	if got, err := os.Readlink(one); err != nil || got != long.diskPath("cp1") {
		t.Errorf("it leads to %s, %v", got, err)
	}
	if err := long.DeleteAllDisks(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(one); err == nil {
		t.Error("it is left")
	}
}

// A container whose first process died in libvirt's code is started again, and not for ever; what libvirt refuses is not asked again.
func TestAgain(t *testing.T) {
	died := fmt.Errorf("libvirt: start x: %w", libvirt.Error{Code: uint32(libvirt.ErrInternalError), Message: "internal error: Timed out while reading log output: double free or corruption (out)"})
	refused := fmt.Errorf("libvirt: start x: %w", libvirt.Error{Code: uint32(libvirt.ErrOperationInvalid), Message: "domain is already running"})
	for name, tt := range map[string]struct {
		answers []error
		want    error
		asked   int
	}{
		"it lives":        {[]error{nil}, nil, 1},
		"it died twice":   {[]error{died, died, nil}, nil, 3},
		"it always dies":  {[]error{died, died, died, nil}, died, 3},
		"libvirt refuses": {[]error{refused, nil}, refused, 1},
	} {
		asked := 0
		err := again(func() error { asked++; return tt.answers[asked-1] })
		if !errors.Is(err, tt.want) || asked != tt.asked {
			t.Errorf("%s: asked %d times: %v", name, asked, err)
		}
	}
}
