package fact

import (
	"net"
	"strings"
)

// readLinks are the interfaces of this machine, without those of pods.
func readLinks() ([]Link, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var links []Link
	for _, i := range interfaces {
		if strings.HasPrefix(i.Name, "veth") {
			continue // a pod's
		}
		l := Link{Name: i.Name, MTU: i.MTU, Up: i.Flags&net.FlagUp != 0}
		addresses, _ := i.Addrs() // a link that has just gone has none
		for _, a := range addresses {
			l.Addresses = append(l.Addresses, a.String())
		}
		links = append(links, l)
	}
	return links, nil
}
