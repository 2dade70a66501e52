package upgrade

import (
	"strings"
	"testing"

	"k8slab/lab/etcd"
	"k8slab/lab/symptom"
)

func TestFollows(t *testing.T) {
	tests := []struct{ from, to, says string }{
		{"v1.36.3", "v1.37.2", ""},
		{"v1.36.3", "v1.36.4", ""},
		{"v1.36.3", "v1.36.3", ""}, // does again what was not done
		{"v1.36.3", "v1.36.2", "does not go back"},
		{"v1.37.2", "v1.36.3", "does not go back"},
		{"v1.35.4", "v1.37.2", "first labctl upgrade to v1.36"},
		{"v1.36.3", "v2.0.0", "one minor version"},
		{"v1.36.3", "1.37.2", "vMAJOR.MINOR.PATCH"},
		{"v1.36.3", "v1.37", "vMAJOR.MINOR.PATCH"},
		{"v1.36.3", "v1.37.0-rc.1", ""},
		{"v1.37.0-rc.1", "v1.37.0", ""},
	}
	for _, tt := range tests {
		t.Run(tt.from+" to "+tt.to, func(t *testing.T) {
			err := follows(tt.from, tt.to)
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q", err, tt.says)
			}
		})
	}
}

// etcd's guide asks for 3.6.11 or newer before 3.7. A member that does not answer says nothing.
func TestViaEtcd(t *testing.T) {
	members := func(versions ...string) (all []etcd.Status) {
		for _, v := range versions {
			all = append(all, etcd.Status{Version: v})
		}
		return all
	}
	tests := []struct {
		name string
		from []etcd.Status
		to   string
		want string
	}{
		{"kubeadm 1.36.3 to 1.37.2", members("3.6.8", "3.6.8", "3.6.8"), "v3.7.0", via37},
		{"one is left", members("3.6.16", "3.6.8", "3.6.16"), "v3.7.0", via37},
		{"they are new enough", members("3.6.11", "3.6.16"), "v3.7.0", ""},
		{"half-way", members("3.7.0", "3.6.16", ""), "v3.7.0", ""},
		{"within 3.6", members("3.6.6", "3.6.6"), "v3.6.8", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := viaEtcd(tt.from, tt.to); got != tt.want {
				t.Errorf("via %q, want %q", got, tt.want)
			}
		})
	}
}

func TestBlockedErrorNamesEachFailureOnce(t *testing.T) {
	err := &BlockedError{"v1.37.2", []symptom.Finding{
		found(symptom.FlagRemoved, symptom.Fail, "cp2", "/etc/kubernetes/manifests/etcd.yaml", "etcd of v1.37.2 does not take it: %s", "--experimental-x"),
		found(symptom.EvictionBlocked, symptom.Warn, "", "PodDisruptionBudget a/b", "a/b"),
	}}
	text := err.Error()
	for _, want := range []string{"nothing was changed", "flag-removed on cp2", "--experimental-x", "extraArgs", "labctl upgrade v1.37.2"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, text)
		}
	}
	if strings.Contains(text, "a/b") {
		t.Errorf("a warning stops nothing:\n%s", text)
	}
}
