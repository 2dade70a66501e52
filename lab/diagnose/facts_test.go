package diagnose

import (
	"fmt"
	"time"

	"k8slab/lab/diagnose/fact"
	joining "k8slab/lab/join"
	"k8slab/lab/kube"
)

var midday = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// healthyFacts are those of a healthy cluster of three control planes and some workers.
func healthyFacts(workers int) fact.Facts {
	f := fact.Facts{Lab: "lab", Time: midday, Endpoint: "192.0.2.10:6443"}
	for i := range 3 {
		f.Machines = append(f.Machines, healthyMachine(fmt.Sprintf("cp%d", i+1), roleControlPlane, 11+i))
	}
	for i := range workers {
		f.Machines = append(f.Machines, healthyMachine(fmt.Sprintf("w%d", i+1), "worker", 21+i))
	}
	f.API = fact.API{Via: "cp1", DaemonSets: map[string]fact.DaemonSet{
		"kube-flannel/flannel": {Ready: 3 + workers, Want: 3 + workers}, "kube-system/kube-proxy": {Ready: 3 + workers, Want: 3 + workers}}}
	f.Etcd.Via = "cp1"
	for i := range f.Machines {
		m := &f.Machines[i]
		f.API.Nodes = append(f.API.Nodes, kube.Node{
			Name: m.Name, Ready: true, ReadyStatus: "True", IP: m.IP, KubeletVersion: "v1.36.3", MachineID: "id-" + m.Name,
			PodCIDR: fmt.Sprintf("10.244.%s.0/24", m.IP[len("192.0.2."):]), Created: midday.Add(-time.Hour),
		})
		for k := range f.Machines {
			if to := f.Machines[k]; k != i {
				m.Inside.Dials = append(m.Inside.Dials, dialsTo(m.Role, to)...)
				far := fmt.Sprintf("10.244.%s.0", to.IP[len("192.0.2."):])
				m.Inside.Overlay = append(m.Inside.Overlay, fact.Dial{To: far, Port: 10250, Proto: "tcp", Result: "open"})
			}
		}
		if m.Role == roleControlPlane {
			f.Etcd.Members = append(f.Etcd.Members, fact.Member{
				ID: uint64(100 + i), Name: m.Name, PeerURLs: []string{peerURL(m)}, Started: true, Healthy: true, Leader: i == 0, LeaderID: 100, RaftIndex: 5000,
			})
		}
	}
	return f
}

func dialsTo(role string, to fact.Machine) []fact.Dial {
	dials := []fact.Dial{{To: to.Name, Port: 8472, Proto: "udp", Result: "unknown"}}
	add := func(ports ...int) {
		for _, p := range ports {
			dials = append(dials, fact.Dial{To: to.Name, Port: p, Proto: "tcp", Result: "open", Millis: 0.3})
		}
	}
	if to.Role == roleControlPlane {
		add(6443)
	}
	if role == roleControlPlane {
		add(10250)
		if to.Role == roleControlPlane {
			add(2379, 2380)
		}
	}
	return dials
}

func healthyMachine(name, role string, host int) fact.Machine {
	n := &fact.Node{
		Time:   midday,
		Facts:  joining.Facts{Joined: true, Dirty: true, Role: role, Runtime: "containerd", RuntimeActive: "active", KubeadmUnit: "inactive", JoinUnit: "inactive"},
		Checks: []joining.Check{}, Errors: map[string]string{},
		Units: map[string]fact.Unit{
			"kubelet":    {Load: "loaded", Active: "active", Started: midday.Add(-time.Hour), Since: midday.Add(-time.Hour)},
			"containerd": {Load: "loaded", Active: "active", Started: midday.Add(-time.Hour), Since: midday.Add(-time.Hour)},
		},
		Network: []string{"flannel", "portmap"}, Plugins: []string{"bridge", "flannel", "host-local", "loopback", "portmap"},
		SubnetEnv:  map[string]string{"FLANNEL_SUBNET": fmt.Sprintf("10.244.%d.1/24", host)},
		Links:      []fact.Link{{Name: "cni0", MTU: 1450, Up: true, Addresses: []string{fmt.Sprintf("10.244.%d.1/24", host), "fe80::1/64"}}},
		Filesystem: joining.Space{Bytes: 100, FreeBytes: 80}, Memory: fact.Memory{Total: 100, Available: 60},
		Certificates: []fact.Certificate{{File: "/etc/kubernetes/pki/apiserver.crt", NotBefore: midday.Add(-time.Hour), NotAfter: midday.Add(8760 * time.Hour)}},
	}
	n.Facts.Kubelet.Active = "active"
	for _, id := range []joining.CheckID{"hostname", "disk", "swap", "kernel-modules", "sysctls", "kube-binaries", "kubelet-unit", "cri", "image-filesystem",
		"runtime-version", "ports", "cni-plugins", "firewall", "proxy", "endpoint-name", "endpoint-connect", "clock", "cni-config"} {
		n.Checks = append(n.Checks, joining.Check{ID: id, Result: joining.OK, Evidence: "fine"})
	}
	members := []joining.CheckID{"kubelet", "cluster", "node"}
	if role == roleControlPlane {
		n.Facts.EtcdManifest, n.Facts.EtcdData = true, true
		n.Manifests = []string{"etcd.yaml", "kube-apiserver.yaml", "kube-controller-manager.yaml", "kube-scheduler.yaml"}
		n.PeerURL = fmt.Sprintf("https://192.0.2.%d:2380", host)
		n.Etcd = &fact.EtcdDisk{FsyncP99: 0.032, RecentSyncs: 4, RecentMedian: 0.004}
		members = append(members, "etcd-member", "api-server", "controller-manager", "scheduler")
	}
	for _, id := range members {
		n.Member = append(n.Member, joining.Check{ID: id, Result: joining.OK, Evidence: "fine"})
	}
	return fact.Machine{Name: name, Role: role, IP: fmt.Sprintf("192.0.2.%d", host), State: stateRunning, Sent: midday, Received: midday.Add(time.Second), Inside: n}
}

// fail makes a check of the machine say what is wrong.
func fail(m *fact.Machine, c joining.Check) {
	for _, list := range [][]joining.Check{m.Inside.Checks, m.Inside.Member} {
		for i := range list {
			if list[i].ID == c.ID {
				list[i] = c
				return
			}
		}
	}
	m.Inside.Checks = append(m.Inside.Checks, c)
}

// journal gives the machine a text, whose lines were written at the times before midday.
func journal(m *fact.Machine, name string, lines ...any) {
	text := ""
	for i := 0; i < len(lines); i += 2 {
		at := midday.Add(-lines[i].(time.Duration))
		text += fmt.Sprintf("%s %s %s[7]: %s\n", at.Format("2006-01-02T15:04:05-0700"), m.Name, name, lines[i+1])
	}
	m.Inside.Texts = append(m.Inside.Texts, fact.Text{Name: name, Text: text})
}
