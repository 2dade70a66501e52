package config

import (
	"regexp"
	"slices"
	"strings"
)

// label is RFC 1123's.
var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// Taint is one taint of a Node.
type Taint struct{ Key, Value, Effect string }

// effects are those that a taint can have.
var effects = []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}

// ParseTaint reads KEY[=VALUE]:EFFECT; ok tells whether it is one.
func ParseTaint(text string) (t Taint, ok bool) {
	at, effect, _ := strings.Cut(text, ":")
	key, value, _ := strings.Cut(at, "=")
	return Taint{key, value, effect}, isLabelKey(key) && isLabelValue(value) && slices.Contains(effects, effect)
}

var (
	labelName   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	labelDomain = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
)

func isLabelKey(key string) bool {
	domain, name, has := strings.Cut(key, "/")
	if !has {
		return labelName.MatchString(key)
	}
	return labelName.MatchString(name) && len(domain) <= 253 && labelDomain.MatchString(domain)
}

func isLabelValue(value string) bool { return value == "" || labelName.MatchString(value) }

// kubeletMaySet follows the API server's admission plugin NodeRestriction, and
// kubelet itself, which does not start with another label of Kubernetes' own.
func kubeletMaySet(key string) bool {
	domain, name, has := strings.Cut(key, "/")
	in := func(zone string) bool { return domain == zone || strings.HasSuffix(domain, "."+zone) }
	switch {
	case !has || !in("kubernetes.io") && !in("k8s.io"):
		return true
	case domain == "topology.kubernetes.io":
		return name == "zone" || name == "region"
	}
	return in("node.kubernetes.io") || in("kubelet.kubernetes.io")
}
