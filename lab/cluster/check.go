package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8slab/config"
	"k8slab/lab/kube"
	"k8slab/lab/session"
)

// Checker reads documents and arguments as the cluster's version of Kubernetes does, and says what it does not take: image.Image is one.
type Checker interface {
	CheckDocuments(ctx context.Context, documents string) error
	CheckArguments(ctx context.Context, program string, arguments ...string) error
}

// HasOptions tells whether cluster.yaml has something that CheckOptions checks.
func HasOptions(c *config.Cluster) bool {
	has := len(c.Kubernetes.FeatureGates) > 0 || c.Kubernetes.Kubeadm.Any()
	for _, n := range c.Nodes {
		has = has || len(c.OptionsOf(n).Kubelet) > 0
	}
	return has
}

// CheckOptions refuses what cluster.yaml has for kubeadm, kubelet and the control plane's programs and they would not take. It names every
// field of cluster.yaml, and changes nothing.
func CheckOptions(ctx context.Context, s *session.Session, by Checker) error {
	step := s.Events.Start("", "options", 0)
	o := optionCheck{Session: s, by: by}
	o.documents(ctx)
	o.arguments(ctx)
	if len(o.found) == 0 {
		return step.End(nil)
	}
	return step.End(fmt.Errorf("cluster.yaml has what Kubernetes %s does not take:\n  %w\nnext: correct it, and labctl up again",
		s.Cluster.Kubernetes.Version, errors.New(strings.Join(o.found, "\n  "))))
}

type optionCheck struct {
	*session.Session
	by    Checker
	found []string // complaints
}

func (o *optionCheck) add(field string, err error) {
	if err != nil {
		o.found = append(o.found, field+": "+err.Error())
	}
}

// documents checks each by itself, so that all complaints are found. kubeadm reads a component's beside a ClusterConfiguration only.
func (o *optionCheck) documents(ctx context.Context) {
	check := func(field string, has config.Fragment, documents ...any) {
		if len(has) == 0 {
			return
		}
		text, err := marshal(documents)
		if err == nil {
			err = o.by.CheckDocuments(ctx, text)
		}
		o.add(field, err)
	}
	id, secret := kube.NewToken()
	token, k := id+"."+secret, o.Cluster.Kubernetes.Kubeadm
	members := o.Cluster.Members()
	documents := initDocuments(o.Session, members[0], token, "")
	join := joinDocuments(o.Session, members[len(members)-1], token, "sha256:"+strings.Repeat("0", 64), "")
	plain := object{"apiVersion": kubeadmAPI, "kind": "ClusterConfiguration", "kubernetesVersion": o.Cluster.Kubernetes.Version}
	check("kubernetes.kubeadm.init", k.Init, documents[0])
	check("kubernetes.kubeadm.cluster", k.Cluster, documents[1])
	check("kubernetes.kubeadm.kubelet", k.Kubelet, plain, documents[2])
	check("kubernetes.kubeadm.kube_proxy", k.KubeProxy, plain, documents[3])
	check("kubernetes.kubeadm.join", k.Join, join...)
	kubelet := func(field string, own config.Fragment) {
		check(field, own, plain, config.Merge(object{"apiVersion": kubeletAPI, "kind": "KubeletConfiguration"}, own))
	}
	kubelet("resources.control_plane.kubelet", o.Cluster.Resources.ControlPlane.Kubelet)
	kubelet("resources.worker.kubelet", o.Cluster.Resources.Worker.Kubelet)
	for _, n := range o.Cluster.Nodes {
		kubelet("nodes["+n.Name+"].kubelet", n.Kubelet)
	}
}

// arguments checks the feature gates with one program, because all know the same.
func (o *optionCheck) arguments(ctx context.Context) {
	k := o.Cluster.Kubernetes
	if len(k.FeatureGates) > 0 {
		o.add("kubernetes.feature_gates", o.by.CheckArguments(ctx, config.ControlPlanePrograms[0].Name, "--"+gateArgument(k)))
	}
	check := func(field, program string, given any) {
		if arguments := flags(given); len(arguments) > 0 {
			o.add(field, o.by.CheckArguments(ctx, program, arguments...))
		}
	}
	for _, program := range config.ControlPlanePrograms {
		of, _ := k.Kubeadm.Cluster[program.Key].(object)
		check("kubernetes.kubeadm.cluster."+program.Key+".extraArgs", program.Name, of["extraArgs"])
	}
	registration, _ := k.Kubeadm.Join["nodeRegistration"].(object)
	check("kubernetes.kubeadm.join.nodeRegistration.kubeletExtraArgs", "kubelet", registration["kubeletExtraArgs"])
}

// flags are kubeadm's extraArgs as a program gets them. What is none is for CheckDocuments to refuse.
func flags(extraArgs any) (arguments []string) {
	list, _ := extraArgs.([]any)
	for _, item := range list {
		of, _ := item.(object)
		name, named := of["name"].(string)
		value, has := of["value"].(string)
		if named && has {
			arguments = append(arguments, "--"+name+"="+value)
		}
	}
	return arguments
}
