package join

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Environment is what the environment variables of a join say.
type Environment struct {
	ControlPlane string        // MASTER_IP: the API server's host when the command or configuration names none
	Timeout      time.Duration // JOIN_TIMEOUT, seconds: kubeadm's time-out for the TLS bootstrap. 0 when not set
	Attempts     int           // MAX_RETRIES: attempts in all. 3 when not set
}

const (
	defaultTLSBootstrap = 300 * time.Second
	defaultAttempts     = 3
	defaultAPIPort      = "6443"
)

// ReadEnvironment reads MASTER_IP, JOIN_TIMEOUT and MAX_RETRIES. Its error names each bad value.
func ReadEnvironment(getenv func(string) string) (Environment, error) {
	e := Environment{ControlPlane: getenv("MASTER_IP"), Attempts: defaultAttempts}
	var problems []error
	if s := getenv("JOIN_TIMEOUT"); s != "" {
		seconds, err := strconv.Atoi(s)
		if err != nil || seconds < 1 {
			problems = append(problems, fmt.Errorf("JOIN_TIMEOUT=%q: give a number of seconds, at least 1", s))
		}
		e.Timeout = time.Duration(seconds) * time.Second
	}
	if s := getenv("MAX_RETRIES"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			problems = append(problems, fmt.Errorf("MAX_RETRIES=%q: give the number of attempts, at least 1", s))
		}
		e.Attempts = n
	}
	if strings.ContainsAny(e.ControlPlane, " /@") {
		problems = append(problems, fmt.Errorf("MASTER_IP=%q: give a host name or an IP address", e.ControlPlane))
	}
	return e, errors.Join(problems...)
}

// Configuration is a JoinConfiguration that this package completes and reads.
type Configuration struct {
	object object
}

// ReadConfiguration reads a kubeadm configuration, which must be one JoinConfiguration of v1beta4, and completes it with the environment:
// the API server's endpoint, its port, and every time-out. Its errors never repeat a secret.
func ReadConfiguration(text []byte, e Environment) (*Configuration, Target, error) {
	c, err := findConfiguration(text)
	if err == nil {
		err = c.complete(e)
	}
	if err != nil {
		return nil, Target{}, err
	}
	t, err := c.target()
	return c, t, err
}

func (c *Configuration) target() (Target, error) {
	text, err := c.YAML()
	if err != nil {
		return Target{}, err
	}
	return ParseConfig(text)
}

// findConfiguration finds the JoinConfiguration among the documents. Others are refused: kubeadm join would ignore them.
func findConfiguration(text []byte) (*Configuration, error) {
	var found object
	for _, document := range bytes.Split(append([]byte("\n"), text...), []byte("\n---")) {
		var o object
		if err := yaml.Unmarshal(document, &o); err != nil {
			// The decoder's error may repeat what it read, and that has secrets.
			return nil, errors.New("the configuration is not valid YAML")
		}
		if len(o) == 0 {
			continue
		}
		kind, _ := o["kind"].(string)
		if version, _ := o["apiVersion"].(string); kind != "JoinConfiguration" || version != configAPI {
			return nil, fmt.Errorf("the configuration has a %s of %s; it takes one JoinConfiguration of %s (kubeadm 1.31 or newer)", kind, version, configAPI)
		}
		if found != nil {
			return nil, errors.New("the configuration has two JoinConfigurations")
		}
		found = o
	}
	if found == nil {
		return nil, errors.New("the configuration is empty")
	}
	return &Configuration{found}, nil
}

// child is the mapping below a key, made when it is absent.
func child(o object, key string) object {
	c, ok := o[key].(object)
	if !ok {
		c = object{}
		o[key] = c
	}
	return c
}

func str(o object, key string) string {
	s, _ := o[key].(string)
	return s
}

// complete sets what is absent: the API server's endpoint, its port, and every time-out, so that the budget around kubeadm is known to be
// above their sum. The values are kubeadm's defaults, except that JOIN_TIMEOUT replaces the one of the TLS bootstrap.
func (c *Configuration) complete(e Environment) error {
	if by, ok := child(c.object, "discovery")["bootstrapToken"].(object); ok {
		endpoint := cmp.Or(str(by, "apiServerEndpoint"), e.ControlPlane)
		if endpoint == "" {
			return errors.New("the API server's HOST:PORT is missing; give it in the join command, or the host as MASTER_IP")
		}
		if _, _, err := net.SplitHostPort(endpoint); err != nil {
			endpoint = net.JoinHostPort(strings.Trim(endpoint, "[]"), defaultAPIPort)
		}
		by["apiServerEndpoint"] = endpoint
	}
	timeouts := child(c.object, "timeouts")
	for _, t := range joinTimeouts {
		if _, ok := timeouts[t.name]; !ok {
			timeouts[t.name] = t.preset.String()
		}
	}
	if e.Timeout > 0 {
		timeouts["tlsBootstrap"] = e.Timeout.String()
	}
	_, err := c.budget()
	return err
}

// joinTimeouts are the time-outs of kubeadm join (v1beta4), and how often each can pass on a control plane and on a worker. etcd's is
// for adding the learner, for its start and for its promotion each.
var joinTimeouts = []struct {
	name                 string
	preset               time.Duration
	controlPlane, worker int
}{
	{"discovery", 5 * time.Minute, 1, 1},
	{"kubernetesAPICall", time.Minute, 2, 1},
	{"etcdAPICall", 2 * time.Minute, 4, 0}, // also the check of the cluster before
	{"kubeletHealthCheck", 4 * time.Minute, 1, 1},
	{"tlsBootstrap", defaultTLSBootstrap, 1, 1},
	{"controlPlaneComponentHealthCheck", 4 * time.Minute, 1, 0},
}

const (
	// etcdAvailable is kubeadm's last wait for etcd: 8 times 5 s, not configurable.
	etcdAvailable = 40 * time.Second
	// pullBudget is for what has no time-out: preflight, images, writing certificates.
	pullBudget = 5 * time.Minute
)

// budget is longer than kubeadm can take by its own time-outs.
func (c *Configuration) budget() (time.Duration, error) {
	timeouts := child(c.object, "timeouts")
	controlPlane := c.isControlPlane()
	sum := pullBudget
	var problems []error
	for _, t := range joinTimeouts {
		d, err := time.ParseDuration(str(timeouts, t.name))
		if err != nil || d <= 0 {
			problems = append(problems, fmt.Errorf("timeouts.%s: %v is not a duration such as 5m0s", t.name, timeouts[t.name]))
			continue
		}
		n := t.worker
		if controlPlane {
			n = t.controlPlane
		}
		sum += time.Duration(n) * d
	}
	if controlPlane {
		sum += etcdAvailable
	}
	return sum, errors.Join(problems...)
}

func (c *Configuration) isControlPlane() bool {
	_, ok := c.object["controlPlane"].(object)
	return ok
}

// apiPort is where the local API server of a control plane will listen.
func (c *Configuration) apiPort() string {
	if c.isControlPlane() {
		if port, ok := child(child(c.object, "controlPlane"), "localAPIEndpoint")["bindPort"]; ok {
			return fmt.Sprint(port)
		}
	}
	return defaultAPIPort
}

// set replaces the credentials of an earlier attempt; "" keeps what is there.
func (c *Configuration) set(token, certificateKey string) {
	discovery := child(c.object, "discovery")
	if by, ok := discovery["bootstrapToken"].(object); ok && token != "" {
		by["token"] = token
		delete(discovery, "tlsBootstrapToken") // it follows the token
	}
	if certificateKey != "" {
		child(c.object, "controlPlane")["certificateKey"] = certificateKey
	}
}

// tlsToken is the bootstrap token with which kubelet asks for its certificate, "" for the one of the discovery.
func (c *Configuration) tlsToken() string {
	discovery, _ := c.object["discovery"].(object)
	return str(discovery, "tlsBootstrapToken")
}

// YAML is the configuration as kubeadm reads it, with its secrets.
func (c *Configuration) YAML() ([]byte, error) { return marshal(c.object) }

func marshal(o object) ([]byte, error) {
	text, err := yaml.Marshal(o)
	if err != nil {
		return nil, errors.New("write the JoinConfiguration as YAML") // the encoder's error may repeat a secret
	}
	return text, nil
}
