package event

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	tokenSecret = "0123456789abcdef"
	kubeconfig  = "apiVersion: v1\nkind: Config\nusers:\n- name: admin\n  user:\n    client-key-data: c2VjcmV0LXNlY3JldC1zZWNyZXQ=\n"
	jwt         = "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJlLXNpZ25hdHVyZQ"
	ageKey      = "AGE-SECRET-KEY-1QQPQYP7XH5WWLLSL9HQNQ3PFYY6CRXAJEV0QJ8KAF9FXA0ZK2KSXHZQ4V"
)

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// wrapped is a text in lines of that many bytes, each after the indent.
func wrapped(s, indent string, width int) string {
	var b strings.Builder
	for len(s) > 0 {
		n := min(width, len(s))
		b.WriteString(indent + s[:n] + "\n")
		s = s[n:]
	}
	return b.String()
}

// planted are texts with a secret in them, and the parts of it that must not be left.
func planted() map[string]struct {
	text   string
	secret []string
} {
	type plant = struct {
		text   string
		secret []string
	}
	encodedKey, encodedConfig := b64(rsaKey), b64(kubeconfig)
	parts := func(s string, width int) (all []string) { // what a reader could put together again
		for i := 0; i+width <= len(s); i += width {
			all = append(all, s[i:i+width])
		}
		return all
	}
	all := map[string]plant{
		"key data on the next line":          {"    client-key-data:\n      " + encodedKey + "\n    x: y\n", parts(encodedKey, 40)},
		"key data folded":                    {"    client-key-data: >-\n" + wrapped(encodedKey, "      ", 64) + "    x: y\n", parts(encodedKey, 64)},
		"key data in a block":                {"client-key-data: |\n" + wrapped(encodedKey, "  ", 76) + "x: y\n", parts(encodedKey, 76)},
		"key data in a list":                 {"- client-key-data: |-\n" + wrapped("c2hvcnQ=", "    ", 76) + "- x: y\n", []string{"c2hvcnQ="}},
		"key data in a block in JSON":        {`{"data":"client-key-data: |\n  c2hvcnRzaG9ydHNob3J0\nx: y"}`, []string{"c2hvcnRzaG9ydHNob3J0"}},
		"a token in a block":                 {"  token: |\n    opaque-secret\n  x: y", []string{"opaque-secret"}},
		"a token on the next line":           {"token:\n  opaque\n", []string{"opaque"}},
		"a kubeconfig's password":            {"- name: u\n  user:\n    username: admin\n    password: hunter\n", []string{"hunter"}},
		"a quoted password":                  {`password: "two words"`, []string{"two words"}},
		"a password in JSON":                 {`{"username":"a","password":"hunter"}`, []string{"hunter"}},
		"a password in flow YAML":            {`{username: a, password: hunter}`, []string{"hunter"}},
		"a password as a flag":               {"tool --password hunter --x", []string{"hunter"}},
		"a password as a flag with =":        {"tool --db-password=hunter", []string{"hunter"}},
		"a password in the environment":      {"DB_PASSWORD=hunter make", []string{"hunter"}},
		"a password in a query":              {"GET /?password=hunter&x=y", []string{"hunter"}},
		"passwd":                             {"passwd: hunter", []string{"hunter"}},
		"passphrase":                         {"passphrase: hunter", []string{"hunter"}},
		"a key in base64 as tls.key":         {"  tls.key: " + encodedKey, parts(encodedKey, 40)},
		"a key in base64 as ca.key":          {`"ca.key": "` + encodedKey + `"`, parts(encodedKey, 40)},
		"short base64 as front-proxy-ca.key": {"front-proxy-ca.key: c2hvcnQ=", []string{"c2hvcnQ="}},
		"a key in base64 as value":           {"value: " + encodedKey, parts(encodedKey, 40)},
		"a key in base64 without a name":     {"got " + encodedKey + " there", parts(encodedKey, 40)},
		"a key in wrapped base64":            {"value: |\n" + wrapped(encodedKey, "  ", 76), parts(encodedKey, 76)},
		"a kubeconfig in base64":             {"admin.conf: " + encodedConfig, parts(encodedConfig, 40)},
		"a kubeconfig in wrapped base64":     {"x:\n" + wrapped(encodedConfig, "  ", 64), parts(encodedConfig, 64)},
		"a kubeconfig in base64 of base64":   {"x: " + b64("data: "+encodedConfig), parts(b64("data: "+encodedConfig), 40)},
		"a kubeconfig of JSON in base64":     {"x: " + b64(`{"apiVersion":"v1","users":[]}`), []string{b64(`{"apiVersion":"v1","users":[]}`)[:30]}},
		"a token in its Secret":              {"stringData:\n  token-id: abcdef\n  token-secret: " + tokenSecret, []string{tokenSecret}},
		"a token in its Secret in base64":    {"data:\n  token-secret: " + b64(tokenSecret), []string{b64(tokenSecret)}},
		"a token in base64":                  {"x " + b64("--token abcdef."+tokenSecret), []string{b64("--token abcdef." + tokenSecret)[:24]}},
		"a token in a URL":                   {"?token=abcdef%2E" + tokenSecret, []string{tokenSecret}},
		"a token in a URL in lower case":     {"x=abcdef%2e" + tokenSecret, []string{tokenSecret}},
		"a token broken after the dot":       {"--token abcdef.\n" + tokenSecret, []string{tokenSecret}},
		"a token broken before the dot":      {"--token abcdef\n  ." + tokenSecret, []string{tokenSecret}},
		"a token broken in the middle":       {"Using token: abcdef.01234567\n89abcdef", []string{"89abcdef"}},
		"a token broken by a shell":          {"--token abcdef.0123\\\n  456789abcdef", []string{"456789abcdef"}},
		"a coloured token":                   {"token: abcdef.\x1b[1m0123456789\x1b[0mabcdef", []string{"0123456789", "abcdef\x1b"}},
		"a certificate key, wrapped":         {"Using certificate key:\n" + wrapped(certKey, "", 40), []string{certKey[:40], certKey[40:]}},
		"a certificate key, indented":        {"certificateKey: >-\n" + wrapped(certKey, "    ", 32), parts(certKey, 32)},
		"a certificate key in base64":        {"x: " + b64(certKey), []string{b64(certKey)[:40]}},
		"a certificate key as base64":        {"certificate-key: " + b64("\x01\x02raw bytes of a key"), []string{b64("\x01\x02raw bytes of a key")}},
		"a certificate key after a letter":   {`\f` + certKey, []string{certKey}},
		"a certificate key after %0a":        {"%0a" + certKey, []string{certKey}},
		"a certificate key in JSON":          {`{"certificateKey":"` + certKey + `"}`, []string{certKey}},
		"a certificate key as a flag":        {"--certificate-key=" + certKey, []string{certKey}},
		"a certificate key alone":            {certKey, []string{certKey}},
		"a JWT as a bearer":                  {"Authorization: Bearer " + jwt, []string{jwt[10:50], jwt[60:]}},
		"a JWT as a flag":                    {"--token " + jwt, []string{jwt[10:50], jwt[60:]}},
		"a JWT as a flag with =":             {"--token=" + jwt, []string{jwt[10:50], jwt[60:]}},
		"a JWT alone":                        {"got " + jwt + ".", []string{jwt[10:50], jwt[60:]}},
		"a JWT in JSON":                      {`{"status":{"token":"` + jwt + `"}}`, []string{jwt[10:50], jwt[60:]}},
		"a JWT in base64":                    {"token: " + b64(jwt), parts(b64(jwt), 40)},
		"basic authorization":                {"Authorization: Basic dXNlcjpwYXNz", []string{"dXNlcjpwYXNz"}},
		"basic authorization in JSON":        {`{"Authorization":["Basic dXNlcjpwYXNz"]}`, []string{"dXNlcjpwYXNz"}},
		"proxy authorization":                {"proxy-authorization: basic dXNlcjpwYXNz", []string{"dXNlcjpwYXNz"}},
		"an opaque bearer":                   {"bearer 0a1b2c3d4e5f6a7b8c9d0e1f", []string{"0a1b2c3d4e5f6a7b8c9d0e1f"}},
		"a password in a URL":                {"clone https://user:hunter@git.example/x", []string{"hunter"}},
		"a password in a URL without a user": {"redis://:hunter@cache:6379", []string{"hunter"}},
		"a token in a URL's user":            {"https://0a1b2c3d4e5f6a7b8c9d@github.com/x", []string{"0a1b2c3d4e5f6a7b8c9d"}},
		"an age key":                         {"sops: " + ageKey, []string{ageKey[20:]}},
		"an htpasswd line of bcrypt":         {"admin:$2y$05$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234", []string{"ABCDEFGHIJ"}},
		"an htpasswd line of apr1":           {"admin:$apr1$abcdefgh$0123456789ABCDEFGHIJKL", []string{"0123456789ABC"}},
		"a line of shadow":                   {"root:$6$saltsalt$0123456789ABCDEFGHIJKLMN:19000:0", []string{"0123456789ABC"}},
		"a line of shadow, yescrypt":         {"root:$y$j9T$saltsalt$0123456789ABCDEFGHIJ:19000:0", []string{"0123456789ABC"}},
		"a hash in {SHA}":                    {"admin:{SHA}0DPiKuNIrrVmD8IUCuw1hQxNqZc=", []string{"0DPiKuNIrrVm"}},
		"docker's auth":                      {`{"auths":{"registry.example":{"auth":"dXNlcjpwYXNz"}}}`, []string{"dXNlcjpwYXNz"}},
		"docker's config in base64":          {".dockerconfigjson: " + b64(`{"auths":{"registry.example":{"auth":"dXNlcjpwYXNz"}}}`), []string{b64(`{"auths":{"registry.example":{"auth":"dXNlcjpwYXNz"}}}`)[:60]}},
		"PuTTY's key":                        {"PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 2\nAAAAIGsecretsecretsecretsecretsecret\nAAAAsecret==\nPrivate-MAC: 01\n", []string{"AAAAIGsecret", "AAAAsecret"}},
		"an SSH2 key":                        {"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nP2/56wAAAi4AAAA3aWYtbW9kbntzaWdue3JzYS1wa2NzMS1zaGEx\n---- END SSH2 ENCRYPTED PRIVATE KEY ----\n", []string{"P2/56wAAAi4"}},
		"a PKCS 8 key":                       {strings.ReplaceAll(rsaKey, "RSA PRIVATE", "ENCRYPTED PRIVATE"), parts(pemBody, 40)},
		"an EC key":                          {strings.ReplaceAll(rsaKey, "RSA", "EC"), parts(pemBody, 40)},
		"a key behind a log's prefix":        {prefixed("Nov 25 10:00:00 cp1 tool[12]: ", rsaKey), strings.Split(pemBody, "\n")[:2]},
		"a key's end behind a prefix":        {prefixed("Nov 25 10:00:00 cp1 tool[12]: ", rsaKey[60:]), strings.Split(rsaKey[60:], "\n")[1:2]},
		"GitHub":                             {"using ghp_0123456789abcdefABCDEF0123456789abcd", []string{"0123456789abcdefABCDEF"}},
		"GitHub, of an application":          {"using ghs_0123456789abcdefABCDEF0123456789abcd", []string{"0123456789abcdefABCDEF"}},
		"GitHub, fine-grained":               {"github_pat_11AAAAAAA0123456789_abcdefABCDEF0123456789", []string{"0123456789_abcdef"}},
		"GitLab":                             {"glpat-0123456789abcdefABCD", []string{"0123456789abcdef"}},
		"a client's secret":                  {"client-secret: hunter", []string{"hunter"}},
		"a client's secret in JSON":          {`"clientSecret":"hunter"`, []string{"hunter"}},
		"a cloud's key":                      {"aws_secret_access_key = wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY", []string{"wJalrXUtnFEMI"}},
		"a secret key in YAML":               {"secretKey: hunter", []string{"hunter"}},
		"a private key of WireGuard":         {"PrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=", []string{"yAnz5TF+lXXJte14"}},
		"an access token":                    {"access_token=hunter", []string{"hunter"}},
		"a refresh token":                    {`{"refresh_token": "hunter"}`, []string{"hunter"}},
		"an ID token":                        {"id-token: opaque-secret", []string{"opaque-secret"}},
		"a bearer token's flag":              {"kubectl --bearer-token hunter get", []string{"hunter"}},
		"a token in quotes in quotes":        {`"{\"token\":\"hunter\"}"`, []string{"hunter"}},
		"a token in prose":                   {"got token: s3cr3tt0ken for it", []string{"s3cr3tt0ken"}},
		"X-Auth-Token":                       {"X-Auth-Token: 0a1b2c3d4e5f", []string{"0a1b2c3d4e5f"}},
	}
	// Every shape of a name and its value, for each name.
	for _, name := range []string{"token", "password", "clientSecret", "client-key-data", "certificateKey", "tls.key", "private_key"} {
		for shape, format := range map[string]string{
			"YAML": "%s: Secret-Value-1", "YAML in a list": "- %s: Secret-Value-1", "YAML, single quotes": "  %s: 'Secret-Value-1'", "YAML, quotes": "  %s: \"Secret-Value-1\"",
			"JSON": `{"a":1,"%s":"Secret-Value-1"}`, "JSON with blanks": `{ "%s" : "Secret-Value-1" }`, "JSON in JSON": `"{\"%s\":\"Secret-Value-1\"}"`,
			"a flag": "x --%s Secret-Value-1 y", "a flag with =": "x --%s=Secret-Value-1 y", "an assignment": "%s=Secret-Value-1 x", "a block": "%s: |\n  Secret-Value-1\nx: y",
			"the next line": "%s:\n    Secret-Value-1\n", "folded": "  %s: >-\n    Secret-Value-1\n  x: y", "with Windows' ends": "%s: Secret-Value-1\r\nx: y\r\n",
		} {
			all[name+" in "+shape] = plant{fmt.Sprintf(format, name), []string{"Secret-Value-1"}}
		}
	}
	return all
}

func prefixed(prefix, text string) string {
	return prefix + strings.ReplaceAll(text, "\n", "\n"+prefix)
}

func TestEveryFormOfSecret(t *testing.T) {
	all := planted()
	for name, p := range all {
		got := Redact(p.text)
		for _, part := range p.secret {
			if strings.Contains(got, part) {
				t.Errorf("%s: %q is left in %q", name, part, got)
			}
		}
		if again := Redact(got); again != got {
			t.Errorf("%s: redacted again %q, before %q", name, again, got)
		}
	}
	t.Log(len(all), "forms")
}

// texts are those that the judge of texts is tested with.
func texts(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../symptom/reader/testdata/*/*.txt")
	if err != nil || len(paths) < 100 {
		t.Fatalf("%d texts, %v", len(paths), err)
	}
	all := make([]string, len(paths))
	for i, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = string(data)
	}
	return all
}

// Every form of secret, in the middle of some log.
func TestSecretsInLogs(t *testing.T) {
	logs, all := texts(t), planted()
	random := rand.New(rand.NewPCG(1, 2))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p := all[name]
		for range 20 {
			log := logs[random.IntN(len(logs))]
			lines := strings.SplitAfter(log, "\n")
			if len(lines) > 400 { // a part of it is enough
				from := random.IntN(len(lines) - 400)
				lines = lines[from : from+400]
			}
			at := random.IntN(len(lines))
			got := Redact(strings.Join(lines[:at], "") + p.text + "\n" + strings.Join(lines[at:], ""))
			for _, part := range p.secret {
				if strings.Contains(got, part) && !strings.Contains(log, part) {
					t.Errorf("%s: %q is left", name, part)
				}
			}
		}
	}
}

// No ID of a container is lost in any log: by it one line is found to belong to another.
func TestContainersKeepTheirIDs(t *testing.T) {
	id := regexp.MustCompile(`\b[0-9a-f]{64}\b`)
	seen, lost := 0, map[string]bool{}
	for _, log := range texts(t) {
		after := Redact(log)
		for _, found := range id.FindAllStringIndex(log, -1) {
			text, before := log[found[0]:found[1]], log[max(found[0]-60, 0):found[0]]
			seen++
			if !strings.Contains(after, text) && !strings.Contains(strings.ToLower(before), "certificate") {
				lost[before+text] = true
			}
		}
	}
	for text := range lost {
		t.Errorf("%q is lost", text)
	}
	t.Logf("%d IDs and hashes", seen)
}

// What tells one thing from another stays, and so do messages.
func TestWhatIsNoSecretStays(t *testing.T) {
	id := certKey
	for _, text := range []string{
		"containerd://" + id, "cri-containerd-" + id + ".scope: Deactivated successfully.", `msg="StartContainer for \"` + id + `\" returns successfully"`,
		`RunPodSandbox for name:\"etcd-cp1\" returns sandbox id \"` + id + `\"`, `shim disconnected" id=` + id + " namespace=k8s.io", `container_id:\"` + id + `\" pid:12`,
		`"RemoveContainer" containerID="` + id + `"`, `CreateContainer within sandbox "` + id + `" for container`, "run-containerd-io.containerd.runtime.v2.task-k8s.io-" + id + "-rootfs.mount",
		`address="unix:///run/containerd/s/` + id + `" protocol=ttrpc`, `"containerID":"` + id + `"`, "image sha256:" + id, "docker-" + id + ".scope",
		"dial tcp: lookup master.sixteenlettersab on 10.96.0.10:53: no such host", "https://master.sixteenlettersab:6443/healthz", "host master.sixteenlettersab.example.org is unreachable",
		"invalid bearer token: x509: certificate signed by unknown authority", "could not find token: certificate signed by unknown authority",
		"the bootstrap token: expired", "wrong password: denied", "no token: this is a worker", "read token: open /var/run/secrets/kubernetes.io/serviceaccount/token: no such file",
		"--token-file=/root/token", "  tokens: 3", "stat /etc/kubernetes/pki/ca.key: no such file or directory", "/etc/kubernetes/pki/sa.key", "key: value",
		"    client-certificate-data: " + b64("-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----\n"), "kind: Secret", "secret:\n  secretName: x\n  optional: false",
		"authentication: webhook", "authorization:\n  mode: Webhook", "auth: failed for user kubelet", "basic authentication is off", "serviceAccountToken:\n  path: token\n  expirationSeconds: 3607",
		"token:\n  path: x\n", "[preflight] Running pre-flight checks", "kubeadm join 10.0.0.1:6443 --token abcdef.*** --discovery-token-ca-cert-hash " + caHash,
		"/var/lib/kubelet/pods/4f0c6f0e-7a53-4c5e-9a40-0d1e5b1a2c3d/volumes/kubernetes.io~projected/kube-api-access-abcde", "ssh://git@git.example/fleet.git",
		"user@host: permission denied", "token=/var/run/token-file", "cost is $2 or $1", "tls.key: /etc/ssl/tls.key is missing",
	} {
		if got := Redact(text); got != text {
			t.Errorf("%q\n became %q", text, got)
		}
	}
}

func BenchmarkRedactLog(b *testing.B) {
	line := `Nov 25 22:06:22 cp1 containerd[234]: time="2026-11-25T22:06:22.769813319Z" level=info msg="RemoveContainer for \"` + certKey + `\" returns successfully"` + "\n" +
		`Nov 25 22:06:34 cp1 kubelet[394]: E1125 22:06:34.997370     394 pod_workers.go:1338] "Error syncing pod, skipping" err="failed to \"StartContainer\" for \"x\" with CrashLoopBackOff" pod="kube-system/kube-controller-manager-cp1"` + "\n"
	text := strings.Repeat(line, 2000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Redact(text)
	}
}
