package lab

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"k8slab/lab/machine"
)

type object = map[string]any

// serve starts the API server, the probe and every control plane's etcd.
func (w *world) serve() {
	w.api, w.probe = newPipes(), newPipes()
	api := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(w.request)}
	probe := &http.Server{Handler: http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { w.reached(out) })}
	go func() {
		_ = api.Serve(tls.NewListener(w.api, &tls.Config{Certificates: []tls.Certificate{w.pki.pair}, CurvePreferences: []tls.CurveID{tls.X25519}}))
	}()
	go func() { _ = probe.Serve(w.probe) }()
	w.ended = append(w.ended, func() { _ = api.Close(); _ = probe.Close() })
	for _, b := range w.machines {
		w.serveEtcd(b)
	}
}

// plurals are the kinds that the API serves.
var plurals = map[string][]string{
	"v1":                           {"Namespace namespaces", "Service services ns", "ServiceAccount serviceaccounts ns", "ConfigMap configmaps ns", "Secret secrets ns"},
	"apps/v1":                      {"DaemonSet daemonsets ns", "Deployment deployments ns"},
	"rbac.authorization.k8s.io/v1": {"ClusterRole clusterroles", "ClusterRoleBinding clusterrolebindings", "Role roles ns", "RoleBinding rolebindings ns"},
	"storage.k8s.io/v1":            {"StorageClass storageclasses"},
	"admissionregistration.k8s.io/v1": {"ValidatingAdmissionPolicy validatingadmissionpolicies",
		"ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings"},
}

// reached is what a probe answers: what of the question it cannot reach.
func (w *world) reached(out io.Writer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = json.NewEncoder(out).Encode(append([]string{}, w.deaf...))
}

func (w *world) request(out http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.mu.Lock()
	defer w.mu.Unlock()
	code, answer := http.StatusInternalServerError, any(nil)
	if err := w.called("api: " + r.Method + " " + r.URL.Path); err != nil {
		answer = failure(code, "InternalError", err.Error())
	} else if w.denied["* *"] && r.Header.Get("Authorization") != "Bearer "+superToken && strings.Count(r.URL.Path, "/") > 1 {
		code = http.StatusForbidden
		answer = failure(code, "Forbidden", `User "kubernetes-admin" cannot do that`)
	} else {
		code, answer = w.answer(r, body)
	}
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(code)
	_ = json.NewEncoder(out).Encode(answer)
}

func failure(code int, reason, message string) object {
	return object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": message}
}

func (w *world) answer(r *http.Request, body []byte) (int, any) {
	switch r.URL.Path {
	case "/readyz":
		return http.StatusOK, "ok"
	case "/version":
		return http.StatusOK, object{"major": "1", "minor": "36", "gitVersion": cmp.Or(w.upgraded, w.lab.found.Cluster.Kubernetes.Version)}
	}
	if list, ok := w.kinds(r.URL.Path); ok {
		return http.StatusOK, list
	}
	w.refresh()
	if code, answer, known := w.sideAnswer(r, body); known {
		return code, answer
	}
	switch r.Method {
	case http.MethodGet:
		if o, ok := w.objects[r.URL.Path]; ok {
			return http.StatusOK, o
		}
		if items, ok := w.list(r); ok {
			words := strings.Fields(lists[path.Base(r.URL.Path)])
			return http.StatusOK, object{"kind": words[0], "apiVersion": words[1], "metadata": object{}, "items": items}
		}
	case http.MethodDelete:
		if _, ok := w.objects[r.URL.Path]; ok {
			delete(w.objects, r.URL.Path)
			return http.StatusOK, object{"kind": "Status", "apiVersion": "v1", "status": "Success"}
		}
	case http.MethodPost, http.MethodPatch:
		o, err := decode(body)
		if err != nil {
			return http.StatusBadRequest, failure(http.StatusBadRequest, "BadRequest", err.Error())
		}
		at := r.URL.Path
		if r.Method == http.MethodPost {
			at = path.Join(at, o["metadata"].(object)["name"].(string))
		}
		if is := w.objects[at]; is != nil && strings.HasPrefix(at, "/api/v1/nodes/") {
			patch(is, o)
			o = is
		}
		w.objects[at] = o
		if strings.HasSuffix(at, "/clusterrolebindings/kubeadm:cluster-admins") {
			delete(w.denied, "* *")
		}
		return http.StatusOK, o
	}
	w.missed = append(w.missed, r.Method+" "+r.URL.Path)
	return http.StatusNotFound, failure(http.StatusNotFound, "NotFound", r.URL.Path+" not found")
}

// decode reads an object that is JSON, or in the format that client-go prefers.
func decode(body []byte) (o object, err error) {
	if packed, ok := bytes.CutPrefix(body, []byte("k8s\x00")); ok {
		var u runtime.Unknown
		if err := u.Unmarshal(packed); err != nil {
			return nil, err
		}
		into := map[string]interface{ Unmarshal([]byte) error }{"Secret": &corev1.Secret{}, "Node": &corev1.Node{}, "Lease": &coordinationv1.Lease{},
			"ClusterRole": &rbacv1.ClusterRole{}, "ClusterRoleBinding": &rbacv1.ClusterRoleBinding{},
			"SubjectAccessReview": &authorizationv1.SubjectAccessReview{}, "CertificateSigningRequest": &certificatesv1.CertificateSigningRequest{}}[u.Kind]
		if into == nil {
			return nil, fmt.Errorf("the world does not read a %s", u.Kind)
		}
		if err := into.Unmarshal(u.Raw); err != nil {
			return nil, err
		}
		if body, err = json.Marshal(into); err != nil {
			return nil, err
		}
	}
	return o, json.Unmarshal(body, &o)
}

// lists are the kinds of lists.
var lists = map[string]string{
	"nodes": "NodeList v1", "secrets": "SecretList v1", "pods": "PodList v1", "services": "ServiceList v1", "events": "EventList v1", "leases": "LeaseList coordination.k8s.io/v1",
	"clusterroles": "ClusterRoleList rbac.authorization.k8s.io/v1", "clusterrolebindings": "ClusterRoleBindingList rbac.authorization.k8s.io/v1",
	"roles": "RoleList rbac.authorization.k8s.io/v1", "rolebindings": "RoleBindingList rbac.authorization.k8s.io/v1",
	"certificatesigningrequests": "CertificateSigningRequestList certificates.k8s.io/v1", "daemonsets": "DaemonSetList apps/v1", "deployments": "DeploymentList apps/v1",
	"validatingwebhookconfigurations": "ValidatingWebhookConfigurationList admissionregistration.k8s.io/v1",
	"mutatingwebhookconfigurations":   "MutatingWebhookConfigurationList admissionregistration.k8s.io/v1",
}

// kinds is the discovery of a group's version.
func (w *world) kinds(at string) (object, bool) {
	gv := strings.TrimPrefix(strings.TrimPrefix(at, "/apis/"), "/api/")
	names, ok := plurals[gv]
	var resources []object
	for _, n := range names {
		words := strings.Fields(n)
		resources = append(resources, object{"kind": words[0], "name": words[1], "namespaced": len(words) == 3, "verbs": []string{}})
	}
	return object{"kind": "APIResourceList", "groupVersion": gv, "resources": resources}, ok
}

// list lists objects below a path. Whoever asks for what is in all namespaces means pods.
func (w *world) list(r *http.Request) ([]object, bool) {
	items := []object{}
	if r.URL.Path == "/api/v1/pods" || strings.HasSuffix(r.URL.Path, "/pods") {
		for _, at := range slices.Sorted(mapKeys(w.objects)) {
			o := w.objects[at]
			in := strings.TrimSuffix(r.URL.Path, "/pods")
			if !strings.Contains(at, "/pods/") || !strings.HasPrefix(at, in) {
				continue
			}
			node, only := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "spec.nodeName=")
			if only && o["spec"].(object)["nodeName"] != node {
				continue
			}
			if app, only := strings.CutPrefix(r.URL.Query().Get("labelSelector"), "app="); !only || strings.HasPrefix(path.Base(at), app+"-") {
				items = append(items, o)
			}
		}
		return items, true
	}
	if r.URL.Path == "/api/v1/services" {
		for _, at := range slices.Sorted(mapKeys(w.objects)) {
			if path.Base(path.Dir(at)) == "services" {
				items = append(items, w.objects[at])
			}
		}
		return items, true
	}
	for _, at := range slices.Sorted(mapKeys(w.objects)) {
		labels, _ := w.objects[at]["metadata"].(object)["labels"].(object)
		key, value, _ := strings.Cut(r.URL.Query().Get("labelSelector"), "=")
		if path.Dir(at) == r.URL.Path && (key != "kubernetes.io/bootstrapping" || labels[key] == value) {
			items = append(items, w.objects[at])
		}
	}
	_, known := lists[path.Base(r.URL.Path)]
	return items, known
}

// refresh brings what controllers keep up to date: the signatures of tokens, the pods and the states of workloads, and Leases.
func (w *world) refresh() {
	w.sign()
	ready := 0
	for at, o := range w.objects {
		name, isNode := strings.CutPrefix(at, "/api/v1/nodes/")
		if !isNode {
			continue
		}
		b := w.machines[name]
		status := "False"
		if w.alive[name] {
			w.renew(name)
		}
		if b != nil && b.state == machine.Running && b.facts.Joined {
			status = "True"
			ready++
			w.renew(name)
		}
		o["status"].(object)["conditions"] = []object{{"type": "Ready", "status": status, "reason": "KubeletReady"}}
	}
	w.workload("/apis/apps/v1/namespaces/kube-flannel/daemonsets/flannel", "kube-flannel", ready)
	w.workload("/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy", "kube-system", ready)
	w.workload("/apis/apps/v1/namespaces/k8slab/daemonsets/probe", "k8slab", ready)
	w.workload("/apis/apps/v1/namespaces/monitoring/daemonsets/node-exporter", "monitoring", ready)
	if d := w.objects["/apis/apps/v1/namespaces/local-path-storage/deployments/local-path-provisioner"]; d != nil {
		d["status"] = object{"readyReplicas": 1, "updatedReplicas": 1}
		if w.stuck["local-path-provisioner"] {
			d["status"] = object{"updatedReplicas": 1}
		}
	}
	if d := w.objects["/apis/apps/v1/namespaces/kube-system/deployments/coredns"]; d != nil {
		d["status"] = object{"readyReplicas": min(ready*2, 2), "updatedReplicas": 2}
	}
	if s := w.objects["/api/v1/namespaces/k8slab/services/probe"]; s != nil {
		s["spec"].(object)["clusterIP"] = "10.96.0.99"
	}
}

func (w *world) renew(name string) {
	w.objects["/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"+name] = object{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"metadata": object{"name": name}, "spec": object{"renewTime": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00")}}
}

// workload gives each Node a pod of a DaemonSet that is there.
func (w *world) workload(at, namespace string, ready int) {
	d := w.objects[at]
	if d == nil {
		return
	}
	d["status"] = object{"numberReady": ready, "updatedNumberScheduled": ready, "desiredNumberScheduled": ready}
	for place, o := range w.objects {
		name, isNode := strings.CutPrefix(place, "/api/v1/nodes/")
		if !isNode {
			continue
		}
		pod, pods := path.Base(at)+"-"+name, "/api/v1/namespaces/"+namespace+"/pods/"
		if slices.ContainsFunc(slices.Collect(mapKeys(w.objects)), func(key string) bool { return key == pods+pod || strings.HasPrefix(key, pods+pod+"-") }) {
			continue
		}
		if w.pods[pod]++; w.pods[pod] > 1 {
			pod = fmt.Sprintf("%s-%d", pod, w.pods[pod])
		}
		cidr, _ := o["spec"].(object)["podCIDR"].(string)
		ip := strings.TrimSuffix(cidr, "0/24") + map[string]string{"k8slab": "2", "kube-flannel": "3", "kube-system": "4"}[namespace]
		w.objects[pods+pod] = object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": pod, "namespace": namespace,
			"ownerReferences": []object{{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": path.Base(at), "controller": true}}}, "spec": object{"nodeName": name},
			"status": object{"phase": "Running", "podIP": ip, "conditions": []object{{"type": "Ready", "status": "True"}}}}
		if b := w.machines[name]; b != nil && namespace == "kube-flannel" { // it tells the plugin when it starts
			b.noSubnet = false
			delete(b.files, subnetFile)
		}
	}
}

// addNode registers the machine. The caller has the lock.
func (w *world) addNode(b *box) {
	at := "/api/v1/nodes/" + b.node.Name
	cidr := fmt.Sprintf("10.244.%d.0/24", b.node.IP.As4()[3])
	w.objects[at] = object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": b.node.Name}, "spec": object{"podCIDR": cidr},
		"status": object{"nodeInfo": object{"machineID": b.facts.MachineID, "systemUUID": b.uuid}}}
}

// addToken adds a bootstrap token. The caller has the lock.
func (w *world) addToken(id, description string) {
	w.objects["/api/v1/namespaces/kube-system/secrets/bootstrap-token-"+id] = object{
		"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token", "metadata": object{"name": "bootstrap-token-" + id},
		"data": object{"description": base64.StdEncoding.EncodeToString([]byte(description))},
	}
}

// tokens are the descriptions of the bootstrap tokens that are left.
func (w *world) tokens() (all []string) {
	for at, o := range w.objects {
		if strings.Contains(at, "/bootstrap-token-") {
			text, _ := base64.StdEncoding.DecodeString(o["data"].(object)["description"].(string))
			all = append(all, string(text))
		}
	}
	slices.Sort(all)
	return all
}
