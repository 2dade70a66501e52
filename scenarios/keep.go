package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// What an experiment writes to the cluster before the fault, as a workload would, and checks after it.
const (
	baselineMap  = "fault-data" // ConfigMap in namespace default
	baselineFile = "/var/lib/k8slab/fault-data"
)

// baseline is what a recovery must not change, by the kind of change.
type baseline map[Change]map[string]string

// remember writes the workload's data and reads the baseline.
func (e *experiment) remember(ctx context.Context) (baseline, error) {
	value := e.result.Began.Format(time.RFC3339Nano)
	var write errgroup.Group
	write.Go(func() error {
		if _, err := e.target.kubectl(ctx, "delete", "configmap", baselineMap, "--ignore-not-found"); err != nil {
			return err
		}
		_, err := e.target.kubectl(ctx, "create", "configmap", baselineMap, "--from-literal=began="+value)
		return err
	})
	_, err := e.onMembers(func(name string) (string, error) {
		// Synced, because a machine that loses power loses the last half minute of writes.
		return "", e.target.shell(ctx, name, `mkdir -p "${1%/*}" && printf %s "$2" > "$1" && sync "$1"`, baselineFile, value)
	})
	if err = errors.Join(err, write.Wait()); err != nil {
		return nil, err
	}
	return e.look(ctx)
}

// onMembers asks every node at the same time.
func (e *experiment) onMembers(ask func(name string) (string, error)) (answers map[string]string, err error) {
	outs, errs := make([]string, len(e.target.Members)), make([]error, len(e.target.Members))
	var wg sync.WaitGroup
	for i, m := range e.target.Members {
		wg.Go(func() { outs[i], errs[i] = ask(m.Name) })
	}
	wg.Wait()
	answers = map[string]string{}
	for i, m := range e.target.Members {
		answers[m.Name] = outs[i]
	}
	return answers, errors.Join(errs...)
}

// look reads the present baseline.
func (e *experiment) look(ctx context.Context) (baseline, error) {
	k := baseline{Identity: {}, Boot: {}, Disk: {}}
	answers, err := e.onMembers(func(name string) (string, error) {
		return e.target.Run(ctx, name, "sh", "-ec", `
			cat /etc/machine-id
			echo "$(cat /proc/sys/kernel/random/boot_id) $(cut -d ' ' -f 22 /proc/1/stat)" # containers share the first with their computer
			sha256sum < /var/lib/kubelet/pki/kubelet-client-current.pem
			cat "$1" 2>&1 || true`, "sh", baselineFile)
	})
	if err != nil {
		return nil, err
	}
	for name, out := range answers {
		lines := strings.SplitN(out, "\n", 4)
		if len(lines) < 4 {
			return nil, fmt.Errorf("%s: what must stay: %q", name, out)
		}
		k[Boot][name+"'s machine-id"] = lines[0] // a recreated machine keeps it
		k[Boot][name+"'s boot"] = lines[1]
		k[Identity][name+"'s kubelet certificate"] = lines[2]
		k[Disk][name+"'s file"] = lines[3]
	}
	if err := e.lookAtAPI(ctx, k); err != nil {
		return nil, err
	}
	return k, nil
}

func (e *experiment) lookAtAPI(ctx context.Context, k baseline) error {
	type object struct {
		Metadata struct{ Name, UID string }
		Data     map[string]string
	}
	var nodes struct{ Items []object }
	var own object
	var members string
	var ask errgroup.Group
	ask.Go(func() error { return e.get(ctx, &nodes, "nodes") })
	ask.Go(func() error { return e.get(ctx, &own, "configmap", baselineMap) })
	ask.Go(func() (err error) { members, err = e.target.etcd(ctx, "member", "list"); return err })
	if err := ask.Wait(); err != nil {
		return err
	}
	for _, n := range nodes.Items {
		k[Identity][n.Metadata.Name+"'s Node"] = n.Metadata.UID
	}
	k[Disk]["the ConfigMap"] = own.Data["began"]
	for line := range strings.Lines(members) {
		if fields := strings.Split(line, ", "); len(fields) > 2 {
			k[Identity][fields[2]+"'s etcd member"] = fields[0]
		}
	}
	return nil
}

// get reads objects of the API.
func (e *experiment) get(ctx context.Context, into any, what ...string) error {
	out, err := e.target.kubectl(ctx, append([]string{"get", "--output=json"}, what...)...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}

// prove checks that the diagnosis finds nothing that fails, that nothing changed but what the fault may change, and that nothing of it is left.
func (e *experiment) prove(ctx context.Context, before baseline) error {
	return together(
		func() error { return e.diagnoseAgain(ctx) },
		func() error { return e.changed(ctx, before) },
		func() error { return e.leftovers(ctx) },
	)
}

// together does all at the same time. The error has those of each.
func together(do ...func() error) error {
	errs := make([]error, len(do))
	var wg sync.WaitGroup
	for i, f := range do {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// changed checks that nothing changed but what the fault may change, and puts into the result what is lost.
func (e *experiment) changed(ctx context.Context, before baseline) error {
	e.step("compare with before")
	after, err := e.look(ctx)
	if err != nil {
		return err
	}
	var errs []error
	lost := []string{}
	for _, change := range slices.Sorted(maps.Keys(before)) {
		for _, what := range slices.Sorted(maps.Keys(before[change])) {
			was, is := before[change][what], after[change][what]
			if was != is && change == Disk {
				lost = append(lost, what)
			}
			if was != is && !e.may(change, what) {
				errs = append(errs, fmt.Errorf("%s was %q and is %q: the recovery changed too much", what, was, is))
			}
		}
	}
	e.result.Data.Lost = lost
	return errors.Join(errs...)
}

// may tells whether a fault allows the change: on its own node, and with Others on nodes of the same role.
func (e *experiment) may(change Change, what string) bool {
	return slices.ContainsFunc(e.faults, func(f placed) bool {
		node, _, _ := strings.Cut(what, "'s ")
		own := node == f.target.Node || slices.Contains(f.May, Others) && f.target.role(node) == f.target.role(f.target.Node)
		return own && (slices.Contains(f.May, change) || f.Outside && change == Identity)
	})
}

// leftovers finds what faults left on the nodes and in the cluster: what they create has "fault" in its name.
func (e *experiment) leftovers(ctx context.Context) error {
	inCluster := func(list string, err error) error {
		if left := strings.Fields(list); err == nil && len(left) > 0 {
			err = fmt.Errorf("left of the fault in the cluster: %s", strings.Join(left, " "))
		}
		return err
	}
	return together(
		func() error {
			return inCluster(e.target.kubectl(ctx, "get", "secrets", "--namespace=kube-system", "--selector="+ownerToken, "--output=name"))
		},
		func() error { return inCluster(e.target.etcd(ctx, "get", "--prefix", "--keys-only", writesKey+"-")) },
		func() error { return e.leftOnNodes(ctx) },
	)
}

func (e *experiment) leftOnNodes(ctx context.Context) error {
	_, err := e.onMembers(func(name string) (string, error) {
		out, err := e.target.Run(ctx, name, "sh", "-c", `
			systemctl list-units --all --plain --no-legend 'fault-*'
			nft list tables 2>/dev/null | grep -w fault
			tc qdisc show 2>/dev/null | grep -w "$1"
			grep '^fault ' /proc/mounts
			ip route show type unreachable
			ip -oneline address show label lo:fault
			ip -brief link show dev old0 2>/dev/null
			ls -d /run/k8slab.fault /var/lib/etcd.fault `+keptFiles+` 2>/dev/null
			crictl --timeout 5s pods --quiet --name '^fault-'
			find /etc /opt/cni /usr/bin /usr/local/bin /run/systemd /var/lib/kubelet -xdev '(' -name '*.fault' -o -name 'fault-*' ')'
			true`, "sh", shaper)
		if err == nil && strings.TrimSpace(out) != "" {
			err = fmt.Errorf("%s: left of the fault: %s", name, strings.Join(strings.Fields(out), " "))
		}
		return "", err
	})
	return err
}

// forget removes the workload's data.
func (e *experiment) forget(ctx context.Context) error {
	return together(
		func() error {
			_, err := e.target.kubectl(ctx, "delete", "configmap", baselineMap, "--ignore-not-found")
			return err
		},
		func() error {
			_, err := e.target.etcd(ctx, "del", writesKey)
			_, counted := e.target.etcd(ctx, "del", countKey)
			return errors.Join(err, counted)
		},
		func() error {
			_, err := e.onMembers(func(name string) (string, error) {
				return e.target.Run(ctx, name, "sh", "-ec", `rm -f "$1"; rmdir --ignore-fail-on-non-empty "${1%/*}"`, "sh", baselineFile)
			})
			return err
		},
	)
}

// watchWrites writes to etcd until stop is called. stop puts into the result how it went. It returns an error if writes failed for too long, or
// an acknowledged one is lost, unless the fault may break the quorum.
func (e *experiment) watchWrites(ctx context.Context) (stop func() error) {
	w, end := startWriter(ctx, e.target)
	return func() error {
		end()
		err := w.told(ctx, &e.result.Data)
		if slices.ContainsFunc(e.faults, func(f placed) bool { return slices.Contains(f.May, Quorum) }) {
			return nil
		}
		return err
	}
}
