package machine

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"

	"github.com/digitalocean/go-libvirt"
)

// Spec is one machine.
type Spec struct {
	Node      string
	MachineID string // systemd's
	CPUs      int
	Memory    int    // MiB
	Disk      int    // GiB
	Disks     []int  // GiB, of empty ones beside it
	Seed      string // directory of the node's own files
	Boot      Boot
}

// Boot is what a machine starts from: Root for a container, the rest for a virtual machine. Without a kernel Base is a stock image, whose
// own boot loader the firmware starts, and the seed is for cloud-init.
type Boot struct {
	Root                          string
	Base, Kernel, Initrd, Cmdline string
	ID                            string // of the content: the same files have the same ID
}

func (b Boot) stock() bool { return b.Kernel == "" }

// ForeignError is an object of the lab's name that the lab did not make.
type ForeignError struct{ Kind, Name, Owner string }

func (e *ForeignError) Error() string {
	owner := "it carries no mark of a lab"
	if e.Owner != "" {
		owner = fmt.Sprintf("it belongs to another lab called %q", e.Owner)
	}
	return fmt.Sprintf("libvirt has a %s %q that this lab did not make (%s): nothing was changed; choose another `name` in cluster.yaml, or remove the %s yourself",
		e.Kind, e.Name, owner, e.Kind)
}

// mark says in a domain's metadata whose the domain is.
type mark struct {
	XMLName xml.Name `xml:"https://k8slab/ machine"`
	Lab     string   `xml:"lab,attr"`
	ID      string   `xml:"id,attr"`
	Node    string   `xml:"node,attr"`
	Maker   Maker    `xml:"-"`
}

const markNamespace = "https://k8slab/"

func (l *Lab) mark(ctx context.Context, dom libvirt.Domain) (m mark, err error) {
	var text string
	err = l.domains.call(ctx, "metadata of "+dom.Name, func(v *libvirt.Libvirt) (err error) {
		text, err = v.DomainGetMetadata(dom, int32(libvirt.DomainMetadataElement), libvirt.OptString{markNamespace}, 0)
		return err
	})
	if is(err, libvirt.ErrNoDomainMetadata) {
		return l.vagrantMark(ctx, dom)
	}
	if err != nil {
		return mark{}, err
	}
	// libvirt returns the element without the namespace that it was stored under.
	var bare struct {
		Lab  string `xml:"lab,attr"`
		ID   string `xml:"id,attr"`
		Node string `xml:"node,attr"`
	}
	if err := xml.Unmarshal([]byte(text), &bare); err != nil {
		return mark{}, errors.Join(fmt.Errorf("metadata of %s", dom.Name), err)
	}
	return mark{Lab: bare.Lab, ID: bare.ID, Node: bare.Node}, nil
}

func uuidString(u libvirt.UUID) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}
