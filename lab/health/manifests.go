package health

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"text/template"

	"k8slab/lab/image"
	"k8slab/lab/session"
)

const (
	// FlannelNamespace is that of the pod network.
	FlannelNamespace = "kube-flannel"
	// SubnetFile is where flannel writes the node's pod subnet for the CNI plugin. It is on a tmpfs, and flannel writes it only when it
	// starts.
	SubnetFile = "/run/flannel/subnet.env"
)

// The workloads that up deploys: the pod network, and the probe that proves it.
//
//go:embed manifests.yaml
var manifestsText string

var manifestsTemplate = template.Must(template.New("manifests").Parse(manifestsText))

// Manifests are the objects of the pod network and of the probe.
func Manifests(s *session.Session) ([]byte, error) {
	var out bytes.Buffer
	err := manifestsTemplate.Execute(&out, struct {
		VirtualIP, PodSubnet, FlannelImage, ProbeImage, ProbeToken string
		Emulated                                                   bool
	}{
		s.Cluster.Network.VirtualIP.String(), s.Cluster.Network.PodSubnet.String(), image.FlannelImage, image.ProbeImage, ProbeToken(s), s.Emulated(),
	})
	return out.Bytes(), err
}

// ProbeToken is the secret that a request to the lab's probes must have. It is a hash of the lab's UUID, which no node knows, so that it
// need not be stored.
func ProbeToken(s *session.Session) string {
	sum := sha256.Sum256([]byte("probe of " + s.ID))
	return hex.EncodeToString(sum[:16])
}
