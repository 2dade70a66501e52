package join

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

const testHash = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func words(t *testing.T, s string) []string {
	t.Helper()
	w, err := SplitCommand(s)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestParseCommand(t *testing.T) {
	worker := "kubeadm join 10.30.0.10:6443 --token " + testToken + " --discovery-token-ca-cert-hash " + testHash
	tests := []struct {
		name, command, want string
	}{
		{"worker, as kubeadm prints it", worker, `
apiVersion: kubeadm.k8s.io/v1beta4
discovery:
  bootstrapToken:
    apiServerEndpoint: 10.30.0.10:6443
    caCertHashes: [` + testHash + `]
    token: ` + testToken + `
  tlsBootstrapToken: ` + testToken + `
kind: JoinConfiguration`},
		{"control plane, over several lines, with sudo and a path", "# from cp1\nsudo /usr/bin/kubeadm join 10.30.0.10:6443 \\\n\t--token='" + testToken +
			"' --discovery-token-ca-cert-hash=" + testHash + " \\\n --control-plane --certificate-key " + testKey +
			" --apiserver-advertise-address 10.30.0.12 --apiserver-bind-port=7443 --node-name cp2 -v=5 --ignore-preflight-errors=Swap,NumCPU", `
apiVersion: kubeadm.k8s.io/v1beta4
controlPlane:
  certificateKey: ` + testKey + `
  localAPIEndpoint: {advertiseAddress: 10.30.0.12, bindPort: 7443}
discovery:
  bootstrapToken:
    apiServerEndpoint: 10.30.0.10:6443
    caCertHashes: [` + testHash + `]
    token: ` + testToken + `
  tlsBootstrapToken: ` + testToken + `
kind: JoinConfiguration
nodeRegistration:
  ignorePreflightErrors: [Swap, NumCPU]
  name: cp2`},
		{"the pin waived on purpose", "kubeadm join 10.30.0.10:6443 --token " + testToken + " --discovery-token-unsafe-skip-ca-verification", `
apiVersion: kubeadm.k8s.io/v1beta4
discovery:
  bootstrapToken: {apiServerEndpoint: "10.30.0.10:6443", token: ` + testToken + `, unsafeSkipCAVerification: true}
  tlsBootstrapToken: ` + testToken + `
kind: JoinConfiguration`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseCommand(words(t, tt.command))
			if err != nil {
				t.Fatal(err)
			}
			want, err := yaml.YAMLToJSON([]byte(tt.want))
			if err != nil {
				t.Fatal(err)
			}
			have, err := yaml.YAMLToJSON(got)
			if err != nil || string(have) != string(want) {
				t.Errorf("%v\n got %s\nwant %s", err, have, want)
			}
		})
	}
}

func TestParseCommandRefuses(t *testing.T) {
	tests := []struct {
		name, command string
		want          []string // in one error
	}{
		{"another program", "kubectl join x", []string{"does not begin with `kubeadm join`"}},
		{"nothing", "", []string{"does not begin with"}},
		{"all problems at once", "kubeadm join 10.30.0.10:6443 --token short --wipe-disk yes --discovery-token-ca-cert-hash md5:1 --dry-run --certificate-key " + testKey,
			[]string{"--token is wrong: its value (5 characters)", "--wipe-disk is not a flag", `"md5:1" is not sha256:`, "--dry-run is not a flag", "only with --control-plane", "needs --token"}},
		{"no pin", "kubeadm join 10.30.0.10:6443 --token " + testToken, []string{"needs --discovery-token-ca-cert-hash"}},
		{"a value that is missing", "kubeadm join --discovery-token-ca-cert-hash " + testHash + " --token", []string{"the value of --token is missing"}},
		{"a secret without its flag", "kubeadm join 10.30.0.10:6443 " + testToken + " --token " + testToken + " --discovery-token-ca-cert-hash " + testHash,
			[]string{"more than one argument"}},
		{"a port that is none", "kubeadm join 10.30.0.10:6443 --control-plane --token " + testToken + " --discovery-token-ca-cert-hash " + testHash +
			" --apiserver-bind-port 70000 --apiserver-advertise-address here", []string{`"70000" is not a port`, `"here" is not an IP address`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseCommand(words(t, tt.command))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
			for _, secret := range []string{testToken, testKey} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("a secret is in: %v", err)
				}
			}
		})
	}
	for _, shell := range []string{"kubeadm join $(reboot)", "kubeadm join a; reboot", "kubeadm join `x`", "kubeadm join 'a b'", "kubeadm join x > /y"} {
		if _, err := SplitCommand(shell); err == nil {
			t.Errorf("accepted what is for a shell: %s", shell)
		}
	}
}

func TestReadEnvironment(t *testing.T) {
	env := func(m map[string]string) func(string) string { return func(k string) string { return m[k] } }
	got, err := ReadEnvironment(env(nil))
	if err != nil || got != (Environment{Attempts: 3}) {
		t.Errorf("defaults: %+v %v", got, err)
	}
	got, err = ReadEnvironment(env(map[string]string{"MASTER_IP": "10.30.0.10", "JOIN_TIMEOUT": "90", "MAX_RETRIES": "5"}))
	if err != nil || got != (Environment{ControlPlane: "10.30.0.10", Timeout: 90 * time.Second, Attempts: 5}) {
		t.Errorf("set: %+v %v", got, err)
	}
	_, err = ReadEnvironment(env(map[string]string{"MASTER_IP": "a b", "JOIN_TIMEOUT": "5m", "MAX_RETRIES": "0"}))
	for _, want := range []string{"MASTER_IP", "JOIN_TIMEOUT", "MAX_RETRIES"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in: %v", want, err)
		}
	}
}

func commandConfig(t *testing.T, command string, e Environment) (*Configuration, Target) {
	t.Helper()
	text, err := ParseCommand(words(t, command))
	if err != nil {
		t.Fatal(err)
	}
	c, target, err := ReadConfiguration(text, e)
	if err != nil {
		t.Fatal(err)
	}
	return c, target
}

const workerCommand = "kubeadm join 10.30.0.10:6443 --token " + testToken + " --discovery-token-ca-cert-hash " + testHash

func TestConfigurationIsCompleted(t *testing.T) {
	c, target := commandConfig(t, "kubeadm join --token "+testToken+" --discovery-token-ca-cert-hash "+testHash,
		Environment{ControlPlane: "10.30.0.10", Timeout: 42 * time.Second})
	if target.Endpoint != "10.30.0.10:6443" || target.Token != testToken {
		t.Errorf("target %+v", target)
	}
	timeouts := child(c.object, "timeouts")
	for name, want := range map[string]string{
		"tlsBootstrap": "42s", "discovery": "5m0s", "kubernetesAPICall": "1m0s", "etcdAPICall": "2m0s", "kubeletHealthCheck": "4m0s", "controlPlaneComponentHealthCheck": "4m0s",
	} {
		if timeouts[name] != want {
			t.Errorf("timeouts.%s is %v, want %s", name, timeouts[name], want)
		}
	}
}

// The budget around kubeadm is above the sum of all waits that kubeadm may make.
func TestBudgetIsAboveTheSumOfTheTimeouts(t *testing.T) {
	worker, _ := commandConfig(t, workerCommand, Environment{})
	controlPlane, _ := commandConfig(t, workerCommand+" --control-plane --certificate-key "+testKey, Environment{})
	if got, err := worker.budget(); err != nil || got <= 15*time.Minute {
		t.Errorf("worker: %s %v", got, err)
	}
	// peers-and-facts.md: about 25 minutes in the worst case.
	if got, err := controlPlane.budget(); err != nil || got <= 25*time.Minute {
		t.Errorf("control plane: %s %v", got, err)
	}
}

func TestReadConfigurationRefuses(t *testing.T) {
	good, err := ParseCommand(words(t, workerCommand))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, text, want string }{
		{"no YAML", "\t{" + testToken, "not valid YAML"},
		{"nothing", "---\n", "empty"},
		{"older version", strings.ReplaceAll(string(good), "v1beta4", "v1beta3"), "v1beta4"},
		{"other kind", "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n", "ClusterConfiguration"},
		{"two", string(good) + "---\n" + string(good), "two JoinConfigurations"},
		{"no endpoint", strings.ReplaceAll(string(good), "apiServerEndpoint: 10.30.0.10:6443", ""), "MASTER_IP"},
		{"a time-out that is none", string(good) + "timeouts: {discovery: soon}\n", "timeouts.discovery"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := ReadConfiguration([]byte(tt.text), Environment{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), testToken) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestNewCredentialsReplaceTheOld(t *testing.T) {
	c, _ := commandConfig(t, workerCommand+" --control-plane --certificate-key "+testKey, Environment{})
	newToken, newKey := "zzzzzz.9999999999999999", strings.Repeat("ab", 32)
	c.set(newToken, newKey)
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if s := string(text); strings.Contains(s, testToken) || strings.Contains(s, testKey) || !strings.Contains(s, newToken) || !strings.Contains(s, newKey) {
		t.Error("an old credential is left, or a new one missing")
	}
}
