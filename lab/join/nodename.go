package join

import (
	"strings"

	"k8slab/lab/kube"
)

// nodeName is the Node's name in kubelet's client certificate, "" without one.
func (m Machine) nodeName() string {
	text, err := m.Read(clientCertificate)
	if err != nil {
		return ""
	}
	certs, err := kube.Certificates([]byte(text))
	if err != nil {
		return ""
	}
	name, ok := strings.CutPrefix(certs[0].Subject.CommonName, kube.NodeUser)
	if !ok {
		return ""
	}
	return name
}
