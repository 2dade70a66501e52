package lab

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"k8slab/lab/wait"
)

// side is the cluster's side of joins.
type side struct {
	denied   map[string]bool // what kubeadm's roles do not allow any more: verb, resource and, if it is one, the object's name
	starting time.Time       // until then the API server denies everything
	unsigned bool            // nobody signs cluster-info
	noSigner bool            // nobody signs certificates
	approver func() bool     // tells whether somebody approves requests; nil: the controller manager does, if it may
	rejects  string          // what admission says about every Node, "" for nothing
}

// roles are what kubeadm's phases allow.
var roles = map[string][]string{
	"bootstrap-token": {"create certificatesigningrequests", "create certificatesigningrequests/nodeclient", "create certificatesigningrequests/selfnodeclient",
		"get nodes", "get configmaps cluster-info"},
	"upload-config kubeadm": {"get configmaps kubeadm-config"},
	"upload-config kubelet": {"get configmaps kubelet-config"},
}

const (
	publicConfigs = "/api/v1/namespaces/kube-public/configmaps/"
	systemConfigs = "/api/v1/namespaces/kube-system/configmaps/"
	requests      = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
)

// initPhase is a phase of `kubeadm init` that makes what joins need.
func (w *world) initPhase(phase string) {
	for _, role := range roles[phase] {
		delete(w.denied, role)
	}
	config := func(at, key string) {
		w.objects[at] = object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": path.Base(at)}, "data": object{key: "kind: Config\n"}}
	}
	switch phase {
	case "bootstrap-token":
		config(publicConfigs+"cluster-info", "kubeconfig")
	case "upload-config kubeadm":
		config(systemConfigs+"kubeadm-config", "ClusterConfiguration")
	case "upload-config kubelet":
		config(systemConfigs+"kubelet-config", "kubelet")
	}
}

// sideCommand is what restores joins and ends one.
func (w *world) sideCommand(b *box, argv []string) (out string, status int, known bool) {
	line := strings.Join(argv, " ")
	if strings.HasPrefix(line, "systemctl stop") && strings.Contains(line, "k8slab-join") {
		b.stop = true
		return "", 0, true
	}
	for phase := range roles {
		if !strings.HasPrefix(line, "kubeadm init phase "+phase+" ") {
			continue
		}
		var c struct {
			BootstrapTokens []struct{ Token, Description string }
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(b.files[argv[len(argv)-1]], "---\n"), "---\n")
		if err := yaml.Unmarshal([]byte(first), &c); err != nil || len(c.BootstrapTokens) != 1 {
			w.broken = fmt.Errorf("%s: no token in its configuration, %v", line, err)
			return "", 1, true
		}
		w.initPhase(phase)
		if phase == "bootstrap-token" {
			id, _, _ := strings.Cut(c.BootstrapTokens[0].Token, ".")
			w.addToken(id, c.BootstrapTokens[0].Description)
		}
		return "", 0, true
	}
	return "", 0, false
}

// sign has the controllers do their part: they sign cluster-info for each token, and approve and sign certificates.
func (w *world) sign() {
	if info := w.objects[publicConfigs+"cluster-info"]; info != nil {
		data := object{"kubeconfig": info["data"].(object)["kubeconfig"]}
		for at := range w.objects {
			if id, ok := strings.CutPrefix(path.Base(at), "bootstrap-token-"); ok && !w.unsigned {
				data["jws-kubeconfig-"+id] = "signed"
			}
		}
		info["data"] = data
	}
	for at, o := range w.objects {
		if path.Dir(at) != requests {
			continue
		}
		status := o["status"].(object)
		if status["conditions"] == nil && (w.approver == nil && !w.denied["create certificatesigningrequests/nodeclient"] || w.approver != nil && w.approver()) {
			status["conditions"] = []any{object{"type": "Approved", "status": "True"}}
		}
		if conditions, _ := status["conditions"].([]any); len(conditions) > 0 && conditions[0].(object)["type"] == "Approved" && !w.noSigner {
			status["certificate"] = base64.StdEncoding.EncodeToString([]byte("issued"))
		}
	}
}

// sideAnswer answers reviews of rights, dry runs, and changes of requests for certificates.
func (w *world) sideAnswer(r *http.Request, body []byte) (code int, answer any, known bool) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
		o, err := decode(body)
		if err != nil {
			return http.StatusBadRequest, failure(http.StatusBadRequest, "BadRequest", err.Error()), true
		}
		o["status"] = object{"allowed": time.Now().After(w.starting) && !w.denied[right(o["spec"].(object)["resourceAttributes"].(object))]}
		return http.StatusCreated, o, true
	case r.Method == http.MethodPost && r.URL.Path == "/api/v1/nodes" && r.URL.Query().Get("dryRun") == "All":
		if !strings.HasPrefix(r.Header.Get("Impersonate-User"), "system:node:") {
			w.broken = errors.New("a dry run is not the kubelet's")
		}
		if w.rejects != "" {
			return http.StatusBadRequest, failure(http.StatusBadRequest, "BadRequest", w.rejects), true
		}
		return http.StatusCreated, object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": "dry"}}, true
	case r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/approval"):
		o, err := decode(body)
		if err != nil {
			return http.StatusBadRequest, failure(http.StatusBadRequest, "BadRequest", err.Error()), true
		}
		w.objects[path.Dir(r.URL.Path)]["status"] = o["status"]
		return http.StatusOK, o, true
	}
	return 0, nil, false
}

func right(may object) string {
	text := fmt.Sprintf("%v %v", may["verb"], may["resource"])
	if may["subresource"] != nil {
		text += fmt.Sprintf("/%v", may["subresource"])
	}
	if may["name"] != nil {
		text += fmt.Sprintf(" %v", may["name"])
	}
	return text
}

// waitForJoin is a kubeadm that waits, if it is to: kubelet asks for a certificate with the join's token, and kubeadm goes on when its
// condition holds, or somebody stops it.
func (w *world) waitForJoin(ctx context.Context, name, configuration string) {
	var c struct {
		Discovery struct{ BootstrapToken struct{ Token string } }
	}
	w.mu.Lock()
	b := w.box(name)
	holds := b.waits
	if holds != nil && configuration != "" { // else another began it
		_ = yaml.Unmarshal([]byte(strings.TrimPrefix(configuration, "---\n")), &c)
		id, _, _ := strings.Cut(c.Discovery.BootstrapToken.Token, ".")
		w.ask(name, id)
	}
	w.mu.Unlock()
	if holds == nil {
		return
	}
	_ = wait.For(ctx, "kubeadm", 5*time.Minute, 100*time.Millisecond, func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refresh()
		if b.stop || holds() {
			return nil
		}
		return errors.New("it waits")
	})
}

// ask has the machine ask for its certificate with a token.
func (w *world) ask(name, token string) {
	w.objects[requests+"/csr-"+name] = object{"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
		"metadata": object{"name": "csr-" + name}, "status": object{}, "spec": object{"request": certificateRequest("system:node:" + name),
			"signerName": "kubernetes.io/kube-apiserver-client-kubelet", "username": "system:bootstrap:" + token, "usages": []any{"client auth"}}}
}

// issued tells whether the machine has its certificate.
func (w *world) issued(name string) bool {
	o := w.objects[requests+"/csr-"+name]
	return o != nil && o["status"].(object)["certificate"] != nil
}

func certificateRequest(subject string) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: subject, Organization: []string{"system:nodes"}}}, key)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// tokenOf is where the API has the token of the node's join, "" without one.
func (w *world) tokenOf(name string) string {
	for at, o := range w.objects {
		if !strings.Contains(at, "/bootstrap-token-") {
			continue
		}
		text, _ := base64.StdEncoding.DecodeString(o["data"].(object)["description"].(string))
		if slices.Contains(strings.Fields(string(text)), name) {
			return at
		}
	}
	return ""
}
