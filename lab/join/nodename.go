package join

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
)

// nodeUser is before a Node's name in the name of its kubelet.
const nodeUser = "system:node:"

// nodeName is the Node's name in kubelet's client certificate, "" without one.
func (m Machine) nodeName() string {
	text, err := m.Read("/var/lib/kubelet/pki/kubelet-client-current.pem")
	if err != nil {
		return ""
	}
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return ""
		}
		if cert, err := x509.ParseCertificate(block.Bytes); block.Type == "CERTIFICATE" && err == nil {
			if name, ok := strings.CutPrefix(cert.Subject.CommonName, nodeUser); ok {
				return name
			}
			return ""
		}
	}
}
