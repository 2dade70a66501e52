package kube

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The names below are the bootstrap token contract between kubeadm, the token authenticator and the signing controller.
const (
	tokenSecretPrefix = "bootstrap-token-"
	tokenSecretType   = corev1.SecretType("bootstrap.kubernetes.io/token")
	tokenGroups       = "system:bootstrappers:kubeadm:default-node-token"
	clusterInfo       = "cluster-info"
	jwsPrefix         = "jws-kubeconfig-"
)

var tokenPattern = regexp.MustCompile(`^([a-z0-9]{6})(\.[a-z0-9]{16})?$`)

// BootstrapTokens lists the IDs of the bootstrap tokens whose description starts with the prefix, expired ones that were not cleaned up yet
// included. The secret halves are not returned.
func (c *Client) BootstrapTokens(ctx context.Context, descriptionPrefix string) ([]string, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	list, err := c.set.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
		FieldSelector: "type=" + string(tokenSecretType),
	})
	if err != nil {
		return nil, fmt.Errorf("list bootstrap tokens: %w", err)
	}
	var ids []string
	for _, s := range list.Items {
		id, ok := strings.CutPrefix(s.Name, tokenSecretPrefix)
		if ok && strings.HasPrefix(string(s.Data["description"]), descriptionPrefix) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// CreateBootstrapToken makes a token nodes can join with until ttl has passed.
func (c *Client) CreateBootstrapToken(ctx context.Context, ttl time.Duration, description string) (token string, err error) {
	if ttl <= 0 {
		return "", fmt.Errorf("create bootstrap token: lifetime %s is not positive", ttl)
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	id, secret := NewToken()
	object := tokenSecret(id, secret, description, time.Now().Add(ttl))
	_, err = c.set.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) { // a repeated request: no other token has this random name
		return "", fmt.Errorf("create bootstrap token: %w", err)
	}
	return id + "." + secret, nil
}

// DeleteBootstrapToken deletes a token given whole or by its ID; one that is absent is fine.
func (c *Client) DeleteBootstrapToken(ctx context.Context, tokenOrID string) error {
	id, err := tokenID(tokenOrID)
	if err != nil {
		return err
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	err = c.set.CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, tokenSecretPrefix+id, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete bootstrap token %s: %w", id, err)
	}
	return nil
}

// ClusterInfoHasJWS reports whether the public cluster-info is signed with a
// token yet; a node cannot discover the cluster with the token before.
func (c *Client) ClusterInfoHasJWS(ctx context.Context, tokenOrID string) (bool, error) {
	id, err := tokenID(tokenOrID)
	if err != nil {
		return false, err
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	info, err := c.set.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, clusterInfo, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get configmap %s/%s: %w", metav1.NamespacePublic, clusterInfo, err)
	}
	return info.Data[jwsPrefix+id] != "", nil
}

// NewToken draws a bootstrap token, id.secret. Text is at least 26 random characters of A-Z2-7,
// whose lower case is within a token's alphabet; 16 of them are 80 bits.
func NewToken() (id, secret string) {
	text := strings.ToLower(rand.Text())
	return text[:6], text[6:22]
}

// tokenID takes the ID out of a token, or an ID as it is. Its error must not repeat the input, which may be most of a secret.
func tokenID(tokenOrID string) (string, error) {
	m := tokenPattern.FindStringSubmatch(tokenOrID)
	if m == nil {
		return "", errors.New("read bootstrap token: it is neither an id nor id.secret")
	}
	return m[1], nil
}

func tokenSecret(id, secret, description string, expires time.Time) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: tokenSecretPrefix + id, Namespace: metav1.NamespaceSystem},
		Type:       tokenSecretType,
		Data: map[string][]byte{
			"token-id":                       []byte(id),
			"token-secret":                   []byte(secret),
			"expiration":                     []byte(expires.UTC().Format(time.RFC3339)),
			"description":                    []byte(description),
			"usage-bootstrap-signing":        []byte("true"),
			"usage-bootstrap-authentication": []byte("true"),
			"auth-extra-groups":              []byte(tokenGroups),
		},
	}
}

// EnsureSecret makes the Secret have exactly this data, and writes nothing if it does. Unlike Apply it stores no hash, with which a guess
// of the secret could be checked.
func (c *Client) EnsureSecret(ctx context.Context, namespace, name string, data map[string][]byte) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	secrets := c.set.CoreV1().Secrets(namespace)
	live, err := secrets.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
		_, err = secrets.Create(ctx, made, metav1.CreateOptions{FieldManager: fieldManager})
	case err == nil && maps.EqualFunc(live.Data, data, slices.Equal):
		return nil
	case err == nil:
		live.Data = data
		_, err = secrets.Update(ctx, live, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return fmt.Errorf("write secret %s/%s: %w", namespace, name, err)
	}
	return nil
}
