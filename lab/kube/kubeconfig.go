package kube

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
)

// CACertHash returns kubeadm's discovery hash of a kubeconfig's cluster CA, the
// first one if there are several: "sha256:" and the hex digest of its public key.
func CACertHash(kubeconfig []byte) (string, error) {
	_, cluster, err := currentCluster(kubeconfig)
	if err != nil {
		return "", err
	}
	if len(cluster.CertificateAuthorityData) == 0 {
		return "", errors.New("hash ca certificate: kubeconfig carries none")
	}
	certs, err := certutil.ParseCertsPEM(cluster.CertificateAuthorityData)
	if err != nil {
		return "", fmt.Errorf("hash ca certificate: %w", err)
	}
	sum := sha256.Sum256(certs[0].RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// FromNode reduces a kubeconfig from a machine to the cluster of its current context and the credentials that it contains. A machine is not
// trusted: it must not name files, programs or proxies of this computer, nor disable the check of the server's certificate. The error lists
// everything forbidden that it has.
func FromNode(kubeconfig []byte) ([]byte, error) {
	cfg, cluster, err := currentCluster(kubeconfig)
	if err != nil {
		return nil, err
	}
	user, err := currentUser(cfg)
	if err != nil {
		return nil, err
	}
	current := cfg.Contexts[cfg.CurrentContext]
	var bad []string
	for what, there := range map[string]bool{
		"certificate-authority": cluster.CertificateAuthority != "", "insecure-skip-tls-verify": cluster.InsecureSkipTLSVerify, "proxy-url": cluster.ProxyURL != "",
		"client-certificate": user.ClientCertificate != "", "client-key": user.ClientKey != "", "tokenFile": user.TokenFile != "",
		"as":            user.Impersonate != "" || user.ImpersonateUID != "" || len(user.ImpersonateGroups)+len(user.ImpersonateUserExtra) > 0,
		"auth-provider": user.AuthProvider != nil, "exec": user.Exec != nil, "username": user.Username != "" || user.Password != "",
	} {
		if there {
			bad = append(bad, what)
		}
	}
	if len(bad) > 0 {
		slices.Sort(bad)
		return nil, fmt.Errorf("the machine's kubeconfig has %s, which labctl takes from no machine; next: on the machine, kubeadm init phase kubeconfig admin",
			strings.Join(bad, ", "))
	}
	plain := clientcmdapi.NewConfig()
	plain.CurrentContext = cfg.CurrentContext
	plain.Contexts[cfg.CurrentContext] = &clientcmdapi.Context{Cluster: current.Cluster, AuthInfo: current.AuthInfo}
	plain.Clusters[current.Cluster] = &clientcmdapi.Cluster{
		Server: cluster.Server, TLSServerName: cluster.TLSServerName, CertificateAuthorityData: cluster.CertificateAuthorityData,
	}
	plain.AuthInfos[current.AuthInfo] = &clientcmdapi.AuthInfo{
		ClientCertificateData: user.ClientCertificateData, ClientKeyData: user.ClientKeyData, Token: user.Token,
	}
	out, err := clientcmd.Write(*plain)
	if err != nil {
		return nil, fmt.Errorf("rewrite kubeconfig: %w", err)
	}
	return out, nil
}

// WithServer rewrites a kubeconfig to reach its current cluster at another URL. tlsServerName is the name to expect in the server's
// certificate, empty for the URL's host.
func WithServer(kubeconfig []byte, server, tlsServerName string) ([]byte, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("rewrite kubeconfig for server %q: %w", server, err)
	}
	if u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("rewrite kubeconfig for server %q: it is not an https URL", server)
	}
	cfg, cluster, err := currentCluster(kubeconfig)
	if err != nil {
		return nil, err
	}
	cluster.Server, cluster.TLSServerName = server, tlsServerName
	cluster.ProxyURL = "" // it led to the old server
	out, err := clientcmd.Write(*cfg)
	if err != nil {
		return nil, fmt.Errorf("rewrite kubeconfig for server %q: %w", server, err)
	}
	return out, nil
}

// currentCluster finds the cluster of the current context, or the only cluster
// of a kubeconfig without contexts, as the public cluster-info's is.
func currentCluster(kubeconfig []byte) (*clientcmdapi.Config, *clientcmdapi.Cluster, error) {
	cfg, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	if current, ok := cfg.Contexts[cfg.CurrentContext]; ok {
		if cluster, ok := cfg.Clusters[current.Cluster]; ok {
			return cfg, cluster, nil
		}
		return nil, nil, fmt.Errorf("read kubeconfig: context %q names cluster %q, which it lacks", cfg.CurrentContext, current.Cluster)
	}
	if len(cfg.Contexts) == 0 && len(cfg.Clusters) == 1 {
		for _, cluster := range cfg.Clusters {
			return cfg, cluster, nil
		}
	}
	return nil, nil, fmt.Errorf("read kubeconfig: current context %q is not in it", cfg.CurrentContext)
}

func currentUser(cfg *clientcmdapi.Config) (*clientcmdapi.AuthInfo, error) {
	current := cfg.Contexts[cfg.CurrentContext]
	if current == nil || cfg.AuthInfos[current.AuthInfo] == nil {
		return nil, errors.New("read kubeconfig: its current context has no user")
	}
	return cfg.AuthInfos[current.AuthInfo], nil
}

// Authority identifies a server independently of its address, by the keys of the accepted certificate authorities. If those are this
// computer's, or the certificate is not checked, it is the address.
func Authority(cfg *rest.Config) ([]byte, error) {
	with := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: cfg.CAFile, CAData: cfg.CAData}}
	if err := rest.LoadTLSFiles(with); err != nil {
		return nil, err
	}
	if cfg.Insecure || len(with.CAData) == 0 {
		return []byte(cfg.Host), nil
	}
	certs, err := certutil.ParseCertsPEM(with.CAData)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's CA: %w", err)
	}
	var keys [][]byte
	for _, c := range certs {
		keys = append(keys, c.RawSubjectPublicKeyInfo)
	}
	slices.SortFunc(keys, bytes.Compare)
	return slices.Concat(keys...), nil
}
