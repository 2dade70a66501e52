package scenarios

import (
	"context"
	"fmt"
	"strings"
)

// A registry that nobody has, and its mirror on the node. The mirror has no image, if it answers at all. Its unit and its directory have
// "fault" in their names.
const (
	noRegistry = "fault-registry.invalid"
	mirrorDir  = "/etc/containerd/certs.d/" + noRegistry
	mirrorAt   = "127.0.0.1:5959" // which no proxy is asked for
	mirrorUnit = "fault-registry"
)

// pullsFromMirror has containerd ask the mirror for the registry's images, and makes a pod that waits for one. start is the script that
// starts the mirror, with the arguments from $2 on.
func pullsFromMirror(scheme, start string, args ...string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		if err := t.shell(ctx, t.Node, useMirror+start, append([]string{scheme + "://" + mirrorAt}, args...)...); err != nil {
			return err
		}
		return adminApplies(fmt.Sprintf(waitingPod, probeSandbox, t.Node))(ctx, t)
	}
}

// useMirror names the mirror as the registry's server and not among its hosts, after which containerd would look for the registry itself.
const useMirror = `
	mkdir -p ` + mirrorDir + `
	printf 'server = "%s"\n' "$1" >` + mirrorDir + `/hosts.toml
`

// runMirror begins the command that is the mirror. Its arguments and its output would be in the node's journal, where a diagnosis looks
// for causes.
const runMirror = `systemd-run --quiet --collect --unit ` + mirrorUnit +
	` --description mirror --property StandardOutput=null --property StandardError=null `

// answers is a mirror that answers every request with a status and a header.
func answers(status, header string) func(context.Context, Target) error {
	return pullsFromMirror("http", runMirror+`systemd-socket-activate --accept --inetd --listen=`+mirrorAt+` sh -c "$2" sh "$3" "$4"`,
		answer, status, header)
}

// answer reads a request from the standard input to the end of its headers, and answers it.
const answer = `sed '/^\r/q' >/dev/null; printf 'HTTP/1.1 %s\r\n%s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n' "$1" "$2"`

// showsOwnCertificate is a mirror with a certificate that it has signed itself.
const showsOwnCertificate = `
	umask 077
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=fault -addext subjectAltName=IP:127.0.0.1 \
		-keyout ` + mirrorDir + `/mirror.pem -out ` + mirrorDir + `/mirror.pem
	` + runMirror + `openssl s_server -quiet -www -accept ` + mirrorAt + ` -cert ` + mirrorDir + `/mirror.pem`

// waitingPod is a pod on the node that is to have an image of the registry, and a login there.
const waitingPod = `
apiVersion: v1
kind: Secret
metadata: {name: %[1]q, namespace: default}
type: kubernetes.io/dockerconfigjson
stringData: {".dockerconfigjson": '{"auths": {"` + noRegistry + `": {"username": "fault", "password": "of last year"}}}'}
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]q, namespace: default}
spec:
  nodeName: %[2]q
  automountServiceAccountToken: false
  imagePullSecrets: [{name: %[1]q}]
  containers: [{name: web, image: ` + noRegistry + `/shop/web:1}]
`

// pullFails returns nil if the pod waits for its image, and containerd has told kubelet why in a text that has the words.
func pullFails(words string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		out, err := t.kubectl(ctx, "--namespace=default", "get", "pod", probeSandbox, "--ignore-not-found",
			"--output=jsonpath={.metadata.name}: {.status.containerStatuses[*].state.waiting.message}")
		switch out = strings.TrimSpace(out); {
		case err != nil:
			return err
		case out == "":
			return absent("there is no pod %s", probeSandbox)
		case !strings.Contains(out, words):
			return fmt.Errorf("the pod does not wait for its image because of %q yet: %s", words, out)
		}
		return nil
	}
}

// forgetsMirror removes the pod and the mirror.
var forgetsMirror = each(
	func(ctx context.Context, t Target) error {
		return t.shell(ctx, t.ControlPlane, asAdmin+`kubectl --namespace default delete "pod/$1" "secret/$1" --ignore-not-found --now`,
			probeSandbox)
	},
	stopUnit(mirrorUnit),
	script(`rm -rf `+mirrorDir+dropSandboxes),
)
