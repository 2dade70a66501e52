package scenarios

import "context"

// pki is where kubeadm keeps a control plane's certificates.
const pki = "/etc/kubernetes/pki/"

// expired are openssl's arguments for a certificate that has ended.
var expired = []string{"-days", "-1"}

// requested is a request for the certificate in the file to be issued again for its key: with its names and uses. It is public.
func (t Target) requested(ctx context.Context, certificate, key string) (string, error) {
	return t.Run(ctx, t.Node, "openssl", "x509", "-x509toreq", "-in", certificate, "-signkey", key, "-copy_extensions", "copyall")
}

// signed is the certificate that the CA issues for the request. Only control planes have the CA's key, and it does not leave them.
func (t Target) signed(ctx context.Context, ca, request string, args ...string) (string, error) {
	return t.Run(ctx, t.ControlPlane, append([]string{"sh", "-ec", `
		request=$1 ca=$2
		shift 2
		printf '%s\n' "$request" |
			openssl x509 -req -CA "$ca.crt" -CAkey "$ca.key" -copy_extensions copyall "$@"`, "sh", request, pki + ca}, args...)...)
}

// reissues replaces a control plane's certificate by one that its CA has issued with other arguments.
func reissues(certificate edit, key, ca string, args ...string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		request, err := t.requested(ctx, certificate.path, key)
		if err != nil {
			return err
		}
		issued, err := t.signed(ctx, ca, request, args...)
		if err != nil {
			return err
		}
		return certificate.on(ctx, t, t.Node, issued)
	}
}

// writeValue is the script of an edit that replaces the whole file by the value.
const writeValue = `printf '%s\n' "$2" >"$1"`
