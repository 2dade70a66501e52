package join

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// apiLimit bounds the first answer of the API server. It is short enough to notice an address that drops packets, and long enough for the
// TLS handshake of an emulated server.
const apiLimit = 4 * time.Second

// dialLimit bounds one connection. A lost first packet is sent again after a second.
const dialLimit = 2500 * time.Millisecond

func (p *preflight) findAPI(ctx context.Context) (apiFacts, error) {
	if p.t.Endpoint == "" {
		return apiFacts{}, errNotAsked
	}
	visitor := kube.Anonymous(p.t.Endpoint, p.dialEndpoint)
	context.AfterFunc(p.run, visitor.Close)
	live, err := visitor.Live(ctx)
	return apiFacts{visitor: visitor, live: live, at: p.m.Now()}, err
}

// dialEndpoint tries the endpoint's addresses one after another.
func (p *preflight) dialEndpoint(ctx context.Context, network, endpoint string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return nil, err
	}
	addresses, err := p.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	var failures []error
	for _, address := range addresses {
		limited, cancel := context.WithTimeout(ctx, p.patience*dialLimit)
		conn, err := p.m.Dial(limited, network, net.JoinHostPort(address.String(), port))
		cancel()
		if err == nil {
			return conn, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

// resolve returns an address as it is, without a look-up.
func (p *preflight) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if address, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{address}, nil
	}
	addresses, err := p.m.Lookup(ctx, host)
	if err != nil {
		return nil, &nameError{err}
	}
	if len(addresses) == 0 {
		return nil, &nameError{fmt.Errorf("%s has no address", host)}
	}
	return addresses, nil
}

// nameError is a host name that does not resolve.
type nameError struct{ error }

func (e *nameError) Unwrap() error { return e.error }

// errEndpoint is the result of every check behind the first failure on the way to the API server.
var errEndpoint = errors.New("the API endpoint does not answer")

func checkEndpointName(ctx context.Context, p *preflight) Check {
	host, _, err := net.SplitHostPort(p.t.Endpoint)
	if err != nil {
		return blocked(symptom.APIServerUnreachable, "give the endpoint as HOST:PORT", "endpoint %q is not HOST:PORT", p.t.Endpoint)
	}
	addresses, err := p.resolve(ctx, host)
	if err != nil {
		return blocked(symptom.DNSResolutionFailure, fmt.Sprintf("getent hosts %s; repair /etc/resolv.conf or add the name to /etc/hosts", host),
			"%s does not resolve: %v", host, err)
	}
	if _, err := netip.ParseAddr(host); err != nil && slices.ContainsFunc(addresses, netip.Addr.IsLoopback) && !p.m.Exists(kubeletConf) {
		return blocked(symptom.DNSResolutionFailure, "correct /etc/hosts", "%s resolves to %s, which is this machine itself", host, join(addresses))
	}
	return ok("%s", join(addresses))
}

func checkEndpointConnect(ctx context.Context, p *preflight) Check {
	_, err := p.api(ctx)
	if _, unresolved := errors.AsType[*nameError](err); unresolved {
		return unmade(fmt.Errorf("the name of %s does not resolve", p.t.Endpoint))
	}
	visit, failed := errors.AsType[*kube.VisitError](err)
	switch {
	case err == nil || failed && visit.Phase != kube.PhaseDial:
		return ok("%s accepts connections", p.t.Endpoint)
	case failed:
		err = visit.Err
	}
	c := unreachable(p.t.Endpoint, err)
	if errors.Is(err, syscall.EHOSTUNREACH) {
		c.Hint = p.withoutRoute(ctx, c.Hint)
	}
	return c
}

// withoutRoute is the hint, or how to delete the routes that say that the endpoint is unreachable, if this machine has any.
func (p *preflight) withoutRoute(ctx context.Context, hint string) string {
	host, _, _ := net.SplitHostPort(p.t.Endpoint)
	addresses, err := p.resolve(ctx, host)
	if err != nil {
		return hint
	}
	var all []string
	for _, address := range addresses {
		routes, err := p.m.Run(ctx, "ip", "route", "show", "match", address.String())
		if destination := nowhere(routes, address); err == nil && destination != "" {
			all = append(all, symptom.DeleteRoute.With(destination))
		}
	}
	slices.Sort(all)
	return strings.Join(append(slices.Compact(all), hint), ", or ")
}

// nowhere is the destination of the route that is taken to the address, if it says that the address is unreachable, else "".
func nowhere(routes string, address netip.Addr) string {
	longest, destination := -1, ""
	for line := range strings.Lines(routes) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		to := fields[0]
		if to == "unreachable" {
			to = fields[1]
		}
		bits := address.BitLen()
		if prefix, err := netip.ParsePrefix(to); err == nil {
			bits = prefix.Bits()
		} else if to == "default" {
			bits = 0
		}
		if bits > longest {
			longest, destination = bits, ""
			if fields[0] == "unreachable" {
				destination = to
			}
		}
	}
	return destination
}

// unreachable names the three ways in which a connection fails, which have different remedies.
func unreachable(endpoint string, err error) Check {
	host, port, _ := net.SplitHostPort(endpoint)
	probe := fmt.Sprintf("nc -zv %s %s; ip route get %s", host, port, host)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return blocked(symptom.APIServerUnreachable, "on the control plane: crictl ps --name kube-apiserver; journalctl -u kubelet",
			"%s refuses connections: no API server listens there", endpoint)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return blocked(symptom.APIServerUnreachable, "check address, link and routes: "+probe, "there is no way to %s: %v", endpoint, lastCause(err))
	case isTimeout(err):
		return blocked(symptom.APIServerUnreachable, "check that the address is right, its machine up and no firewall between: "+probe,
			"%s does not answer at all: a firewall drops the packets, or no machine has the address", endpoint)
	}
	return blocked(symptom.APIServerUnreachable, probe, "%s: %v", endpoint, lastCause(err))
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// lastCause is the innermost error, which says what happened without repeating where.
func lastCause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

func checkEndpointTLS(ctx context.Context, p *preflight) Check {
	facts, err := p.api(ctx)
	if visit, failed := errors.AsType[*kube.VisitError](err); failed && visit.Phase != kube.PhaseDial {
		if isTimeout(err) { // not certain: an emulated one may be that slow
			return warn(symptom.APIServerUnreachable, "on the control plane: top; crictl logs its kube-apiserver",
				"%s accepts connections but does not answer within %s: it hangs or is very slow", p.t.Endpoint, p.patience*apiLimit)
		}
		return blocked(symptom.APIServerUnreachable, "openssl s_client -connect "+p.t.Endpoint+"; is it the API server's port?",
			"%s accepts connections but no TLS: %v", p.t.Endpoint, withoutURL(visit.Err))
	}
	if err != nil {
		return unmade(errEndpoint)
	}
	if len(facts.live.Certificates) == 0 {
		return unmade(errors.New("the server showed no certificate"))
	}
	trusted, err := p.cluster(ctx)
	roots := (*x509.CertPool)(nil)
	if err == nil {
		roots = trusted.roots
	}
	return judgeCertificate(facts, p.t.Endpoint, roots)
}

// withoutURL drops what net/http adds around a handshake's error.
func withoutURL(err error) string {
	text := err.Error()
	if _, rest, found := strings.Cut(text, `": `); found {
		return rest
	}
	return text
}

// judgeCertificate verifies what the server presented against the cluster's CA; without roots only name and dates.
func judgeCertificate(facts apiFacts, endpoint string, roots *x509.CertPool) Check {
	leaf := facts.live.Certificates[0]
	host, _, _ := net.SplitHostPort(endpoint)
	if c, bad := judgeDates(leaf, facts); bad {
		return c
	}
	if err := leaf.VerifyHostname(host); err != nil {
		return blocked(symptom.X509SANMismatch, "add the address to apiServer.certSANs and renew the certificate: kubeadm init phase certs apiserver",
			"the API server's certificate is not for %s: %v", host, err)
	}
	if roots == nil {
		return ok("certificate for %s, valid until %s; its CA was not checked", host, leaf.NotAfter.Format(time.DateOnly))
	}
	between := x509.NewCertPool()
	for _, cert := range facts.live.Certificates[1:] {
		between.AddCert(cert)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: facts.at})
	if err != nil {
		return blocked(symptom.X509UnknownAuthority, "use the address of this cluster's API server; after a CA change: kubeadm init phase bootstrap-token",
			"the API server's certificate is not from the cluster's CA: %v", err)
	}
	return ok("certificate of the cluster's CA for %s, valid until %s", host, leaf.NotAfter.Format(time.DateOnly))
}

// judgeDates blames this machine's clock when a certificate is valid by the server's clock and not by this one.
func judgeDates(leaf *x509.Certificate, facts apiFacts) (Check, bool) {
	valid := func(at time.Time) bool { return !at.Before(leaf.NotBefore) && !at.After(leaf.NotAfter) }
	if valid(facts.at) {
		return Check{}, false
	}
	span := leaf.NotBefore.Format(time.RFC3339) + " to " + leaf.NotAfter.Format(time.RFC3339)
	if facts.at.Before(leaf.NotBefore) || valid(facts.live.Date) {
		return blocked(symptom.ClockSkew, "synchronise the clock: timedatectl set-ntp true; chronyc makestep",
			"the API server's certificate is valid from %s, and here it is %s", span, facts.at.UTC().Format(time.RFC3339)), true
	}
	return blocked(symptom.CertificateExpired, "on the control plane: kubeadm certs renew apiserver, then restart kube-apiserver",
		"the API server's certificate was valid from %s", span), true
}

func checkEndpointHealth(ctx context.Context, p *preflight) Check {
	facts, err := p.api(ctx)
	if err != nil {
		return unmade(errEndpoint)
	}
	switch live := facts.live; {
	case live.Status == http.StatusOK:
		return ok("the API server is alive")
	case live.Status == http.StatusUnauthorized, live.Status == http.StatusForbidden:
		return ok("the API server answers (%d to an anonymous request)", live.Status)
	case live.Status >= http.StatusInternalServerError:
		return blocked(symptom.APIServerUnreachable, "on the control plane: kubectl get --raw '/livez?verbose'; crictl logs its kube-apiserver",
			"the API server says that it is unhealthy: %d %s", live.Status, live.Reason)
	default:
		return blocked(symptom.APIServerUnreachable, "is "+p.t.Endpoint+" the API server's address?",
			"%s answers %d to /livez and /healthz: it is not an API server", p.t.Endpoint, live.Status)
	}
}
