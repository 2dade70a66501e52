package kube

import (
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// FuzzFromNode: what is taken of a machine's kubeconfig names no file, program or proxy, whatever the machine wrote.
func FuzzFromNode(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"c","user":"u"}}],` +
		`"clusters":[{"name":"c","cluster":{"server":"https://h:6443"}}],"users":[{"name":"u","user":{"token":"t"}}]}`))
	f.Add([]byte("apiVersion: v1\nkind: Config\nusers:\n- name: u\n  user:\n    tokenFile: /etc/shadow\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := FromNode(data)
		if err != nil {
			return
		}
		cfg, err := clientcmd.Load(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range cfg.AuthInfos {
			if u.TokenFile+u.ClientKey+u.ClientCertificate+u.Impersonate+u.Username != "" || u.Exec != nil || u.AuthProvider != nil {
				t.Errorf("%+v", u)
			}
		}
		for _, c := range cfg.Clusters {
			if c.CertificateAuthority+c.ProxyURL != "" || c.InsecureSkipTLSVerify {
				t.Errorf("%+v", c)
			}
		}
	})
}
