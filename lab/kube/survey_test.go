package kube

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"slices"
	"testing"
	"time"
)

func request(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

func TestCSRs(t *testing.T) {
	const signer = "kubernetes.io/kube-apiserver-client-kubelet"
	item := func(name, subject string, status fields) fields {
		return fields{"metadata": fields{"name": name, "creationTimestamp": "2026-01-02T03:04:05Z"}, "status": status,
			"spec": fields{"signerName": signer, "username": "system:bootstrap:abcdef", "request": request(t, subject)}}
	}
	conditions := func(kind string) fields {
		return fields{"conditions": []fields{{"type": kind, "status": "True"}}}
	}
	f := newFakeAPI(t)
	f.on("GET /apis/certificates.k8s.io/v1/certificatesigningrequests", 200, fields{"kind": "CertificateSigningRequestList",
		"apiVersion": "certificates.k8s.io/v1", "items": []fields{
			item("a", "system:node:w1", fields{}), item("b", "system:node:w2", conditions("Approved")), item("c", "somebody", conditions("Denied")),
			item("d", "system:node:w3", fields{"certificate": base64.StdEncoding.EncodeToString([]byte("x"))}), item("e", "system:node:w4", conditions("Failed")),
		}})
	c, rec := f.client()
	all, err := c.CSRs(t.Context())
	if err != nil || len(all) != 5 {
		t.Fatal(all, err)
	}
	var states, nodes []string
	for _, r := range all {
		states, nodes = append(states, r.State), append(nodes, r.Node)
	}
	if !slices.Equal(states, []string{"pending", "approved", "denied", "issued", "failed"}) || !slices.Equal(nodes, []string{"w1", "w2", "", "w3", "w4"}) {
		t.Error(states, nodes)
	}
	rec.want(t)
}

func TestSurvey(t *testing.T) {
	f := newFakeAPI(t)
	f.on("GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", 200, fields{"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "items": []fields{
		{"metadata": fields{"name": "w1"}, "spec": fields{"renewTime": "2026-01-02T03:04:05.000000Z"}}, {"metadata": fields{"name": "w2"}}}})
	f.on("GET /api/v1/namespaces/kube-system/secrets", 200, fields{"kind": "SecretList", "apiVersion": "v1", "items": []fields{
		{"metadata": fields{"name": "bootstrap-token-abcdef"}, "data": fields{"expiration": base64.StdEncoding.EncodeToString([]byte("2026-01-02T03:04:05Z")),
			"token-secret": base64.StdEncoding.EncodeToString([]byte("0123456789abcdef"))}},
		{"metadata": fields{"name": "bootstrap-token-ghijkl"}}}})
	f.on("GET /api/v1/events", 200, fields{"kind": "EventList", "apiVersion": "v1", "items": []fields{
		{"metadata": fields{"name": "b"}, "involvedObject": fields{"kind": "Pod", "namespace": "d", "name": "p"}, "reason": "Failed", "message": "new\n", "count": 3,
			"lastTimestamp": "2026-01-02T03:04:06Z"},
		{"metadata": fields{"name": "a"}, "involvedObject": fields{"kind": "Node", "name": "w1"}, "reason": "Old", "message": "old", "lastTimestamp": "2026-01-02T03:04:05Z"},
	}})
	f.on("GET /version", 200, fields{"gitVersion": "v1.36.3"})
	c, rec := f.client()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if leases, err := c.LeaseRenewals(t.Context()); err != nil || len(leases) != 1 || !leases["w1"].Equal(at) {
		t.Error(leases, err)
	}
	if tokens, err := c.TokenLives(t.Context()); err != nil || !slices.Equal(tokens, []TokenLife{{"abcdef", at}, {ID: "ghijkl"}}) {
		t.Error(tokens, err)
	}
	if lines, err := c.Warnings(t.Context(), 1); err != nil || !slices.Equal(lines, []string{"2026-01-02T03:04:06Z Pod d/p: Failed: new (3 times)"}) {
		t.Errorf("%q %v", lines, err)
	}
	if err := c.Answers(t.Context()); err != nil {
		t.Error(err)
	}
	rec.want(t)
}
