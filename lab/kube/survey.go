package kube

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CSR is a request for a certificate.
type CSR struct {
	Name      string
	Signer    string
	Requester string
	Node      string // the Node that its subject names, "" for another subject
	Created   time.Time
	State     string // pending, approved, denied, failed or issued
}

// CSRs lists the requests for certificates that the cluster remembers.
func (c *Client) CSRs(ctx context.Context) ([]CSR, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	list, err := c.set.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list certificate signing requests: %w", err)
	}
	all := make([]CSR, 0, len(list.Items))
	for i := range list.Items {
		r := &list.Items[i]
		all = append(all, CSR{
			Name: r.Name, Signer: r.Spec.SignerName, Requester: r.Spec.Username, Node: requestedNode(r.Spec.Request),
			Created: r.CreationTimestamp.Time, State: csrState(r),
		})
	}
	return all, nil
}

func csrState(r *certificatesv1.CertificateSigningRequest) string {
	if len(r.Status.Certificate) > 0 {
		return "issued"
	}
	state := "pending"
	for _, cond := range r.Status.Conditions {
		switch cond.Type {
		case certificatesv1.CertificateDenied:
			return "denied"
		case certificatesv1.CertificateFailed:
			return "failed"
		case certificatesv1.CertificateApproved:
			state = "approved"
		}
	}
	return state
}

func requestedNode(request []byte) string {
	block, _ := pem.Decode(request)
	if block == nil {
		return ""
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return ""
	}
	node, ok := strings.CutPrefix(csr.Subject.CommonName, NodeUser)
	if !ok {
		return ""
	}
	return node
}

// LeaseRenewals is when each kubelet last renewed the Lease of its Node, by its machine's clock.
func (c *Client) LeaseRenewals(ctx context.Context) (map[string]time.Time, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	list, err := c.set.CoordinationV1().Leases(leaseNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list leases of nodes: %w", err)
	}
	renewed := map[string]time.Time{}
	for _, l := range list.Items {
		if l.Spec.RenewTime != nil {
			renewed[l.Name] = l.Spec.RenewTime.Time
		}
	}
	return renewed, nil
}

// TokenLife is a bootstrap token without its secret.
type TokenLife struct {
	ID      string
	Expires time.Time // zero for never
}

// TokenLives lists the bootstrap tokens, without their secrets.
func (c *Client) TokenLives(ctx context.Context) ([]TokenLife, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	list, err := c.set.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{FieldSelector: "type=" + string(tokenSecretType)})
	if err != nil {
		return nil, fmt.Errorf("list bootstrap tokens: %w", err)
	}
	var all []TokenLife
	for _, s := range list.Items {
		if id, ok := strings.CutPrefix(s.Name, tokenSecretPrefix); ok {
			expires, _ := time.Parse(time.RFC3339, string(s.Data["expiration"])) // one without an end has none
			all = append(all, TokenLife{ID: id, Expires: expires})
		}
	}
	return all, nil
}

// Warnings lists the newest warning events of every namespace as lines of text, oldest first.
func (c *Client) Warnings(ctx context.Context, limit int) ([]string, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	list, err := c.set.CoreV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "type=" + corev1.EventTypeWarning})
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return EventTime(a).Compare(EventTime(b)) })
	var lines []string
	for _, e := range list.Items[max(0, len(list.Items)-limit):] {
		lines = append(lines, fmt.Sprintf("%s %s %s/%s: %s: %s (%d times)", EventTime(e).UTC().Format(time.RFC3339), e.InvolvedObject.Kind,
			e.InvolvedObject.Namespace, e.InvolvedObject.Name, e.Reason, strings.TrimSpace(e.Message), max(1, e.Count)))
	}
	return lines, nil
}

// EventTime is when an event was seen last.
func EventTime(e corev1.Event) time.Time {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}

// Answers reports whether an API server answers at all, whatever it says of its health.
func (c *Client) Answers(ctx context.Context) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	if _, err := c.set.Discovery().RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(ctx).Raw(); err != nil {
		return fmt.Errorf("ask the api server for its version: %w", err)
	}
	return nil
}
