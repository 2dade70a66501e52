package kube

import "fmt"

// Credentials are what the current context of a kubeconfig connects with: each in the kubeconfig itself, or in a file that it names.
type Credentials struct {
	Server                    string // URL
	CA, Cert, Key             []byte // PEM
	CAFile, CertFile, KeyFile string
}

// ReadCredentials reads a kubeconfig. It opens no other file.
func ReadCredentials(kubeconfig []byte) (Credentials, error) {
	cfg, cluster, err := currentCluster(kubeconfig)
	if err != nil {
		return Credentials{}, err
	}
	c := Credentials{Server: cluster.Server, CA: cluster.CertificateAuthorityData, CAFile: cluster.CertificateAuthority}
	current := cfg.Contexts[cfg.CurrentContext]
	if current == nil || cfg.AuthInfos[current.AuthInfo] == nil {
		return c, fmt.Errorf("read kubeconfig: its current context has no user")
	}
	user := cfg.AuthInfos[current.AuthInfo]
	c.Cert, c.Key, c.CertFile, c.KeyFile = user.ClientCertificateData, user.ClientKeyData, user.ClientCertificate, user.ClientKey
	return c, nil
}
