package lab

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
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
		VirtualIP, PodSubnet, FlannelImage, ProbeImage, ProbeToken string
		Emulated                                                   bool
	}{
		l.cluster.Network.VirtualIP.String(), l.cluster.Network.PodSubnet.String(), image.FlannelImage, image.ProbeImage, l.probeToken(), l.emulated(),
	})
	return out.Bytes(), err
}

// probeToken is what the lab's probes want to be shown before they reach others. It follows from the lab's identity, which no node is told,
// so that a later run knows it without having kept it.
func (l *Lab) probeToken() string {
	sum := sha256.Sum256([]byte("probe of " + l.id))
	return hex.EncodeToString(sum[:16])
}
