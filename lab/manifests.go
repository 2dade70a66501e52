package lab

import (
	"bytes"
	_ "embed"
	"text/template"

	"k8slab/lab/image"
)

// The workloads that up puts into the cluster: the pod network, and the pods that prove it.
//
//go:embed manifests.yaml
var manifestsText string

var manifestsTemplate = template.Must(template.New("manifests").Parse(manifestsText))

func (l *Lab) manifests() ([]byte, error) {
	var out bytes.Buffer
	err := manifestsTemplate.Execute(&out, struct {
		VirtualIP, PodSubnet, FlannelImage, ProbeImage string
		Emulated                                       bool
	}{
		l.cluster.Network.VirtualIP.String(), l.cluster.Network.PodSubnet.String(), image.FlannelImage, image.ProbeImage, l.emulated(),
	})
	return out.Bytes(), err
}
