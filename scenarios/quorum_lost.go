package scenarios

import (
	"context"
	"errors"

	"k8slab/lab/symptom"
)

var quorumLost = Fault{
	Name:    "quorum-lost",
	Story:   "all control planes but one lost etcd's data: the last one is not a majority (kubeadm#2188)",
	Loses:   true,
	Roles:   controlPlane,
	Symptom: symptom.EtcdNoQuorum,
	Of:      theCluster,
	Applies: threeControlPlanes,
	Inject: func(ctx context.Context, t Target) error {
		for _, m := range t.otherControlPlanes() {
			// The manifest goes first, because kubelet would start etcd at once without data, and on the first control plane that would create a
			// new cluster.
			err := t.shell(ctx, m.Name, `
				mv /etc/kubernetes/manifests/etcd.yaml /etc/kubernetes/etcd.yaml.fault
				until test -z "$(crictl ps --quiet --state running --name '^etcd$')"; do sleep 0.3; done
				mv /var/lib/etcd /var/lib/etcd.fault
				mkdir --mode=0700 /var/lib/etcd`)
			if err != nil {
				return err
			}
		}
		return nil
	},
	Effect: func(ctx context.Context, t Target) error {
		t.ControlPlane = t.Node // the others have no etcd to ask with
		return memberDown(ctx, t)
	},
	Recover: [][]string{{"etcd", "snapshot", "save", File}, {"etcd", "snapshot", "restore", File, "--node", Node}, {"up"}},
	May:     []Change{Identity, Quorum, Others},
	Restore: func(ctx context.Context, t Target) error {
		var errs []error
		// A killed recovery left manifests outside of kubelet's directory. `up` resets the nodes whose cluster it had replaced.
		for _, m := range t.controlPlanes() {
			errs = append(errs, t.shell(ctx, m.Name, `
				cd /etc/kubernetes
				! test -d k8slab-parked || find k8slab-parked -name '*.yaml' -exec mv -f -t manifests {} +
				systemctl start kubelet`))
		}
		for _, m := range t.otherControlPlanes() {
			// A node with both data and a manifest has joined the new cluster, so its old data is of no use.
			errs = append(errs, t.shell(ctx, m.Name, `
				cd /etc/kubernetes
				if test -e /var/lib/etcd/member && test -e manifests/etcd.yaml; then
					rm -rf /var/lib/etcd.fault etcd.yaml.fault
				fi
				if test -e /var/lib/etcd.fault; then
					rm -rf /var/lib/etcd
					mv -T /var/lib/etcd.fault /var/lib/etcd
				fi
				if test -e etcd.yaml.fault; then
					mv etcd.yaml.fault manifests/etcd.yaml
				fi`))
		}
		return errors.Join(errs...)
	},
}
