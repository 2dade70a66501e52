package scenarios

import "context"

// pki is where kubeadm keeps a control plane's certificates.
const pki = "/etc/kubernetes/pki/"

// expired are openssl's arguments for a certificate that has ended.
var expired = []string{"-days", "-1"}

// signed is the certificate that the CA issues for the request. Only control planes have the CA's key, and it does not leave them.
func (t Target) signed(ctx context.Context, ca, request string, args ...string) (string, error) {
	return t.Run(ctx, t.ControlPlane, append([]string{"sh", "-ec", `
		request=$1 ca=$2
		shift 2
		printf '%s\n' "$request" |
			openssl x509 -req -CA "$ca.crt" -CAkey "$ca.key" -copy_extensions copyall "$@"`, "sh", request, pki + ca}, args...)...)
}

// reissues replaces a control plane's certificate by one that its CA has issued with other arguments, for the same key, names and uses. The
// request is public.
func reissues(certificate edit, key, ca string, args ...string) func(context.Context, Target) error {
	return issues(certificate, ca, func(ctx context.Context, t Target) (string, error) {
		return t.Run(ctx, t.Node, "openssl", "x509", "-x509toreq", "-in", certificate.path, "-signkey", key, "-copy_extensions", "copyall")
	}, args...)
}

// issues has the CA issue what is requested, in the place of the certificate.
func issues(certificate edit, ca string, request func(context.Context, Target) (string, error), args ...string,
) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		text, err := request(ctx, t)
		if err != nil {
			return err
		}
		issued, err := t.signed(ctx, ca, text, args...)
		if err != nil {
			return err
		}
		return certificate.on(ctx, t, t.Node, issued)
	}
}

// writeValue is the script of an edit that replaces the whole file by the value.
const writeValue = `printf '%s\n' "$2" >"$1"`
