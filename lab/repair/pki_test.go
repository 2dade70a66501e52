package repair

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"
)

// signed is a certificate and its key; an authority's without one above it.
type signed struct {
	certificate, key string
	x509             *x509.Certificate
	private          *ecdsa.PrivateKey
}

func sign(t *testing.T, above *signed, until time.Time, names ...string) *signed {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: until.Add(-48 * time.Hour), NotAfter: until, BasicConstraintsValid: true, IsCA: above == nil,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	parent, signer := template, key
	if above != nil {
		parent, signer = above.x509, above.private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &signed{string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})), made, key}
}

func TestWrongPair(t *testing.T) {
	now := time.Now()
	later := now.Add(24 * time.Hour)
	ca, other := sign(t, nil, later), sign(t, nil, later)
	good, old, strange := sign(t, ca, later, "cp1", "10.0.0.1"), sign(t, ca, now.Add(-time.Hour)), sign(t, other, later)
	early := sign(t, ca, now.Add(96*time.Hour))
	tests := []struct {
		name             string
		certificate, key string
		names            []string
		wrong            string
	}{
		{"sound", good.certificate, good.key, []string{"cp1", "10.0.0.1"}, ""},
		{"a name is missing", good.certificate, good.key, []string{"cp1", "10.0.0.2"}, "it lacks the name 10.0.0.2"},
		{"too old", old.certificate, old.key, nil, "it expired on "},
		{"another authority's", strange.certificate, strange.key, nil, "it is not signed by"},
		{"another key", good.certificate, old.key, nil, "are not of each other"},
		{"missing", "", "", nil, "cannot be read"},
		{"cut", good.certificate[:80], good.key, nil, "cannot be read"},
		{"from the future: a clock is wrong", early.certificate, early.key, nil, ""},
	}
	for _, tt := range tests {
		err := wrongPair(tt.certificate, tt.key, ca.certificate, tt.names, now)
		if (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.wrong)
		}
	}
}

func TestWrongLogin(t *testing.T) {
	now := time.Now()
	ca, other := sign(t, nil, now.Add(time.Hour)), sign(t, nil, now.Add(time.Hour))
	good, old := sign(t, ca, now.Add(time.Hour)), sign(t, ca, now.Add(-time.Hour))
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	login := func(server string, trusts, has *signed) string {
		return fmt.Sprintf("clusters: [{cluster: {server: %q, certificate-authority-data: %s}}]\nusers: [{user: {client-certificate-data: %s, client-key-data: %s}}]\n",
			server, encode(trusts.certificate), encode(has.certificate), encode(has.key))
	}
	const server = "https://10.0.0.10:6443"
	tests := []struct{ name, text, wrong string }{
		{"sound", login(server, ca, good), ""},
		{"its certificate is in a file", strings.Split(login(server, ca, good), "users:")[0] + "users: [{user: {client-certificate: /x.pem}}]\n", ""},
		{"too old", login(server, ca, old), "it expired on "},
		{"another authority", login(server, other, good), "it does not trust"},
		{"another server", login("https://192.0.2.1:6443", ca, good), "its server is https://192.0.2.1:6443"},
		{"empty", "", "it is no kubeconfig"},
		{"no YAML", "\x00{", "it is no kubeconfig"},
		{"nobody's", strings.Split(login(server, ca, good), "users:")[0], "it is no kubeconfig of one user"},
	}
	for _, tt := range tests {
		err := wrongLogin(tt.text, ca.certificate, []string{server}, now)
		if (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.wrong)
		}
	}
}

func TestSoundShared(t *testing.T) {
	ca, leaf := sign(t, nil, time.Now().Add(time.Hour)), sign(t, sign(t, nil, time.Now().Add(time.Hour)), time.Now().Add(time.Hour))
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	public := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	private := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	tests := []struct {
		name, public, key string
		sound             bool
	}{
		{"an authority", ca.certificate, ca.key, true},
		{"an authority's with another key", ca.certificate, leaf.key, false},
		{"no authority's", leaf.certificate, leaf.key, false},
		{"of service accounts", public, private, true},
		{"of service accounts, with another key", public, ca.key, false},
		{"a key that is cut", public, private[:100], false},
		{"missing", "", "", false},
	}
	for _, tt := range tests {
		if got := soundShared(tt.public, tt.key); got != tt.sound {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestSameManifest(t *testing.T) {
	const pod = "kind: Pod\nspec:\n  containers:\n  - command:\n    - etcd\n    - --initial-cluster=a=https://192.0.2.1:2380\n    - --name=a\n    image: x\n"
	tests := []struct {
		name string
		is   string
		same bool
	}{
		{"as it is", pod, true},
		{"with a comment", "# mine\n" + pod, true},
		{"with the members of its join", strings.Replace(pod, "a=https://192.0.2.1:2380", "b=https://192.0.2.2:2380,a=https://192.0.2.1:2380\n    - --initial-cluster-state=existing", 1), true},
		{"with another flag", strings.Replace(pod, "--name=a", "--name=a\n    - --x", 1), false},
		{"with another image", strings.Replace(pod, "image: x", "image: y", 1), false},
		{"cut", pod[:30], false},
		{"empty", "", false},
	}
	for _, tt := range tests {
		if got := sameManifest(tt.is, pod); got != tt.same {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	for text, want := range map[string]bool{pod: true, "": false, "kind: Pod\n": false, "\x00{": false} {
		if readable(text) != want {
			t.Errorf("%q is readable: %v", text, !want)
		}
	}
}

// What the scripts print is read as it is, whatever is in the files.
func TestParseFiles(t *testing.T) {
	got := parseFiles("==> /a <==\none\n==> no header\n\n==> /b <==\n\n==> /c <==\nwithout end\n")
	if len(got) != 3 || got["/a"] != "one\n==> no header\n" || got["/b"] != "" || got["/c"] != "without end" {
		t.Errorf("%q", got)
	}
}

// kubelet's kubeconfig refers to the file that kubelet renews; the key is only there.
func TestSplitLogin(t *testing.T) {
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	pair, reference, err := splitLogin("clusters: []\nusers: [{name: n, user: {client-certificate-data: " + encode("CERT\n") + ", client-key-data: " + encode("KEY\n") + "}}]\n")
	if err != nil || pair != "CERT\nKEY\n" || strings.Count(reference, kubeletPEM) != 2 || strings.Contains(reference, "data") {
		t.Errorf("%q, %s, %v", pair, reference, err)
	}
	for _, text := range []string{"", "users: []", "users: [{user: {client-certificate-data: x}}]", "\x00{"} {
		if _, _, err := splitLogin(text); err == nil {
			t.Errorf("%q is a login", text)
		}
	}
}
