package join

import (
	"bufio"
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"k8slab/lab/symptom"
)

func checkHostname(_ context.Context, p *preflight) Check {
	wrong := invalidHostname(p.t.Name)
	switch own := p.memberName(); {
	case wrong == "":
		return ok("%s", p.t.Name)
	case own != "":
		return fixable(symptom.HostnameInvalid, "hostnamectl set-hostname "+own, "%s; its Node is %s", wrong, own)
	}
	return blocked(symptom.HostnameInvalid, "hostnamectl set-hostname NAME, of lower-case letters, digits and dashes", "%s", wrong)
}

// invalidHostname says why a machine cannot join under the name, "" if it can.
func invalidHostname(name string) string {
	switch {
	case name == "" || name == "(none)":
		return "the machine has no host name"
	case name == "localhost" || strings.HasPrefix(name, "localhost."):
		return fmt.Sprintf("the machine is named %s, as every machine is before it gets a name", name)
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Sprintf("%q: %s", name, problems[0])
	}
	return ""
}

// memberName is the name under which the machine has joined, "" if it has not, or under no valid one.
func (p *preflight) memberName() string {
	if name := p.m.nodeName(); p.m.Exists(kubeletConf) && invalidHostname(name) == "" {
		return name
	}
	return ""
}

// repairHostname names a member as its Node, until the machine starts again: then its own files name it.
func repairHostname(ctx context.Context, p *preflight) (string, error) {
	name := p.memberName()
	_, err := p.m.Run(ctx, "hostname", name)
	return "named the machine " + name, err
}

var machineIDShape = regexp.MustCompile(`^[0-9a-f]{32}$`)

func checkMachineID(_ context.Context, p *preflight) Check {
	id := p.m.Line("/etc/machine-id")
	hint := "rm -f /etc/machine-id /var/lib/dbus/machine-id; systemd-machine-id-setup; reboot"
	switch {
	case id == "" || id == "uninitialized":
		return blocked(symptom.DuplicateMachineIdentity, hint, "/etc/machine-id is missing or empty")
	case !machineIDShape.MatchString(id) || strings.Trim(id, "0") == "":
		return blocked(symptom.DuplicateMachineIdentity, hint, "/etc/machine-id is not 32 lower-case hex digits: %q", id)
	}
	for _, name := range sortedKeys(p.t.Known) {
		if p.t.Known[name] == id && name != p.t.Name {
			return blocked(symptom.DuplicateMachineIdentity, hint, "%s has the same machine-id %s: one is a copy of the other", name, id)
		}
	}
	return ok("%s", id)
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// emptyUUIDs are what firmware without a number of its own shows. Many thousand cheap boards have the last two.
var emptyUUIDs = []string{
	"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
	"03000200-0400-0500-0006-000700080009", "00020003-0004-0005-0006-000700080009",
}

var uuidShape = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// identity is what kubelet records of the machine in its Node, from the same files.
func (m Machine) identity() Identity {
	return Identity{Machine: m.Line("/etc/machine-id"), UUID: strings.ToLower(m.Line("/sys/class/dmi/id/product_uuid"))}
}

// checkProductUUID never blocks: kubelet only reports the number, and a container shows the number of its host.
func checkProductUUID(_ context.Context, p *preflight) Check {
	uuid := p.m.identity().UUID
	switch {
	case uuid == "":
		return ok("the firmware has none")
	case !uuidShape.MatchString(uuid) || slices.Contains(emptyUUIDs, uuid):
		return warn(symptom.DuplicateMachineIdentity, "set the system UUID in the firmware or in the virtual machine's definition",
			"product_uuid %s identifies no machine", uuid)
	}
	return ok("%s", uuid)
}

func checkAddress(_ context.Context, p *preflight) Check {
	hint := "use an address of this machine in the cluster's network: nodeRegistration.kubeletExtraArgs node-ip, localAPIEndpoint.advertiseAddress"
	address, err := netip.ParseAddr(p.t.Address)
	if err != nil {
		return blocked(symptom.AdvertiseAddressWrong, hint, "%q is not an IP address", p.t.Address)
	}
	address = address.Unmap()
	if address.IsLoopback() || address.IsUnspecified() || address.IsLinkLocalUnicast() || address.IsMulticast() {
		return blocked(symptom.AdvertiseAddressWrong, hint, "%s cannot be reached from other machines", address)
	}
	own := p.m.addresses()
	if len(own) > 0 && !slices.Contains(own, address) {
		return blocked(symptom.AdvertiseAddressWrong, hint, "%s is not an address of this machine, which has %s", address, join(own))
	}
	return ok("%s", address)
}

// addresses are the machine's own, without the loopback ones.
func (m Machine) addresses() []netip.Addr {
	trie, _ := m.Read("/proc/net/fib_trie")
	v6, _ := m.Read("/proc/net/if_inet6")
	all := append(localV4(trie), localV6(v6)...)
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.DeleteFunc(slices.Compact(all), netip.Addr.IsLoopback)
}

// localV4 reads the leaves of the kernel's routing trie: "|-- 10.0.0.5" followed by "/32 host LOCAL".
func localV4(trie string) []netip.Addr {
	var found []netip.Addr
	var leaf netip.Addr
	lines := bufio.NewScanner(strings.NewReader(trie))
	for lines.Scan() {
		text := strings.TrimSpace(lines.Text())
		if address, ok := strings.CutPrefix(text, "|-- "); ok {
			leaf, _ = netip.ParseAddr(address)
		} else if text == "/32 host LOCAL" && leaf.IsValid() {
			found = append(found, leaf)
		}
	}
	return found
}

// localV6 reads lines of 32 hex digits, interface number, prefix length, scope, flags and name.
func localV6(table string) []netip.Addr {
	var found []netip.Addr
	for line := range strings.Lines(table) {
		hex, _, _ := strings.Cut(line, " ")
		if len(hex) != 32 {
			continue
		}
		var groups []string
		for group := range slices.Chunk([]byte(hex), 4) {
			groups = append(groups, string(group))
		}
		if address, err := netip.ParseAddr(strings.Join(groups, ":")); err == nil {
			found = append(found, address)
		}
	}
	return found
}

func join[T interface{ String() string }](list []T) string {
	var words []string
	for _, item := range list {
		words = append(words, item.String())
	}
	return strings.Join(words, ", ")
}
