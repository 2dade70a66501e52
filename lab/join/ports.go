package join

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8slab/lab/symptom"
)

// neededPorts are the TCP ports that kubeadm's components will listen on, and that others reach them on.
func neededPorts(t Target) []int {
	if t.ControlPlane {
		return []int{6443, 2379, 2380, 10250, 10257, 10259}
	}
	return []int{10250}
}

// ownPrograms are what an earlier join leaves running; the kernel cuts names to 15 characters.
var ownPrograms = []string{"kubelet", "kube-apiserver", "kube-controller", "kube-scheduler", "etcd"}

// listener is a process that listens on a port; its name is "" when it cannot be found.
type listener struct {
	port    int
	program string
	pid     int
}

func (l listener) String() string {
	if l.program == "" {
		return fmt.Sprintf("%d by an unknown process", l.port)
	}
	return fmt.Sprintf("%d by %s (pid %d)", l.port, l.program, l.pid)
}

// checkPorts looks for foreign programs on the needed ports. What an earlier join left running is for checkLeftovers. UDP 8472 has no
// listener to look for: the kernel itself serves it for flannel, and only two nodes together can show that packets arrive.
func checkPorts(_ context.Context, p *preflight) Check {
	strangers := slices.DeleteFunc(p.m.listeners(neededPorts(p.t)), func(l listener) bool {
		return slices.Contains(ownPrograms, l.program) || p.ignores(fmt.Sprintf("port-%d", l.port))
	})
	if len(strangers) > 0 {
		hint := "stop the process, or move it to another port: ss -ltnp"
		for _, l := range strangers {
			if service := p.m.serviceOf(l.pid); service != "" {
				hint = symptom.StopUnit.With(service) + "; or " + hint
			}
		}
		return blocked(symptom.PortInUse, hint, "in use: %s", join(strangers))
	}
	overlay := ""
	if p.m.MayBeFlannel() {
		overlay = "; UDP 8472 cannot be tested from here"
	}
	return ok("free of others: %s"+overlay, strings.Trim(fmt.Sprint(neededPorts(p.t)), "[]"))
}

// serviceOf is systemd's service that the process belongs to, "" when it is none.
func (m Machine) serviceOf(pid int) string {
	groups, _ := m.Read(fmt.Sprintf("/proc/%d/cgroup", pid))
	for line := range strings.Lines(groups) {
		if name := path.Base(strings.TrimSpace(line)); strings.HasSuffix(name, ".service") {
			return name
		}
	}
	return ""
}

// listeners finds who listens on any of the ports.
func (m Machine) listeners(ports []int) []listener {
	sockets := map[string]int{} // by inode
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := m.Read(table)
		for inode, port := range listeningSockets(text) {
			if slices.Contains(ports, port) {
				sockets[inode] = port
			}
		}
	}
	if len(sockets) == 0 {
		return nil
	}
	var found []listener
	seen := map[int]bool{}
	add := func(l listener) {
		if !seen[l.port] {
			seen[l.port] = true
			found = append(found, l)
		}
	}
	m.eachSocket(func(pid int, inode string) {
		if port, ok := sockets[inode]; ok {
			add(listener{port: port, pid: pid, program: m.Line(fmt.Sprintf("/proc/%d/comm", pid))})
		}
	})
	for _, port := range sockets {
		add(listener{port: port})
	}
	slices.SortFunc(found, func(a, b listener) int { return a.port - b.port })
	return found
}

// listeningSockets reads the kernel's table: "sl local_address rem_address st ... inode", port in hex, state 0A is listening.
func listeningSockets(table string) map[string]int {
	found := map[string]int{}
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[3] != "0A" {
			continue
		}
		raw, err := hex.DecodeString(fields[1][strings.LastIndexByte(fields[1], ':')+1:])
		if err == nil && len(raw) == 2 {
			found[fields[9]] = int(raw[0])<<8 | int(raw[1])
		}
	}
	return found
}

// eachSocket calls visit with each socket that each process has open.
func (m Machine) eachSocket(visit func(pid int, inode string)) {
	for _, name := range m.List("/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		dir := path.Join("/proc", name, "fd")
		for _, fd := range m.List(dir) {
			target, err := os.Readlink(m.Path(path.Join(dir, fd)))
			if inode, ok := strings.CutPrefix(target, "socket:["); ok && err == nil {
				visit(pid, strings.TrimSuffix(inode, "]"))
			}
		}
	}
}

// peerLimit bounds a connection to a peer: within a network it takes milliseconds.
const peerLimit = 1500 * time.Millisecond

// checkPeers connects to etcd's ports on every control plane, of which the joining member needs each one.
func checkPeers(ctx context.Context, p *preflight) Check {
	type target struct{ peer, port string }
	var targets []target
	for _, peer := range p.t.Peers {
		if peer != p.t.Address {
			targets = append(targets, target{peer, "2379"}, target{peer, "2380"})
		}
	}
	failures := make([]Check, len(targets))
	var wg sync.WaitGroup
	for i, to := range targets {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, peerLimit)
			defer cancel()
			address := net.JoinHostPort(to.peer, to.port)
			conn, err := p.m.Dial(ctx, "tcp", address)
			if err != nil {
				failures[i] = unreachable(address, err)
				return
			}
			_ = conn.Close()
		})
	}
	wg.Wait()
	var evidence []string
	for _, failure := range failures {
		if failure.Result != "" {
			evidence = append(evidence, failure.Evidence)
		}
	}
	if len(evidence) > 0 {
		return blocked(symptom.EtcdUnreachable, "on that control plane: crictl ps --name etcd; open TCP 2379 and 2380 between control planes", "%s", strings.Join(evidence, "; "))
	}
	return ok("2379 and 2380 answer on %d control planes", len(targets)/2)
}
