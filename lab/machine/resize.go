package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// ResizesLive tells whether machines of the URI get another size while they run. Containers do where cgroups are v1; on v2 the node's cgroup
// is not libvirt's, and gets its limits when the container starts.
func ResizesLive(uri string) bool {
	_, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers"))
	return strings.HasPrefix(uri, "lxc:") && errors.Is(err, fs.ErrNotExist)
}

// Resize gives a machine that exists the processors and the memory of the Spec. restart tells that it runs, and has them only when it starts
// the next time. A machine that has them already is left as it is.
func (l *Lab) Resize(ctx context.Context, spec Spec) (restart bool, err error) {
	dom, state, err := l.lookup(ctx, spec.Node)
	if err != nil {
		return false, err
	}
	if state == Absent {
		return false, fmt.Errorf("the machine of %s %w", spec.Node, errAbsent)
	}
	described, err := l.description(ctx, dom, libvirt.DomainXMLInactive)
	if err != nil {
		return false, err
	}
	if !l.resized(described, spec) {
		text, err := described.Marshal()
		if err != nil {
			return false, fmt.Errorf("%s: domain XML: %w", spec.Node, err)
		}
		if state != Off && ResizesLive(l.cfg.URI) { // before it is written down: after an interruption it is done again
			if err := l.limit(ctx, dom, spec); err != nil {
				return false, err
			}
		}
		err = l.change(ctx, "resize "+dom.Name, func(v *libvirt.Libvirt) error {
			_, err := v.DomainDefineXML(text)
			return err
		})
		if err != nil {
			return false, err
		}
	}
	if state == Off || ResizesLive(l.cfg.URI) {
		return false, nil
	}
	runs, err := l.description(ctx, dom, 0)
	return err == nil && !l.resized(runs, spec), err
}

func (l *Lab) description(ctx context.Context, dom libvirt.Domain, flags libvirt.DomainXMLFlags) (*libvirtxml.Domain, error) {
	d := &libvirtxml.Domain{}
	err := l.domains.call(ctx, "description of "+dom.Name, func(v *libvirt.Libvirt) error {
		text, err := v.DomainGetXMLDesc(dom, flags)
		if err == nil {
			err = d.Unmarshal(text)
		}
		return err
	})
	return d, err
}

// resized describes a machine with the size of the Spec, and tells whether it had that before.
func (l *Lab) resized(d *libvirtxml.Domain, spec Spec) (same bool) {
	var sized libvirtxml.Domain
	l.size(&sized, spec)
	same = d.Memory != nil && d.VCPU != nil && kibibytes(d.Memory) == kibibytes(sized.Memory) && d.VCPU.Value == sized.VCPU.Value
	d.Memory, d.CurrentMemory, d.VCPU = sized.Memory, nil, sized.VCPU
	if sized.CPUTune != nil {
		d.CPUTune = sized.CPUTune
	}
	return same
}

func kibibytes(m *libvirtxml.DomainMemory) uint {
	if m.Unit == "MiB" {
		return m.Value << 10
	}
	return m.Value // libvirt's own unit
}

// limit changes the limits of a container that runs.
func (l *Lab) limit(ctx context.Context, dom libvirt.Domain, spec Spec) error {
	err := l.change(ctx, "limit memory of "+dom.Name, func(v *libvirt.Libvirt) error {
		limit := libvirt.TypedParam{Field: "hard_limit", Value: *libvirt.NewTypedParamValueUllong(uint64(spec.Memory) << 10)}
		return v.DomainSetMemoryParameters(dom, []libvirt.TypedParam{limit}, uint32(libvirt.DomainAffectLive))
	})
	if err != nil {
		return fmt.Errorf("%w; next: if it uses more memory than that, stop some of its pods, or give it more in cluster.yaml", err)
	}
	return l.change(ctx, "limit processors of "+dom.Name, func(v *libvirt.Libvirt) error {
		quota := libvirt.TypedParam{Field: "vcpu_quota", Value: *libvirt.NewTypedParamValueLlong(int64(spec.CPUs) * quotaPeriod)}
		return v.DomainSetSchedulerParametersFlags(dom, []libvirt.TypedParam{quota}, uint32(libvirt.DomainAffectLive))
	})
}
