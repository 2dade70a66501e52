//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("an object of the lab's name that the lab did not make", Label("ci"), Serial, func() {
	It("is a domain: up refuses and leaves it as it is", func(ctx SpecContext) {
		l := useLab("e2e-domain", 47, 1, 0)
		l.must(ctx, "up", "--until", "network")
		l.define(ctx, "define", l.foreignDomain(ctx))
		then := l.virsh(ctx, "dumpxml", l.name+"-cp1")
		l.expectRefusal(ctx, `domain "e2e-domain-cp1"`)
		Expect(l.virsh(ctx, "dumpxml", l.name+"-cp1")).To(Equal(then))
		l.expectDownSpares(ctx, func() string { return l.virsh(ctx, "dumpxml", l.name+"-cp1") })
	}, SpecTimeout(2*time.Minute))

	It("is a network: up refuses and leaves it as it is", func(ctx SpecContext) {
		l := useLab("e2e-network", 48, 1, 0)
		l.must(ctx, "up", "--until", "network")
		l.virsh(ctx, "net-destroy", l.name)
		l.virsh(ctx, "net-undefine", l.name)
		l.define(ctx, "net-define", "<network><name>"+l.name+"</name><bridge name='e2eforeign'/></network>")
		then := l.virsh(ctx, "net-dumpxml", l.name)
		l.expectRefusal(ctx, `network "e2e-network"`)
		Expect(l.virsh(ctx, "net-dumpxml", l.name)).To(Equal(then))
		l.expectDownSpares(ctx, func() string { return l.virsh(ctx, "net-dumpxml", l.name) })
	}, SpecTimeout(2*time.Minute))
})

func (l *lab) foreignDomain(ctx context.Context) string {
	GinkgoHelper()
	kind, system := "lxc", "<type>exe</type><init>/bin/true</init>"
	if strings.HasPrefix(l.uri(ctx), "qemu:") {
		kind, system = "qemu", "<type>hvm</type>"
	}
	return "<domain type='" + kind + "'><name>" + l.name + "-cp1</name><memory unit='MiB'>64</memory><os>" + system + "</os></domain>"
}

// define gives virsh the XML in a file, which must be where the daemon's namespaces see it.
func (l *lab) define(ctx context.Context, verb, xml string) {
	GinkgoHelper()
	file := filepath.Join(suite.home, "e2e", l.name+".xml")
	Expect(os.WriteFile(file, []byte(xml), 0o600)).To(Succeed())
	l.virsh(ctx, verb, file)
}

func (l *lab) expectRefusal(ctx context.Context, object string) {
	GinkgoHelper()
	r := l.run(ctx, "up")
	Expect(r.code).To(Equal(1), "up: %s", r)
	Expect(r.stderr).To(And(ContainSubstring(object), ContainSubstring("that this lab did not make"), ContainSubstring("nothing was changed")))
}

// expectDownSpares takes the lab down. With a daemon of the lab's own everything in it ends with it, so that the object is gone then; what
// must not happen is that down deletes it. With the computer's daemon the object must still be there.
func (l *lab) expectDownSpares(ctx context.Context, object func() string) {
	GinkgoHelper()
	own, then := l.daemonPID() != 0, object()
	r := l.run(ctx, "down", "-o", "json")
	Expect(r.code).To(BeZero(), "down: %s", r)
	Expect(l.dir()).NotTo(BeADirectory())
	for line := range strings.Lines(r.stdout) {
		Expect(parseEvent(line).Phase).NotTo(Equal("delete"), "down deletes a machine that is not the lab's")
	}
	if !own {
		l.must(ctx, "up", "--until", "image") // virsh needs a lab to go through
		Expect(object()).To(Equal(then))
	}
}
