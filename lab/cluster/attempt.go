package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/etcdadmin"
	"k8slab/lab/event"
	"k8slab/lab/join"
	"k8slab/lab/session"
	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

// nodeJoin is the join of one node.
type nodeJoin struct {
	*Run
	node   config.Node
	pin    string // hash of the cluster's CA
	step   *event.Step
	number int // of the attempt, from 1; 0 when the node is only taken out
	events int // how many events of earlier attempts were read from the node
	// stopped says that this run ended the kubelet of the machine, which may have renewed the Lease until then.
	stopped bool
}

// joinNode gets the node into the cluster. labnode makes the attempts on the node; between them, the administrator's part is done here. The
// error is the first attempt's, because later attempts fail at what the first one left.
func (c *Run) joinNode(ctx context.Context, n config.Node, pin string) error {
	// The import fails while containerd is broken. The join may repair it: then the import is repeated.
	_, noImages := c.images(ctx, []config.Node{n}, false)
	j := &nodeJoin{Run: c, node: n, pin: pin, step: c.Events.Start(n.Name, "join", c.joinBudget())}
	o, err := join.Loop(ctx, c.joinPolicy(n.Role), j.attempt, j.repair)
	if err != nil {
		if o.Hint != "" {
			err = fmt.Errorf("%w\nnext: %s", err, o.Hint)
		}
		return j.step.End(c.joinFailed(n, fmt.Errorf("%s: %w", n.Name, err)))
	}
	if err := j.step.End(c.RefreshFacts(ctx, n)); err != nil || noImages == nil {
		return err
	}
	_, err = c.images(ctx, []config.Node{n}, false)
	return err
}

func (c *Run) joinPolicy(role config.Role) join.Policy {
	t := c.Cluster.Tuning
	seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
	p := join.Policy{
		Attempts: t.CPJoinRetryAttempts, Sleep: seconds(t.CPJoinRetrySleepSeconds), MaxSleep: seconds(t.CPJoinRetryMaxSleepSeconds),
		MaxTotal: seconds(t.CPJoinRetryMaxTotalSeconds), Jitter: rand.Float64,
	}
	if role == config.Worker {
		p.Attempts = t.WorkerJoinRetryAttempts
	}
	return p
}

// attempt makes one attempt with a token of its own, which is deleted when the attempt has ended.
func (j *nodeJoin) attempt(ctx context.Context, number int) (join.Outcome, error) {
	s := j.Session
	j.number = number
	o, err := j.clear(ctx)
	if err != nil || o.Symptom != "" {
		return j.announced(o), err
	}
	if o, err = j.admitted(ctx); err != nil || o.Symptom != "" {
		return j.announced(o), err
	}
	key := ""
	if j.node.Role == config.ControlPlane {
		if err := j.stable(ctx); err != nil {
			return join.Outcome{}, err
		}
		if key, err = j.uploadedKey(ctx); err != nil {
			return join.Outcome{}, err
		}
		defer j.showLearner(ctx)()
	}
	token, err := signedToken(ctx, s, j.Admin, joinMark(j.node.Name),
		func(evidence string) { j.cause(symptom.ControllerManagerFailing, "%s", evidence) })
	if err != nil {
		return unsigned(err)
	}
	text, err := marshal(joinDocuments(s, j.node, token, j.pin, key))
	if err == nil {
		stop := j.watchSide(ctx, token)
		o, err = runJoin(ctx, s, j.node.Name, j.command(), text, &j.events, j.joinBudget(), j.step)
		o = join.EndedBy(o, stop()) // before the token is deleted: the watch would make it again
	}
	if ctx.Err() != nil { // the join goes on without labctl and needs its token, which the next run deletes
		return j.announced(o), err
	}
	left := j.forgetToken(ctx, token)
	if err == nil && o.Joined && left != nil {
		j.step.Progress("warning: %v; it ends by itself within 30 minutes", left)
		left = nil
	}
	return j.announced(o), errors.Join(err, left)
}

// command is labnode's, with the machines that it may meet.
func (j *nodeJoin) command() []string {
	argv := []string{session.LabnodePath, "join", "--config", "-", "-o", "json", "--attempt", strconv.Itoa(j.number), "--attempts", "1"}
	for _, other := range j.Cluster.Members() {
		if id := j.machineID(other.Name); id != "" && other.Name != j.node.Name {
			argv = append(argv, "--known", other.Name+"="+id)
		}
	}
	return argv
}

// unsigned is the outcome of an attempt that got no token to join with.
func unsigned(err error) (join.Outcome, error) {
	if _, ok := errors.AsType[*unsignedError](err); !ok {
		return join.Outcome{}, err
	}
	return join.Outcome{Symptom: symptom.ControllerManagerFailing, Evidence: err.Error(), Phase: join.PhaseCluster, ExitCode: -1,
		Hint: "labctl diagnose; labctl repair mends a controller manager of the lab; then join again"}, nil
}

// forgetToken deletes an attempt's token, also after a failure. It retries, because the virtual IP may be moving to the new control plane.
func (j *nodeJoin) forgetToken(ctx context.Context, token string) error {
	budget := 15 * time.Second * time.Duration(j.TimeScale())
	return wait.For(ctx, "the join's token to be deleted", budget, j.Pace(), func(ctx context.Context) error {
		return j.Admin.Kube.DeleteBootstrapToken(ctx, token)
	})
}

// announced shows the cause of a failed attempt, unless a check on the node has shown it, and returns the outcome.
func (j *nodeJoin) announced(o join.Outcome) join.Outcome {
	shown := slices.ContainsFunc(o.Checks, func(c join.Check) bool { return c.Symptom == o.Symptom && c.Result != join.Warn })
	if !o.Joined && o.Symptom != "" && !shown {
		j.cause(o.Symptom, "%s", o.Evidence)
	}
	return o
}

// cause shows why the join cannot go on as it is, as soon as this is known.
func (j *nodeJoin) cause(id symptom.ID, format string, args ...any) {
	j.step.Progress(join.CauseMark+"%s: %s", id, fmt.Sprintf(format, args...))
}

// repair makes the part of a remedy that the node itself cannot make, and tells whether to try again. The next attempt clears the cluster.
func (j *nodeJoin) repair(ctx context.Context, failed join.Outcome) (bool, error) {
	action := join.Remedy(failed.Symptom)
	j.step.Progress("remedy: %s", action)
	switch {
	case action == join.Stop, refusedName(failed):
		return false, nil
	case action == join.UploadCertificates:
		j.forget()
	}
	return true, j.RefreshFacts(ctx, j.node)
}

// refusedName tells whether the Node of this name belongs to another machine: another attempt would not change that.
func refusedName(failed join.Outcome) bool {
	return failed.Symptom == symptom.NodeNameExists && failed.Phase == join.PhaseCluster
}

// forget makes the next control plane's join upload the certificates again.
func (c *Run) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.certificateKey = ""
}

// stable waits until another control plane may join: every etcd member must be a healthy voter.
func (j *nodeJoin) stable(ctx context.Context) error {
	j.step.Progress("every etcd member a healthy voter")
	return wait.For(ctx, "etcd before "+j.node.Name+" joins", j.StabilizeBudget(), j.Pace(), session.ShowWaiting(j.step, j.Admin.Etcd.Healthy))
}

// learnerEvery is the time between two reports of a learner's progress.
const learnerEvery = 2 * time.Second

// showLearner shows how far an etcd learner is behind, until the returned function is called.
func (j *nodeJoin) showLearner(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(learnerEvery)
		defer tick.Stop()
		var before etcd.Sample
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now, err := etcdadmin.Sample(ctx, j.Admin.Etcd.Status)
			if err != nil {
				continue
			}
			for _, p := range etcd.Learners(before, now) {
				j.step.Progress("etcd learner: %s", p)
			}
			before = now
		}
	}()
	return func() { cancel(); <-done }
}

// uploadedKey is the key to the control plane's certificates in the cluster. If this run did not upload them yet, it does now.
func (c *Run) uploadedKey(ctx context.Context) (string, error) {
	if c.certificateKey != "" {
		return c.certificateKey, nil
	}
	key, err := firstWithKubeadm(c.JoinedControlPlanes(), func(n config.Node) (string, error) { return uploadCertificates(ctx, c.Session, n) })
	if err == nil {
		c.certificateKey = key
	}
	return key, err
}
