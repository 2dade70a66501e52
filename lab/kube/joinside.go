package kube

import (
	"context"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JoinSide is what the cluster shows of joins with bootstrap tokens.
type JoinSide struct {
	Needs  []JoinNeed // what is missing
	CSRs   []CSR
	Tokens []string // IDs of the bootstrap tokens
}

// JoinNeed is something of the cluster that joins with a bootstrap token need. A phase of `kubeadm init` has made it, and makes it again.
type JoinNeed struct {
	What  string // in words
	Right bool   // a right, and not a ConfigMap
	Later bool   // it is needed only after the join
	Phase string // of `kubeadm init phase`, its words separated by spaces
}

// Words names the needs in one line.
func Words(needs []JoinNeed) string {
	var all []string
	for _, n := range needs {
		all = append(all, n.What)
	}
	return strings.Join(all, "; ")
}

// The phases of `kubeadm init` that make what joins need (kubeadm 1.31 to 1.37: cmd/phases/init/bootstraptoken.go and uploadconfig.go).
const (
	PhaseBootstrapToken = "bootstrap-token"
	phaseUploadKubeadm  = "upload-config kubeadm"
	phaseUploadKubelet  = "upload-config kubelet"
)

// NodeUser is before a Node's name in the user of its kubelet.
const NodeUser = "system:node:"

const (
	tokenUser   = "system:bootstrap:"
	nodesGroup  = "system:nodes"
	csrGroup    = "certificates.k8s.io"
	csrResource = "certificatesigningrequests"
	// nodeClientSigner issues the certificates that kubelets join with.
	nodeClientSigner = certificatesv1.KubeAPIServerClientKubeletSignerName
)

// identity is whom the API server is asked about.
type identity struct {
	who, user string
	groups    []string
}

var (
	bootstrapIdentity = identity{"bootstrap tokens", tokenUser + "k8slab",
		[]string{"system:bootstrappers", tokenGroups, "system:authenticated"}}
	kubeletIdentity   = identity{"kubelets", NodeUser + "k8slab", []string{nodesGroup, "system:authenticated"}}
	anonymousIdentity = identity{"machines without credentials", "system:anonymous", []string{"system:unauthenticated"}}
)

// joinRight is what an identity must be allowed to do, and the object by which kubeadm allows it.
type joinRight struct {
	identity
	may       authorizationv1.ResourceAttributes
	by, phase string
	later     bool
}

func csrRight(who identity, subresource, by string, later bool) joinRight {
	may := authorizationv1.ResourceAttributes{Verb: "create", Group: csrGroup, Resource: csrResource, Subresource: subresource}
	return joinRight{who, may, "ClusterRoleBinding kubeadm:" + by, PhaseBootstrapToken, later}
}

func configRight(who identity, namespace, name, by, phase string) joinRight {
	may := authorizationv1.ResourceAttributes{Verb: "get", Resource: "configmaps", Namespace: namespace, Name: name}
	return joinRight{who, may, "RoleBinding kubeadm:" + by, phase, false}
}

// joinRights are asked for by what they allow, not by their names: a cluster may allow it in another way.
var joinRights = []joinRight{
	configRight(anonymousIdentity, metav1.NamespacePublic, clusterInfo, "bootstrap-signer-clusterinfo", PhaseBootstrapToken),
	configRight(bootstrapIdentity, metav1.NamespaceSystem, kubeadmConfig, "nodes-kubeadm-config", phaseUploadKubeadm),
	configRight(bootstrapIdentity, metav1.NamespaceSystem, kubeletConfig, "kubelet-config", phaseUploadKubelet),
	{bootstrapIdentity, authorizationv1.ResourceAttributes{Verb: "get", Resource: "nodes"}, "ClusterRoleBinding kubeadm:get-nodes",
		PhaseBootstrapToken, false},
	csrRight(bootstrapIdentity, "", "kubelet-bootstrap", false),
	csrRight(bootstrapIdentity, "nodeclient", "node-autoapprove-bootstrap", false),
	csrRight(kubeletIdentity, "selfnodeclient", "node-autoapprove-certificate-rotation", true),
}

const (
	kubeadmConfig = "kubeadm-config"
	kubeletConfig = "kubelet-config"
)

// joinConfig is a ConfigMap that a joining machine reads, with the key in which it looks, and the kind of what is there.
type joinConfig struct{ namespace, name, key, kind, phase string }

var joinConfigs = []joinConfig{
	{metav1.NamespacePublic, clusterInfo, "kubeconfig", "Config", PhaseBootstrapToken},
	{metav1.NamespaceSystem, kubeadmConfig, "ClusterConfiguration", "ClusterConfiguration", phaseUploadKubeadm},
	{metav1.NamespaceSystem, kubeletConfig, "kubelet", "KubeletConfiguration", phaseUploadKubelet},
}

// unreadable says why a joining machine cannot read the document, nil if it can.
func (j joinConfig) unreadable(text string) error {
	_, err := documentOf(text, j.kind)
	if err == nil && j.name == clusterInfo {
		_, _, err = currentCluster([]byte(text))
	}
	return err
}

// JoinSide asks for all that a join needs of the cluster, and for what joins have left in it.
func (c *Client) JoinSide(ctx context.Context) (s JoinSide, err error) {
	if s.Needs, err = c.MissingForJoins(ctx); err != nil {
		return s, err
	}
	if s.CSRs, err = c.CSRs(ctx); err != nil {
		return s, err
	}
	s.Tokens, err = c.BootstrapTokens(ctx, "")
	return s, err
}

// MissingForJoins lists what the cluster lacks for a join with a bootstrap token: ConfigMaps first, then rights. It changes nothing.
func (c *Client) MissingForJoins(ctx context.Context) (missing []JoinNeed, err error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	for _, need := range joinConfigs {
		m, err := c.set.CoreV1().ConfigMaps(need.namespace).Get(ctx, need.name, metav1.GetOptions{})
		what := fmt.Sprintf("ConfigMap %s/%s", need.namespace, need.name)
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, JoinNeed{What: what + " is missing", Phase: need.phase})
		case err != nil:
			return nil, fmt.Errorf("get %s: %w", what, err)
		case strings.TrimSpace(m.Data[need.key]) == "":
			missing = append(missing, JoinNeed{What: fmt.Sprintf("%s has no %s", what, need.key), Phase: need.phase})
		default:
			if err := need.unreadable(m.Data[need.key]); err != nil {
				missing = append(missing, JoinNeed{What: fmt.Sprintf("%s cannot be used: %v", what, err), Phase: need.phase})
			}
		}
	}
	for _, r := range joinRights {
		may, err := c.may(ctx, r.identity, r.may)
		if err != nil {
			return nil, err
		}
		if !may {
			missing = append(missing, JoinNeed{What: fmt.Sprintf("%s may not %s: kubeadm's %s is missing or changed", r.who, inWords(r.may), r.by),
				Right: true, Later: r.later, Phase: r.phase})
		}
	}
	return missing, nil
}

// may asks whether the identity has the right.
func (c *Client) may(ctx context.Context, who identity, right authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.user, Groups: who.groups, ResourceAttributes: right.DeepCopy(),
	}}
	answer, err := c.set.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask what %s may do: %w", who.who, err)
	}
	return answer.Status.Allowed, nil
}

func inWords(a authorizationv1.ResourceAttributes) string {
	text := a.Verb + " " + a.Resource
	if a.Subresource != "" {
		text += "/" + a.Subresource
	}
	if a.Name != "" {
		text += " " + a.Namespace + "/" + a.Name
	}
	return text
}

// TokenID is the ID of the bootstrap token that made the request of a kubelet for its first certificate, "" for every other request.
func (r CSR) TokenID() string {
	if id, ok := strings.CutPrefix(r.Requester, tokenUser); ok && r.Signer == nodeClientSigner {
		return id
	}
	return ""
}

// ApproveCSR approves a request for a certificate. One that is approved already stays as it is.
func (c *Client) ApproveCSR(ctx context.Context, name, why string) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	requests := c.set.CertificatesV1().CertificateSigningRequests()
	r, err := requests.Get(ctx, name, metav1.GetOptions{})
	if err == nil && csrState(r) == "pending" {
		r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "K8slabApproved", Message: why,
		})
		_, err = requests.UpdateApproval(ctx, name, r, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return fmt.Errorf("approve certificate signing request %s: %w", name, err)
	}
	return nil
}

// Components whose instances elect a leader.
const (
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
)

// Leader is the identity of the instance of a component that leads, and when it last renewed its Lease, by its machine's clock. Both are
// empty when there is no Lease: an instance that is alone may run without one.
func (c *Client) Leader(ctx context.Context, component string) (holder string, renewed time.Time, err error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	lease, err := c.set.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, component, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", time.Time{}, nil
	case err != nil:
		return "", time.Time{}, fmt.Errorf("get the lease of %s: %w", component, err)
	}
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	if lease.Spec.RenewTime != nil {
		renewed = lease.Spec.RenewTime.Time
	}
	return holder, renewed, nil
}

// EnsureBootstrapToken makes a token that somebody deleted again, with the same ID and secret; one that is there stays as it is.
func (c *Client) EnsureBootstrapToken(ctx context.Context, token string, ttl time.Duration, description string) error {
	id, err := tokenID(token)
	if err != nil {
		return err
	}
	_, secret, _ := strings.Cut(token, ".")
	ctx, cancel := c.bound(ctx)
	defer cancel()
	object := tokenSecret(id, secret, description, time.Now().Add(ttl))
	_, err = c.set.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make bootstrap token %s again: %w", id, err)
	}
	return nil
}
