package event

import (
	"strings"
	"testing"
)

const pemBody = "MIIEowIBAAKCAQEAuGm3kqv4ChXcJ1TqhEjf0v5bq3yDk0Yj8Yw1vXn0mGJrV5xT\n" +
	"n4jZbq8zYc7Rj3sVQf0QJxU2g7b9yq4Tg1lVb2mVd1cS0c9h5p7w3Y6kz8xQw9aB\nq8Zr3g=="

const rsaKey = "-----BEGIN RSA PRIVATE KEY-----\n" + pemBody + "\n-----END RSA PRIVATE KEY-----"

func TestRedact(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain words", "waiting for 3 of 5 nodes", "waiting for 3 of 5 nodes"},
		{"empty", "", ""},
		{
			"join command",
			"  kubeadm join 10.17.0.10:6443 --token " + token + " \\\n\t--discovery-token-ca-cert-hash " + caHash + " \\\n\t--control-plane --certificate-key " + certKey,
			"  kubeadm join 10.17.0.10:6443 --token abcdef.*** \\\n\t--discovery-token-ca-cert-hash " + caHash + " \\\n\t--control-plane --certificate-key ***",
		},
		{
			"certificate key output",
			"[upload-certs] Using certificate key:\n" + certKey + "\n[mark-control-plane] Marking the node cp1",
			"[upload-certs] Using certificate key:\n***\n[mark-control-plane] Marking the node cp1",
		},
		{"upper-case key", strings.ToUpper(certKey), "***"},
		{"63 digits are something else, 65 a key after a letter", certKey[1:] + " a" + certKey, certKey[1:] + " ***"},
		{"image digest", "kindest/node@" + caHash, "kindest/node@" + caHash},
		{"init output", "[bootstrap-token] Using token: " + token + "\n[bootstrap-token] Configuring RBAC", "[bootstrap-token] Using token: abcdef.***\n[bootstrap-token] Configuring RBAC"},
		{"several tokens", token + "," + token, "abcdef.***,abcdef.***"},
		{"tokens that share letters", "zzzzzz.zzzzzzzzzz" + token, "zzzzzz.***.***"},
		{"versions and names", "kubeadm v1.36.3 at cp1.lab.internal:6443", "kubeadm v1.36.3 at cp1.lab.internal:6443"},
		{"rsa key", "key:\n" + rsaKey + "\nend", "key:\n***\nend"},
		{"two keys and a certificate", rsaKey + "\n-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----\n" + strings.ReplaceAll(rsaKey, "RSA ", ""), "***\n-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----\n***"},
		{"openssh key", strings.ReplaceAll(rsaKey, "RSA", "OPENSSH"), "***"},
		{"key without an end", "x " + rsaKey[:90], "x ***"},
		{"key without a beginning", "tail:\n" + rsaKey[60:], "tail:\n***"},
		{"key in a JSON string", `{"key":"` + strings.ReplaceAll(rsaKey, "\n", `\n`) + `"}`, `{"key":"***"}`},
		{
			"kubeconfig",
			"users:\n- name: admin\n  user:\n    client-certificate-data: LS0tCg==\n    client-key-data: LS0tLS1C\n    token: eyJhb.GciO\n",
			"users:\n- name: admin\n  user:\n    client-certificate-data: LS0tCg==\n    client-key-data: ***\n    token: ***\n",
		},
		{"kubeconfig as JSON", `{"client-key-data":"LS0tLS1C","token": "eyJhb"}`, `{"client-key-data":"***","token": "***"}`},
		{"kubeconfig as JSON in a string", `"{\"token\":\"eyJhb\",\"x\":1}"`, `"{\"token\":\"***\",\"x\":1}"`},
		{"short token", "token: x", "token: ***"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Redact(tt.in)
			if got != tt.want {
				t.Errorf("Redact(%q)\n got %q\nwant %q", tt.in, got, tt.want)
			}
			if again := Redact(got); again != got {
				t.Errorf("redacted again: %q", again)
			}
		})
	}
}

func TestRedactFastPathAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Redact("cp2 is still a learner: 2 of 3 voters") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("", "")
	f.Add("kubeadm join --token ", " --discovery-token-ca-cert-hash "+caHash)
	f.Add("zzzzzz.zzzzzzzzzz", "z")
	f.Add("-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY", "-----BEGIN EC PRIVATE KEY-----")
	f.Add("-----BEGIN X", "-----END X-----")
	f.Add("token: \"", "\" client-key-data: '")
	f.Add("\xff\x1b[0m", "\xf0\x28")
	f.Fuzz(func(t *testing.T, before, after string) {
		for _, part := range append(strings.Split(pemBody, "\n"), secret) {
			if strings.Contains(before+after, part) {
				t.Skip("the frame itself holds the secret")
			}
		}
		if got := Redact(before + token + after); strings.Contains(got, secret) {
			t.Errorf("token survives in %q", got)
		}
		got := Redact(before + rsaKey + after)
		for _, part := range strings.Split(pemBody, "\n") {
			if strings.Contains(got, part) {
				t.Errorf("private key survives in %q", got)
			}
		}
	})
}
