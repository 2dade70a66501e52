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
)

// What a circle leaves in the cluster before the fault, as a workload would, and looks for after it.
const (
	keptMap  = "fault-data" // ConfigMap in namespace default
	keptFile = "/var/lib/k8slab/fault-data"
)

// kept is what a recovery may not change, a line each, by the change that it would be.
type kept map[Change]map[string]string

// remember writes the workload's data and notes what must stay.
func (c *circle) remember(ctx context.Context) (kept, error) {
	value := c.result.Began.Format(time.RFC3339Nano)
	if _, err := c.site.kubectl(ctx, "delete", "configmap", keptMap, "--ignore-not-found"); err != nil {
		return nil, err
	}
	if _, err := c.site.kubectl(ctx, "create", "configmap", keptMap, "--from-literal=began="+value); err != nil {
		return nil, err
	}
	for _, m := range c.site.Members {
		// On the disk before the fault: a machine that loses power loses what was not, half a minute's worth.
		if err := c.site.shell(ctx, m.Name, `mkdir -p "${1%/*}" && printf %s "$2" > "$1" && sync "$1"`, keptFile, value); err != nil {
			return nil, err
		}
	}
	return c.look(ctx)
}

// look reads what must stay.
func (c *circle) look(ctx context.Context) (kept, error) {
	k := kept{Identity: {}, Boot: {}, Disk: {}}
	for _, m := range c.site.Members {
		out, err := c.site.Run(ctx, m.Name, "sh", "-ec", `
			cat /etc/machine-id
			echo "$(cat /proc/sys/kernel/random/boot_id) $(cut -d ' ' -f 22 /proc/1/stat)" # containers share the first
			sha256sum < /var/lib/kubelet/pki/kubelet-client-current.pem
			cat "$1" 2>&1 || true`, "sh", keptFile)
		if err != nil {
			return nil, err
		}
		lines := strings.SplitN(out, "\n", 4)
		if len(lines) < 4 {
			return nil, fmt.Errorf("%s: what must stay: %q", m.Name, out)
		}
		k[Boot][m.Name+"'s machine-id"] = lines[0] // even a machine that is made anew keeps it
		k[Boot][m.Name+"'s boot"] = lines[1]
		k[Identity][m.Name+"'s kubelet certificate"] = lines[2]
		k[Disk][m.Name+"'s file"] = lines[3]
	}
	if err := c.lookAtAPI(ctx, k); err != nil {
		return nil, err
	}
	return k, nil
}

func (c *circle) lookAtAPI(ctx context.Context, k kept) error {
	type object struct {
		Metadata struct{ Name, UID string }
		Data     map[string]string
	}
	var nodes struct{ Items []object }
	var own object
	err := errors.Join(c.get(ctx, &nodes, "nodes"), c.get(ctx, &own, "configmap", keptMap))
	if err != nil {
		return err
	}
	for _, n := range nodes.Items {
		k[Identity][n.Metadata.Name+"'s Node"] = n.Metadata.UID
	}
	k[Disk]["the ConfigMap"] = own.Data["began"]
	out, err := c.site.etcd(ctx, "member", "list")
	for line := range strings.Lines(out) {
		if fields := strings.Split(line, ", "); len(fields) > 2 {
			k[Identity][fields[2]+"'s etcd member"] = fields[0]
		}
	}
	return err
}

// get reads objects of the API.
func (c *circle) get(ctx context.Context, into any, what ...string) error {
	out, err := c.site.kubectl(ctx, append([]string{"get", "--output=json"}, what...)...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}

// compare wants everything that the fault may not change to be as it was, and nothing of the fault to be left.
func (c *circle) compare(ctx context.Context, before kept) error {
	c.step("compare with before")
	after, err := c.look(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, change := range slices.Sorted(maps.Keys(before)) {
		for _, what := range slices.Sorted(maps.Keys(before[change])) {
			if was, is := before[change][what], after[change][what]; was != is && !c.may(change, what) {
				errs = append(errs, fmt.Errorf("%s was %q and is %q: the recovery changed too much", what, was, is))
			}
		}
	}
	return errors.Join(append(errs, c.leftovers(ctx))...)
}

// may tells whether a fault is about what changed: on its own node, and on nodes of the same role if it says that it is about others too.
func (c *circle) may(change Change, what string) bool {
	return slices.ContainsFunc(c.faults, func(f placed) bool {
		node, _, _ := strings.Cut(what, "'s ")
		own := node == f.site.Node || slices.Contains(f.May, Others) && f.site.role(node) == f.site.role(f.site.Node)
		return own && (slices.Contains(f.May, change) || f.Outside && change == Identity)
	})
}

// leftovers finds what injectors name "fault-…" on the nodes and in the cluster.
func (c *circle) leftovers(ctx context.Context) error {
	tokens, err := c.site.kubectl(ctx, "get", "secrets", "--namespace=kube-system", "--selector="+ownerToken, "--output=name")
	keys, keysErr := c.site.etcd(ctx, "get", "--prefix", "--keys-only", writesKey+"-")
	if left := strings.Fields(tokens + " " + keys); err == nil && len(left) > 0 {
		err = fmt.Errorf("left of the fault in the cluster: %s", strings.Join(left, " "))
	}
	errs := []error{err, keysErr}
	for _, m := range c.site.Members {
		out, err := c.site.Run(ctx, m.Name, "sh", "-c", `
			systemctl list-units --all --plain --no-legend 'fault-*'
			nft list tables 2>/dev/null | grep -w fault
			tc qdisc show 2>/dev/null | grep -w "$1"
			grep '^fault ' /proc/mounts
			ip route show type unreachable
			ip -oneline address show label lo:fault
			ip -brief link show dev old0 2>/dev/null
			ls -d /run/k8slab.fault /var/lib/etcd.fault 2>/dev/null
			crictl --timeout 5s pods --quiet --name '^fault-'
			find /etc /opt/cni /usr/bin /usr/local/bin /run/systemd /var/lib/kubelet -xdev '(' -name '*.fault' -o -name 'fault-*' ')'
			true`, "sh", shaper)
		if err == nil && strings.TrimSpace(out) != "" {
			err = fmt.Errorf("%s: left of the fault: %s", m.Name, strings.Join(strings.Fields(out), " "))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// forget removes the workload's data.
func (c *circle) forget(ctx context.Context) error {
	_, err := c.site.kubectl(ctx, "delete", "configmap", keptMap, "--ignore-not-found")
	_, delErr := c.site.etcd(ctx, "del", writesKey)
	err = errors.Join(err, delErr)
	for _, m := range c.site.Members {
		_, rmErr := c.site.Run(ctx, m.Name, "rm", "--force", keptFile)
		err = errors.Join(err, rmErr)
	}
	return err
}

// writesKey is what is written to etcd, beside all that the API server keeps there.
const writesKey = "/k8slab/fault"

// writesBudget is how long etcd may take no writes in a fault that costs no quorum: an election is over in 2 s, a loaded computer is slower.
const writesBudget = 10 * time.Second

// watchWrites writes to etcd through the healthy control plane until the returned function is called, which says whether writes failed
// for long although the fault costs no quorum.
func (c *circle) watchWrites(ctx context.Context) (stop func() error) {
	if slices.ContainsFunc(c.faults, func(f placed) bool { return slices.Contains(f.May, Quorum) }) {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var longest time.Duration
	var why error
	wg.Go(func() {
		last := time.Now()
		for ctx.Err() == nil {
			_, err := c.site.etcd(ctx, "--command-timeout="+c.site.patiently(3*time.Second).String(), "put", writesKey, "1")
			gap := time.Since(last)
			if ctx.Err() == nil && gap > longest && err != nil {
				longest, why = gap, err
			}
			if err == nil {
				last = time.Now()
			}
			select {
			case <-ctx.Done():
			case <-time.After(c.site.patiently(time.Second)):
			}
		}
	})
	return func() error {
		cancel()
		wg.Wait()
		if longest < c.site.patiently(writesBudget) {
			return nil
		}
		return fmt.Errorf("etcd took no writes for %s, though the fault costs no quorum: %w", longest.Round(time.Second), why)
	}
}
