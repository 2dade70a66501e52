// Package join gets one machine into a kubeadm cluster, from inside that machine: preflight, prepare, one watched attempt, clean, validate.
// It needs systemd, and kubeadm of the cluster's version or near. What needs the cluster's administrator (delete a Node, remove an etcd
// member, make a token) it does not do: it names the cause, and whoever holds those rights acts between attempts.
package join

import (
	"time"

	"k8slab/lab/symptom"
)

// Result is the verdict of one check.
type Result string

// Results, from best to worst. A warning never stops a join.
const (
	OK      Result = "ok"
	Warn    Result = "warn"
	Fixable Result = "fixable" // a repair is safe
	Blocked Result = "blocked"
)

// Check is one prerequisite and what was found.
type Check struct {
	ID       CheckID       `json:"id"`
	Result   Result        `json:"result"`
	Symptom  symptom.ID    `json:"symptom,omitempty"` // the cause, unless OK
	Reason   Reason        `json:"reason,omitempty"`
	Evidence string        `json:"evidence"`        // what was seen, redacted
	Hint     string        `json:"hint,omitempty"`  // what to do, with exact commands, unless OK
	Fixed    string        `json:"fixed,omitempty"` // what a repair did
	Elapsed  time.Duration `json:"elapsed"`
}

// Target is what this machine is to join, and as what. Checks whose fields are empty are not made.
type Target struct {
	Name           string   `json:"name"` // the Node's; "" is the host name
	ControlPlane   bool     `json:"controlPlane"`
	Endpoint       string   `json:"endpoint"` // HOST:PORT of the API server
	Token          string   `json:"-"`
	CACertHashes   []string `json:"-"`
	CertificateKey string   `json:"-"`
	Address        string   `json:"address"`   // this machine's IP in the cluster: node-ip and advertiseAddress; "" is the default route's
	CRISocket      string   `json:"criSocket"` // unix:///...; "" is containerd's
	Peers          []string `json:"peers"`     // IPs of the cluster's control planes
	Ignore         []string `json:"ignore"`    // kubeadm's ignorePreflightErrors, upper or lower case

	ImagePullPolicy string            `json:"imagePullPolicy,omitempty"` // kubeadm's; "" is IfNotPresent
	Known           map[string]string `json:"known,omitempty"`           // machine-id of each other machine, by name
}

// Outcome is the end of one attempt.
type Outcome struct {
	Joined   bool          `json:"joined"`             // and validated
	Already  bool          `json:"already,omitempty"`  // it was a healthy member: nothing was changed
	Symptom  symptom.ID    `json:"symptom,omitempty"`  // the cause, when not joined
	Evidence string        `json:"evidence,omitempty"` // the line or fact that proves it, redacted
	Hint     string        `json:"hint,omitempty"`
	Endpoint string        `json:"endpoint,omitempty"` // that it was to join at
	Phase    Phase         `json:"phase"`              // where it ended
	Finished bool          `json:"finished"`           // kubeadm ended by itself
	Killed   bool          `json:"killed,omitempty"`   // somebody else ended kubeadm
	ExitCode int           `json:"exitCode"`           // kubeadm's; -1 when it did not end or never ran
	Output   string        `json:"output,omitempty"`   // last lines of kubeadm's stdout and stderr, redacted
	Checks   []Check       `json:"checks,omitempty"`
	Elapsed  time.Duration `json:"elapsed"`
}
