package scenarios

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"k8slab/lab/symptom"
)

var apiServerCrashloop = Fault{
	Name:    "apiserver-crashloop",
	Story:   "a flag that its version does not know is in the API server's manifest: it ends again and again (an upgrade by hand)",
	Roles:   controlPlane,
	Symptom: symptom.ControlPlaneCrashloop,
	Applies: threeControlPlanes,
	Inject: script(`
		sed -i 's/^\( *\)- kube-apiserver$/&\n\1- --insecure-port=8080/' /etc/kubernetes/manifests/kube-apiserver.yaml
		grep -q insecure-port /etc/kubernetes/manifests/kube-apiserver.yaml`),
	Effect: func(ctx context.Context, t Target) error {
		out, err := t.Run(ctx, t.Node, "sh", "-ec", `
			running=$(crictl ps --quiet --state running --name '^kube-apiserver$')
			if test -n "$running"; then
				echo running
				exit
			fi
			last=$(crictl ps --all --quiet --latest --name '^kube-apiserver$')
			test -n "$last"
			crictl inspect --output go-template --template '{{.status.exitCode}}' "$last"`)
		switch strings.TrimSpace(out) {
		case "running":
			return cmp.Or(err, absent("its API server runs"))
		case "1":
			return err
		}
		return cmp.Or(err, fmt.Errorf("its API server ended with status %q", out))
	},
	Recover: repair,
	Restore: script(`
		rm -f /etc/kubernetes/kube-apiserver.yaml.k8slab-saved
		manifest=/etc/kubernetes/manifests/kube-apiserver.yaml
		! grep -q insecure-port "$manifest" || sed -i /insecure-port/d "$manifest"`),
}
