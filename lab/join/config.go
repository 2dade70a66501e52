package join

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// joinConfiguration is what this package reads of kubeadm's document of that name, v1beta4.
type joinConfiguration struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Discovery  struct {
		BootstrapToken *struct {
			Token             string   `json:"token"`
			APIServerEndpoint string   `json:"apiServerEndpoint"`
			CACertHashes      []string `json:"caCertHashes"`
		} `json:"bootstrapToken"`
		File              *struct{} `json:"file"`
		TLSBootstrapToken string    `json:"tlsBootstrapToken"`
	} `json:"discovery"`
	NodeRegistration struct {
		Name                  string   `json:"name"`
		CRISocket             string   `json:"criSocket"`
		IgnorePreflightErrors []string `json:"ignorePreflightErrors"`
		ImagePullPolicy       string   `json:"imagePullPolicy"`
		KubeletExtraArgs      []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"kubeletExtraArgs"`
	} `json:"nodeRegistration"`
	ControlPlane *struct {
		LocalAPIEndpoint struct {
			AdvertiseAddress string `json:"advertiseAddress"`
		} `json:"localAPIEndpoint"`
		CertificateKey string `json:"certificateKey"`
	} `json:"controlPlane"`
}

// configAPI is the only version read: kubeadm 1.31 and newer write it, and older ones cannot set the timeouts that a watched join needs.
const configAPI = "kubeadm.k8s.io/v1beta4"

// ParseConfig reads what is to be joined out of a kubeadm configuration, the JoinConfiguration among its YAML documents. Discovery is by
// bootstrap token only. All problems are returned at once; they never repeat a secret.
func ParseConfig(text []byte) (Target, error) {
	config, err := joinDocument(text)
	if err != nil {
		return Target{}, fmt.Errorf("read kubeadm configuration: %w", err)
	}
	t := Target{
		Name:            config.NodeRegistration.Name,
		CRISocket:       config.NodeRegistration.CRISocket,
		Ignore:          config.NodeRegistration.IgnorePreflightErrors,
		ImagePullPolicy: config.NodeRegistration.ImagePullPolicy,
	}
	for _, arg := range config.NodeRegistration.KubeletExtraArgs {
		if arg.Name == "node-ip" {
			t.Address = arg.Value
		}
	}
	if cp := config.ControlPlane; cp != nil {
		t.ControlPlane, t.CertificateKey = true, cp.CertificateKey
		if cp.LocalAPIEndpoint.AdvertiseAddress != "" {
			t.Address = cp.LocalAPIEndpoint.AdvertiseAddress
		}
	}
	var problems []error
	switch token := config.Discovery.BootstrapToken; {
	case config.Discovery.File != nil:
		problems = append(problems, errors.New("discovery.file is not supported: use discovery.bootstrapToken (kubeadm token create --print-join-command)"))
	case token == nil:
		problems = append(problems, errors.New("discovery.bootstrapToken is missing"))
	default:
		t.Endpoint, t.Token, t.CACertHashes = token.APIServerEndpoint, token.Token, token.CACertHashes
		if t.Token == "" {
			t.Token = config.Discovery.TLSBootstrapToken
		}
		if t.Token == "" {
			problems = append(problems, errors.New("discovery.bootstrapToken.token is empty"))
		}
		if t.Endpoint == "" {
			problems = append(problems, errors.New("discovery.bootstrapToken.apiServerEndpoint is empty"))
		}
	}
	if err := errors.Join(append(problems, t.Validate())...); err != nil {
		return Target{}, fmt.Errorf("read kubeadm configuration: %w", err)
	}
	return t, nil
}

// joinDocument finds the JoinConfiguration.
func joinDocument(text []byte) (*joinConfiguration, error) {
	var found *joinConfiguration
	for i, document := range documentBreak.Split(string(text), -1) {
		var config joinConfiguration
		if err := yaml.Unmarshal([]byte(document), &config); err != nil {
			// The parser's own words may quote the line, and with it a secret.
			return nil, fmt.Errorf("document %d is not YAML of the shape that kubeadm reads", i+1)
		}
		if config.Kind != "JoinConfiguration" {
			continue
		}
		if config.APIVersion != configAPI {
			return nil, fmt.Errorf("JoinConfiguration is of %q: only %s is read (kubeadm config migrate)", config.APIVersion, configAPI)
		}
		if found != nil {
			return nil, errors.New("it has more than one JoinConfiguration")
		}
		found = &config
	}
	if found == nil {
		return nil, errors.New("it has no JoinConfiguration")
	}
	return found, nil
}

var (
	documentBreak = regexp.MustCompile(`(?m)^---([ \t].*)?$`)
	tokenShape    = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)
)

// Validate reports every field that no cluster could accept. What is empty is not judged, and a hash that is malformed is left to the
// check of it, which names the cause.
func (t Target) Validate() error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if t.Endpoint != "" {
		if host, port, err := net.SplitHostPort(t.Endpoint); err != nil || host == "" || port == "" {
			problem("endpoint %q is not HOST:PORT", t.Endpoint)
		}
	}
	if t.Token != "" && !tokenShape.MatchString(t.Token) {
		problem("the bootstrap token is not of the form [a-z0-9]{6}.[a-z0-9]{16}")
	}
	if key, err := hex.DecodeString(t.CertificateKey); t.CertificateKey != "" && (err != nil || len(key) != 32) {
		problem("the certificate key is not 64 hex digits")
	}
	if _, err := netip.ParseAddr(t.Address); t.Address != "" && err != nil {
		problem("address %q is not an IP address", t.Address)
	}
	for _, peer := range t.Peers {
		if _, err := netip.ParseAddr(peer); err != nil {
			problem("peer %q is not an IP address", peer)
		}
	}
	if t.CRISocket != "" && !strings.HasPrefix(t.CRISocket, "unix:///") {
		problem("CRI socket %q is not unix:///PATH", t.CRISocket)
	}
	return errors.Join(problems...)
}
