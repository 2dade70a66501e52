package join

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// duration is a time in a configuration, such as "10s".
type duration time.Duration

func (d *duration) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	parsed, err := time.ParseDuration(s)
	*d = duration(parsed)
	return err
}

// switched is a part of kubelet's configuration that is on or off.
type switched struct {
	Enabled  *bool     `json:"enabled"`
	CacheTTL *duration `json:"cacheTTL"`
}

// memberConfig has the fields of a KubeletConfiguration that kubeadm writes, in their types: kubelet does not start with others.
type memberConfig struct {
	APIVersion     string `json:"apiVersion"`
	Kind           string `json:"kind"`
	Authentication struct {
		Anonymous switched `json:"anonymous"`
		Webhook   switched `json:"webhook"`
		X509      struct {
			ClientCAFile string `json:"clientCAFile"`
		} `json:"x509"`
	} `json:"authentication"`
	Authorization struct {
		Mode    string `json:"mode"`
		Webhook struct {
			CacheAuthorizedTTL   *duration `json:"cacheAuthorizedTTL"`
			CacheUnauthorizedTTL *duration `json:"cacheUnauthorizedTTL"`
		} `json:"webhook"`
	} `json:"authorization"`
	CgroupDriver             string            `json:"cgroupDriver"`
	ClusterDNS               []string          `json:"clusterDNS"`
	ClusterDomain            string            `json:"clusterDomain"`
	ContainerRuntimeEndpoint string            `json:"containerRuntimeEndpoint"`
	FailCgroupV1             *bool             `json:"failCgroupV1"`
	FailSwapOn               *bool             `json:"failSwapOn"`
	HealthzBindAddress       string            `json:"healthzBindAddress"`
	HealthzPort              *int32            `json:"healthzPort"`
	Port                     *int32            `json:"port"`
	MaxPods                  *int32            `json:"maxPods"`
	EvictionHard             map[string]string `json:"evictionHard"`
	FeatureGates             map[string]bool   `json:"featureGates"`
	ResolvConf               *string           `json:"resolvConf"`
	RotateCertificates       *bool             `json:"rotateCertificates"`
	StaticPodPath            string            `json:"staticPodPath"`

	CPUManagerReconcilePeriod        *duration `json:"cpuManagerReconcilePeriod"`
	EvictionPressureTransitionPeriod *duration `json:"evictionPressureTransitionPeriod"`
	FileCheckFrequency               *duration `json:"fileCheckFrequency"`
	HTTPCheckFrequency               *duration `json:"httpCheckFrequency"`
	ImageMaximumGCAge                *duration `json:"imageMaximumGCAge"`
	ImageMinimumGCAge                *duration `json:"imageMinimumGCAge"`
	NodeStatusReportFrequency        *duration `json:"nodeStatusReportFrequency"`
	NodeStatusUpdateFrequency        *duration `json:"nodeStatusUpdateFrequency"`
	RuntimeRequestTimeout            *duration `json:"runtimeRequestTimeout"`
	ShutdownGracePeriod              *duration `json:"shutdownGracePeriod"`
	ShutdownGracePeriodCriticalPods  *duration `json:"shutdownGracePeriodCriticalPods"`
	StreamingConnectionIdleTimeout   *duration `json:"streamingConnectionIdleTimeout"`
	SyncFrequency                    *duration `json:"syncFrequency"`
	VolumeStatsAggPeriod             *duration `json:"volumeStatsAggPeriod"`
}

func readMemberConfig(text string) (memberConfig, error) {
	var c memberConfig
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		return c, err
	}
	if c.Kind != "KubeletConfiguration" || !strings.HasPrefix(c.APIVersion, "kubelet.config.k8s.io/") {
		return c, fmt.Errorf("it is %q of %q and not a KubeletConfiguration", c.Kind, c.APIVersion)
	}
	return c, nil
}

// ownKubeletConfig is the configuration of a member's kubelet, with its flags; false where the machine is no member, or none can be read.
func (m Machine) ownKubeletConfig() (config kube.KubeletConfiguration, member bool) {
	text, err := m.Read(kubeletConfig)
	if err != nil || !m.Exists(kubeletConf) || yaml.Unmarshal([]byte(text), &config) != nil {
		return config, false
	}
	flags := m.kubeletExtra()
	if flagValue(flags, "fail-swap-on") == "false" {
		config.FailSwapOn = new(bool)
	}
	if driver := flagValue(flags, "cgroup-driver"); driver != "" {
		config.CgroupDriver = driver
	}
	return config, true
}

// config judges the file that --config names.
func (r *restart) config() []Defect {
	file := flagValue(r.args, "config")
	if file == "" { // a unit without kubeadm's arguments has a check of its own
		return nil
	}
	text, err := r.m.Read(file)
	if errors.Is(err, os.ErrNotExist) {
		return []Defect{wrong(symptom.KubeletConfigMissing, file, "it is missing")}
	}
	var c memberConfig
	if err == nil {
		c, err = readMemberConfig(text)
	}
	if err != nil {
		return []Defect{wrong(symptom.FileChanged, file, "kubelet could not read it: %s", Plain(err))}
	}
	found := r.m.clientCA(c.Authentication.X509.ClientCAFile)
	if strange := r.strange(file, text); len(strange) > 0 {
		found = append(found, wrong(symptom.FileChanged, file, "kubelet does not know %s", strings.Join(strange, ", ")))
	}
	return found
}

// strange are the fields of a changed configuration that the installed kubelet does not know, and so does not start with. A program has the
// names of the fields of its types in it.
func (r *restart) strange(file, text string) []string {
	var fields map[string]any
	if !r.changed(file) || len(r.args) == 0 || yaml.Unmarshal([]byte(text), &fields) != nil {
		return nil
	}
	program, err := os.ReadFile(r.m.Path(r.args[0]))
	if err != nil || !bytes.Contains(program, []byte(`json:"staticPodPath`)) { // not a program in which names can be found
		return nil
	}
	var unknown []string
	for name := range fields {
		known := slices.ContainsFunc([]string{`json:"` + name + `"`, `json:"` + name + `,`}, func(tag string) bool {
			return bytes.Contains(program, []byte(tag))
		})
		if !known {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}
