// Package fact is what is known of a cluster before anything is judged, as JSON, and the collecting that happens inside a node. What could
// not be read is a fact too: an error's text beside the value. It changes nothing, but for a pod sandbox that it makes and removes again.
package fact

import (
	"slices"
	"time"

	"k8slab/lab/etcd"
	"k8slab/lab/event"
	"k8slab/lab/join"
	"k8slab/lab/kube"
)

// Facts are everything that a judgement of a live cluster is made from.
type Facts struct {
	Lab      string        `json:"lab"`
	Time     time.Time     `json:"time"`  // the host's clock when the collecting began
	Since    time.Duration `json:"since"` // how far back the texts were asked for; 0 is the last boot
	Endpoint string        `json:"endpoint"`
	Uplink   bool          `json:"uplink,omitempty"`  // nodes reach what is outside of the cluster
	Upgrade  string        `json:"upgrade,omitempty"` // what is known of one that has begun and not ended
	Part     bool          `json:"part,omitempty"`    // only some of the lab's machines were asked
	Machines []Machine     `json:"machines"`
	API      API           `json:"api"`
	Etcd     Etcd          `json:"etcd"`
	Proof    []Organ       `json:"proof,omitempty"` // what must hold in a healthy cluster
}

// Machine is one machine of the lab as its host sees it, and what it says of itself.
type Machine struct {
	Name       string    `json:"name"`
	Role       string    `json:"role"` // that it is to have: control-plane or worker
	IP         string    `json:"ip"`
	State      string    `json:"state"` // the domain's: running, paused, off, crashed, absent
	StateError string    `json:"state_error,omitempty"`
	SSH        string    `json:"ssh,omitempty"`        // why it does not answer
	Labnode    string    `json:"labnode,omitempty"`    // why it answers over SSH and could not collect
	NoLabnode  bool      `json:"no_labnode,omitempty"` // its labnode is not a program that runs
	Console    string    `json:"console,omitempty"`    // its last words, where SSH does not answer
	Sent       time.Time `json:"sent"`                 // by the host's clock, when it was asked and when it had answered
	Received   time.Time `json:"received"`
	Inside     *Node     `json:"inside,omitempty"` // nil when it did not answer
	Late       bool      `json:"-"`                // it did not answer in its time, and might have with more
}

// Machine finds a machine by its name, nil when there is none.
func (f *Facts) Machine(name string) *Machine {
	i := slices.IndexFunc(f.Machines, func(m Machine) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Machines[i]
}

// ByName finds machines by their names; of several of one name the first.
func (f *Facts) ByName() map[string]*Machine {
	all := make(map[string]*Machine, len(f.Machines))
	for i := range f.Machines {
		if m := &f.Machines[i]; all[m.Name] == nil {
			all[m.Name] = m
		}
	}
	return all
}

// WithoutTexts are the facts without the journals and logs; the original keeps them.
func (f Facts) WithoutTexts() Facts {
	f.Machines = slices.Clone(f.Machines)
	for i, m := range f.Machines {
		if m.Inside != nil {
			inside := *m.Inside
			inside.Texts = nil
			f.Machines[i].Inside = &inside
		}
	}
	return f
}

// Node is what a machine says of itself.
type Node struct {
	Time         time.Time         `json:"time"`    // its clock when it began
	Elapsed      float64           `json:"elapsed"` // seconds that the collecting took
	Facts        join.Facts        `json:"facts"`   // whether it joined, what runs, how its last join ended
	Checks       []join.Check      `json:"checks"`  // what holds on any machine, and the way to the API server
	Member       []join.Check      `json:"member"`  // what holds on a member; empty when it never joined
	Units        map[string]Unit   `json:"units"`   // by name, without ".service"
	Flags        []string          `json:"flags"`   // kubelet's real command line
	Certificates []Certificate     `json:"certificates,omitempty"`
	Dials        []Dial            `json:"dials,omitempty"`   // to its peers
	Overlay      []Dial            `json:"overlay,omitempty"` // through flannel\'s tunnels; To is the far end\'s address in the pod network
	Filesystem   join.Space        `json:"filesystem"`        // of /var/lib
	Memory       Memory            `json:"memory"`
	Etcd         *EtcdDisk         `json:"etcd,omitempty"` // nil where none runs
	PeerURL      string            `json:"peer_url,omitempty"`
	Links        []Link            `json:"links,omitempty"`
	SubnetEnv    map[string]string `json:"subnet_env"` // of flannel, nil without
	Network      []string          `json:"network"`    // plugins that the CNI configuration in use calls
	Plugins      []string          `json:"plugins"`    // that the runtime finds, mostly in /opt/cni/bin
	Manifests    []string          `json:"manifests,omitempty"`
	Resolv       string            `json:"resolv,omitempty"`
	Containerd   string            `json:"containerd,omitempty"` // its configuration
	Containers   []join.Container  `json:"containers,omitempty"`
	Organs       []Organ           `json:"organs,omitempty"`  // of a member
	Files        []Difference      `json:"files,omitempty"`   // that are not as the machine's image made them
	Records      []event.Event     `json:"records,omitempty"` // of the join engine's last series
	Texts        []Text            `json:"texts,omitempty"`
	Errors       map[string]string `json:"errors,omitempty"` // what could not be read, and why
}

// Unit is a service as systemd knows it.
type Unit struct {
	Load    string    `json:"load"`
	Active  string    `json:"active"`
	Sub     string    `json:"sub"`
	Result  string    `json:"result,omitempty"`
	Since   time.Time `json:"since"`          // of its present state
	Started time.Time `json:"started"`        // when its present or last run began
	Boot    string    `json:"boot,omitempty"` // whether it starts with the machine: enabled, disabled, masked or another of systemd's words
}

// Certificate is one of a node's own.
type Certificate struct {
	File      string    `json:"file"`
	Subject   string    `json:"subject"`
	NotBefore time.Time `json:"not_before"`
	NotAfter  time.Time `json:"not_after"`
}

// Dial is an attempt to connect to a peer's port.
type Dial struct {
	To     string  `json:"to"`
	Port   int     `json:"port"`
	Proto  string  `json:"proto"`
	Result string  `json:"result"` // open, refused, timeout, unreachable or unknown
	Millis float64 `json:"millis"`
}

// Memory is of the machine, in bytes.
type Memory struct {
	Total     uint64 `json:"total"`
	Available uint64 `json:"available"`
}

// EtcdDisk is what the local etcd measured of its own disk and leader.
type EtcdDisk struct {
	FsyncP99      float64 `json:"fsync_p99"`     // seconds, since it started
	RecentSyncs   uint64  `json:"recent_syncs"`  // during the collecting
	RecentMedian  float64 `json:"recent_median"` // seconds, of those
	LeaderChanges uint64  `json:"leader_changes"`
}

// Link is a network interface.
type Link struct {
	Name      string   `json:"name"`
	MTU       int      `json:"mtu"`
	Up        bool     `json:"up"`
	Addresses []string `json:"addresses,omitempty"`
}

// Text is a journal or a log, its end where it is long. Its lines begin with their time.
type Text struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// API is what the API server says of the cluster.
type API struct {
	Via        string               `json:"via,omitempty"`   // the control plane through whose API server this was asked
	Error      string               `json:"error,omitempty"` // why nobody answers
	Ready      string               `json:"ready,omitempty"` // why it says that it is not
	Nodes      []kube.Node          `json:"nodes,omitempty"`
	Servers    map[string]string    `json:"servers,omitempty"`    // the version of each control plane's API server, by its node
	Pods       []kube.Pod           `json:"pods,omitempty"`       // of the cluster's own namespaces those that are not ready, of all those with a strange address
	DaemonSets map[string]DaemonSet `json:"daemonsets,omitempty"` // by namespace/name
	CSRs       []kube.CSR           `json:"csrs,omitempty"`
	Leases     map[string]time.Time `json:"leases,omitempty"` // when each Node's was renewed
	Tokens     []kube.TokenLife     `json:"tokens,omitempty"`
	Events     []string             `json:"events,omitempty"`     // warnings, newest last
	Needs      []kube.JoinNeed      `json:"needs,omitempty"`      // what the cluster lacks for joins
	Documents  []kube.WrongDocument `json:"documents,omitempty"`  // of the cluster's own that do not say what they must
	Rights     []kube.LostRight     `json:"rights,omitempty"`     // that the cluster's own parts lack
	Denied     string               `json:"denied,omitempty"`     // what the administrator's credentials may not do
	Rejections []kube.Rejection     `json:"rejections,omitempty"` // what admission keeps out
	Leaders    map[string]Leader    `json:"leaders,omitempty"`    // of the components that elect one
	Errors     map[string]string    `json:"errors,omitempty"`
}

// Leader is the instance of a component that leads.
type Leader struct {
	Holder  string    `json:"holder"`  // its identity, which begins with its node's name
	Renewed time.Time `json:"renewed"` // its Lease, by its machine's clock; zero for no Lease
}

// DaemonSet counts the pods of one.
type DaemonSet struct {
	Ready   int    `json:"ready"`
	Want    int    `json:"want"`
	Missing bool   `json:"missing,omitempty"` // the API server has none of the name
	Error   string `json:"error,omitempty"`
}

// Etcd is what its members say.
type Etcd struct {
	Via     string   `json:"via,omitempty"`
	Error   string   `json:"error,omitempty"`  // why no member answers
	Quorum  string   `json:"quorum,omitempty"` // why a list by quorum failed, where members are those that one remembers
	Members []Member `json:"members,omitempty"`
}

// Member is one of etcd's members.
type Member struct {
	ID         uint64     `json:"id"`
	Name       string     `json:"name"`
	PeerURLs   []string   `json:"peer_urls"`
	ClientURLs []string   `json:"client_urls"`
	Learner    bool       `json:"learner"`
	Started    bool       `json:"started"`
	State      etcd.State `json:"state,omitempty"`
	Healthy    bool       `json:"healthy"`
	Leader     bool       `json:"leader"`
	LeaderID   uint64     `json:"leader_id"`
	RaftIndex  uint64     `json:"raft_index"`
	Rate       float64    `json:"rate"`  // entries per second of a learner
	Ready      bool       `json:"ready"` // a learner that etcd would promote
	DBSize     int64      `json:"db_size"`
	Version    string     `json:"version,omitempty"`
	Alarms     []string   `json:"alarms,omitempty"`
	Error      string     `json:"error,omitempty"`
}
