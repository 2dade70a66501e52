package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LostRight is a right that a part of the cluster works by, and that somebody took away.
type LostRight struct {
	What  string // in words, with the object by which it is given
	Addon string // of kubeadm whose manifest gives it; "" where each API server gives it again when it starts
}

// Denied tells whether an error says that the client may not do what it asked for.
func Denied(err error) bool { return apierrors.IsForbidden(err) }

// addonRights are those of kubeadm's add-ons, asked for by what they allow.
var addonRights = []struct {
	identity
	resource, by, addon string
}{
	{accountOf("kube-proxy"), "endpointslices", "ClusterRoleBinding kubeadm:node-proxier", "kube-proxy"},
	{accountOf("coredns"), "endpointslices", "ClusterRole or ClusterRoleBinding system:coredns", "coredns"},
}

func accountOf(name string) identity {
	return identity{name, "system:serviceaccount:" + metav1.NamespaceSystem + ":" + name,
		[]string{"system:serviceaccounts", "system:serviceaccounts:" + metav1.NamespaceSystem, "system:authenticated"}}
}

// LostRights lists what the cluster's own parts lack: the add-ons of kubeadm, and what API servers give by default (k8s.io/kubernetes 1.31 to
// 1.37: plugin/pkg/auth/authorizer/rbac/bootstrappolicy). It changes nothing.
func (c *Client) LostRights(ctx context.Context) (lost []LostRight, err error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	for _, r := range addonRights {
		right := authorizationv1.ResourceAttributes{Verb: "list", Group: "discovery.k8s.io", Resource: r.resource}
		may, err := c.may(ctx, r.identity, right)
		if err != nil {
			return nil, err
		}
		if !may {
			lost = append(lost, LostRight{fmt.Sprintf("%s may not %s: kubeadm's %s is missing or changed", r.who, inWords(right), r.by), r.addon})
		}
	}
	words, err := c.lostDefaults(ctx)
	for _, w := range words {
		lost = append(lost, LostRight{What: w})
	}
	return lost, err
}

// defaults mark what API servers make when they start, and may be read from their memory.
var defaults = metav1.ListOptions{LabelSelector: "kubernetes.io/bootstrapping=rbac-defaults", ResourceVersion: "0"}

// boundAlone are the default roles with a binding of their own name, beside the controllers'. The binding of system:node has nobody.
var boundAlone = []string{"cluster-admin", "system:kube-controller-manager", "system:kube-scheduler", "system:volume-scheduler", "system:node-proxier",
	"system:kube-dns", "system:discovery", "system:basic-user", "system:monitoring", "system:public-info-viewer", "system:service-account-issuer-discovery"}

const nobody = "system:node"

// lostDefaults compares the default roles and bindings with each other: who deletes or empties one leaves the other.
func (c *Client) lostDefaults(ctx context.Context) (lost []string, err error) {
	roles, err := c.set.RbacV1().ClusterRoles().List(ctx, defaults)
	if err != nil {
		return nil, fmt.Errorf("list default cluster roles: %w", err)
	}
	bindings, err := c.set.RbacV1().ClusterRoleBindings().List(ctx, defaults)
	if err != nil {
		return nil, fmt.Errorf("list default cluster role bindings: %w", err)
	}
	if len(roles.Items) == 0 && len(bindings.Items) == 0 { // not a cluster that has them
		return nil, nil
	}
	full := map[string]bool{}
	for _, r := range roles.Items {
		full[r.Name] = len(r.Rules) > 0 || r.AggregationRule != nil
	}
	bound := map[string]rbacv1.ClusterRoleBinding{}
	for _, b := range bindings.Items {
		bound[b.Name] = b
	}
	for _, name := range slices.Sorted(maps.Keys(full)) {
		_, ok := bound[name]
		switch {
		case !full[name]:
			lost = append(lost, "ClusterRole "+name+" allows nothing")
		case !ok && (strings.HasPrefix(name, "system:controller:") || slices.Contains(boundAlone, name)):
			lost = append(lost, "ClusterRoleBinding "+name+" is missing")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(bound)) {
		b := bound[name]
		if _, ok := full[b.RoleRef.Name]; !ok {
			lost = append(lost, "ClusterRole "+b.RoleRef.Name+" is missing")
		}
		if len(b.Subjects) == 0 && name != nobody {
			lost = append(lost, "ClusterRoleBinding "+name+" is for nobody")
		}
	}
	local, err := c.lostLocally(ctx)
	return append(lost, local...), err
}

// lostLocally is lostDefaults for the roles of the cluster's own namespaces. Each role is named by a binding.
func (c *Client) lostLocally(ctx context.Context) (lost []string, err error) {
	for _, namespace := range []string{metav1.NamespaceSystem, metav1.NamespacePublic} {
		roles, err := c.set.RbacV1().Roles(namespace).List(ctx, defaults)
		if err != nil {
			return nil, fmt.Errorf("list default roles: %w", err)
		}
		bindings, err := c.set.RbacV1().RoleBindings(namespace).List(ctx, defaults)
		if err != nil {
			return nil, fmt.Errorf("list default role bindings: %w", err)
		}
		named, there := map[string]bool{}, map[string]bool{}
		for _, r := range roles.Items {
			there[r.Name] = true
			if len(r.Rules) == 0 {
				lost = append(lost, fmt.Sprintf("Role %s/%s allows nothing", namespace, r.Name))
			}
		}
		for _, b := range bindings.Items {
			named[b.RoleRef.Name] = true
			switch {
			case len(b.Subjects) == 0:
				lost = append(lost, fmt.Sprintf("RoleBinding %s/%s is for nobody", namespace, b.Name))
			case !there[b.RoleRef.Name]:
				lost = append(lost, fmt.Sprintf("Role %s/%s is missing", namespace, b.RoleRef.Name))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(there)) {
			if !named[name] {
				lost = append(lost, fmt.Sprintf("the RoleBinding of Role %s/%s is missing", namespace, name))
			}
		}
	}
	return lost, nil
}

// Administrators is the binding that gives kubeadm's admin.conf its rights (kubeadm 1.29 and newer).
const Administrators = "kubeadm:cluster-admins"

// AdministratorsMay tells whether kubeadm's administrators may do everything.
func (c *Client) AdministratorsMay(ctx context.Context) (bool, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	return c.may(ctx, identity{"kubeadm's administrators", "kubernetes-admin", []string{Administrators, "system:authenticated"}},
		authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"})
}

// RestoreAdministrators makes the binding of kubeadm's administrators and the role in it anew. The client's own rights must come from
// elsewhere.
func (c *Client) RestoreAdministrators(ctx context.Context) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	roles, bindings := c.set.RbacV1().ClusterRoles(), c.set.RbacV1().ClusterRoleBindings()
	const role = "cluster-admin"
	all := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}, {NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}}
	is, err := roles.Get(ctx, role, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = roles.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: all}, metav1.CreateOptions{FieldManager: fieldManager})
	case err == nil:
		is.Rules = all
		_, err = roles.Update(ctx, is, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return fmt.Errorf("restore ClusterRole %s: %w", role, err)
	}
	if err = bindings.Delete(ctx, Administrators, metav1.DeleteOptions{}); err == nil || apierrors.IsNotFound(err) { // its role cannot be changed
		_, err = bindings.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: Administrators},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: Administrators}},
		}, metav1.CreateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return fmt.Errorf("restore ClusterRoleBinding %s: %w", Administrators, err)
	}
	return nil
}
