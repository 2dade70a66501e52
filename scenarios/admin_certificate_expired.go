package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var adminCertificateExpired = Fault{
	Name:    "admin-certificate-expired",
	Story:   "the administrator's kubeconfig on a control plane is a year old: kubectl is told to log in (kubeadm#1651)",
	Roles:   controlPlane,
	Symptom: symptom.CertificateExpired,
	Applies: anotherControlPlane,
	Inject: issues(adminConf, "ca", func(ctx context.Context, t Target) (string, error) {
		return t.Run(ctx, t.Node, "sh", "-ec", `
			umask 077
			both=$(mktemp)
			trap 'rm -f "$both"' EXIT
			sed -n 's/.*client-\(certificate\|key\)-data: //p' "$1" | while read -r part; do
				printf %s "$part" | base64 --decode
			done >"$both"
			openssl x509 -x509toreq -in "$both" -signkey "$both" -copy_extensions copyall`, "sh", adminConf.path)
	}, expired...),
	Effect: func(ctx context.Context, t Target) error {
		return t.says(ctx, []string{"Unauthorized", "provide credentials"}, "kubectl", "--kubeconfig", adminConf.path, "get", "nodes")
	},
	Recover: repair,
	Restore: adminConf.undo,
}

var adminConf = edit{
	path: "/etc/kubernetes/admin.conf",
	how:  `sed --in-place "s|\(client-certificate-data: \).*|\1$(printf '%s\n' "$2" | base64 --wrap 0)|" "$1"`,
}
