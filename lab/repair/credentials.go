package repair

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/symptom"
)

// credentials restores what control planes prove themselves with: the authorities' files that they share, from another control plane;
// certificates and kubeconfigs by kubeadm. One control plane after another: their static pods restart. What it reads stays in memory.
func (r *repairRun) credentials(ctx context.Context) error {
	sound := map[string]map[string]string{} // by node
	var members []config.Node
	for _, n := range r.Cluster.ControlPlanes() {
		if f := r.Fact(n); !f.Joined || f.Running() {
			continue
		}
		files, err := readFiles(ctx, r.Nodes[n.Name], pkiFiles()...)
		if err != nil {
			return err
		}
		members, sound[n.Name] = append(members, n), files
	}
	var errs []error
	for _, n := range members {
		donors := slices.DeleteFunc(slices.Clone(members), func(o config.Node) bool { return o.Name == n.Name })
		pods, err := r.share(ctx, n, donors, sound)
		if err == nil {
			var more []string
			more, err = r.renew(ctx, n, sound[n.Name])
			pods = append(pods, more...)
		}
		if slices.Sort(pods); err == nil && len(pods) > 0 && !r.DryRun {
			pods = slices.Compact(pods)
			err = restartPods(ctx, r.Nodes[n.Name], pods...)
			if err == nil {
				err = r.awaitManifests(ctx, n, pods...)
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// share restores the files of the authorities from another control plane that has them whole, as a join gets them. It returns the static
// pods that read them.
func (r *repairRun) share(ctx context.Context, n config.Node, donors []config.Node, all map[string]map[string]string) ([]string, error) {
	var pods []string
	files := all[n.Name]
	for _, s := range shared {
		public, key := pkiDir+s[0], pkiDir+s[1]
		if soundShared(files[public], files[key]) {
			continue
		}
		i := slices.IndexFunc(donors, func(o config.Node) bool { return soundShared(all[o.Name][public], all[o.Name][key]) })
		if i < 0 {
			continue // the ladder joins it again, or nobody has it
		}
		from := all[donors[i].Name]
		for _, file := range []string{public, key} {
			if files[file] == from[file] {
				continue
			}
			if !r.DryRun {
				if err := r.Nodes[n.Name].Copy(ctx, file, 0o600, strings.NewReader(from[file])); err != nil {
					return nil, err
				}
			}
			files[file] = from[file]
		}
		r.repaired(Repaired{Node: n.Name, Symptom: string(symptom.X509UnknownAuthority),
			Evidence: public + " and " + key + " cannot be read, or are not of each other"},
			"copy them from "+donors[i].Name, "copied them from "+donors[i].Name)
		pods = append(pods, "kube-apiserver", "kube-controller-manager")
		if strings.HasPrefix(s[0], "etcd/") {
			pods = append(pods, etcdPod)
		}
	}
	return pods, nil
}

// renew has kubeadm make the certificates and kubeconfigs anew that are missing or not valid, and returns the static pods that use them.
func (r *repairRun) renew(ctx context.Context, n config.Node, files map[string]string) (pods []string, err error) {
	now := time.Now()
	for _, l := range leaves {
		certificate, key := pkiDir+l.base+".crt", pkiDir+l.base+".key"
		authority := pkiDir + l.ca
		if !soundShared(files[authority+".crt"], files[authority+".key"]) {
			continue
		}
		wrong := wrongPair(files[certificate], files[key], files[authority+".crt"], r.names(n, l), now)
		if wrong == nil {
			continue
		}
		err := r.remake(ctx, n, wrong, []string{certificate, key}, "init", "phase", "certs", l.phase)
		if err != nil {
			return pods, err
		}
		pods = append(pods, l.pods...)
	}
	authority := files[pkiDir+"ca.crt"]
	if !soundShared(authority, files[pkiDir+"ca.key"]) {
		return pods, nil
	}
	for _, l := range logins {
		wrong := wrongLogin(files[l.file()], authority, r.Documents().Servers, now)
		if wrong == nil {
			continue
		}
		if err := r.remake(ctx, n, wrong, []string{l.file()}, "init", "phase", "kubeconfig", l.phase); err != nil {
			return pods, err
		}
		pods = append(pods, l.pods...)
	}
	return pods, nil
}

// remake moves the files aside and has kubeadm make them.
func (r *repairRun) remake(ctx context.Context, n config.Node, wrong error, files []string, phase ...string) error {
	if !r.DryRun {
		if err := save(ctx, r.Nodes[n.Name], files...); err != nil {
			return err
		}
		if _, err := r.kubeadm(ctx, n, false, phase...); err != nil {
			return err
		}
	}
	r.repaired(Repaired{Node: n.Name, Symptom: string(causeOf(wrong)), Evidence: fmt.Sprintf("%s: %v", files[0], wrong)},
		"have kubeadm make it: kubeadm "+strings.Join(phase, " "), "had kubeadm make it: kubeadm "+strings.Join(phase, " "))
	return nil
}

// causeOf is the cause that a wrong file is found as.
func causeOf(wrong error) symptom.ID {
	if _, expired := errors.AsType[*expiredError](wrong); expired {
		return symptom.CertificateExpired
	}
	return symptom.FileChanged
}

// names are those that the certificate must have.
func (r *repairRun) names(n config.Node, l leaf) []string {
	switch l.phase {
	case "apiserver":
		host, _, _ := net.SplitHostPort(r.Endpoint())
		return []string{n.Name, n.IP.String(), host, "kubernetes", "kubernetes.default.svc"}
	case "etcd-server", "etcd-peer":
		return []string{n.Name, n.IP.String(), "localhost", "127.0.0.1"}
	}
	return nil
}
