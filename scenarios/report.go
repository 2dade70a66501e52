package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"k8slab/config"
)

// ReportSchema is the version of a report as JSON: docs/schema/fault-result.v1.json describes it.
const ReportSchema = "k8slab.fault-result/v1"

// Report is what was measured of one tool in one lab: a result file.
type Report struct {
	Schema   string   `json:"schema"`
	Tool     string   `json:"tool"` // what diagnosed and repaired: labctl, or another command
	Lab      Shape    `json:"lab"`
	Versions Versions `json:"versions"`
	Results  []Result `json:"results"`
}

// Shape is what kind of lab it was.
type Shape struct {
	Name          string `json:"name"`
	Machines      string `json:"machines"` // containers, virtual-machines, or ssh for machines that labctl did not make
	ControlPlanes int    `json:"control_planes"`
	Workers       int    `json:"workers"`
}

// Versions are those of labctl, and those in the lab. Several, where the nodes differ.
type Versions struct {
	Labctl     string   `json:"labctl"`
	Kubernetes []string `json:"kubernetes"` // of the kubelets
	Etcd       []string `json:"etcd"`
	Containerd []string `json:"containerd"`
}

// Describe asks a healthy lab for its shape and versions. Those of a lab that does not answer are empty, with the error.
func Describe(ctx context.Context, d Driver, of *Report) error {
	t, err := look(ctx, d)
	of.Versions.Kubernetes, of.Versions.Etcd, of.Versions.Containerd = []string{}, []string{}, []string{}
	for _, m := range t.Members {
		if m.Role != config.ControlPlane {
			of.Lab.Workers++
			continue
		}
		of.Lab.ControlPlanes++
		version, asked := t.etcdVersion(ctx, m)
		if err = errors.Join(err, asked); asked == nil {
			of.Versions.Etcd = append(of.Versions.Etcd, version)
		}
	}
	return errors.Join(err, t.nodeVersions(ctx, &of.Versions))
}

// nodeVersions are the versions that the nodes tell the API server.
func (t Target) nodeVersions(ctx context.Context, v *Versions) error {
	out, err := t.kubectl(ctx, "get", "nodes", "--output=json")
	var nodes struct {
		Items []struct {
			Status struct {
				NodeInfo struct{ KubeletVersion, ContainerRuntimeVersion string }
			}
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &nodes)
	}
	for _, n := range nodes.Items {
		v.Kubernetes = append(v.Kubernetes, n.Status.NodeInfo.KubeletVersion)
		v.Containerd = append(v.Containerd, strings.TrimPrefix(n.Status.NodeInfo.ContainerRuntimeVersion, "containerd://"))
	}
	for _, all := range []*[]string{&v.Kubernetes, &v.Etcd, &v.Containerd} {
		slices.Sort(*all)
		*all = slices.Compact(*all)
	}
	return err
}

// etcdVersion is the version of a control plane's member.
func (t Target) etcdVersion(ctx context.Context, m Member) (string, error) {
	t.ControlPlane = m.Name
	out, err := t.etcd(ctx, "endpoint", "status", "--write-out=json")
	var answers []struct{ Status struct{ Version string } }
	if err == nil {
		err = json.Unmarshal([]byte(out), &answers)
	}
	if err == nil && len(answers) == 0 {
		err = errors.New(m.Name + ": etcd tells no version")
	}
	if err != nil {
		return "", err
	}
	return answers[0].Status.Version, nil
}
