package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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

// nodeJoin is one node's way into the cluster.
type nodeJoin struct {
	*Run
	node config.Node
	pin  string // of the cluster's CA
	step *event.Step
	// number is the attempt's, from 1; 0 when nothing is to join.
	number int
	heard  int // events of the series of attempts that the node has told
}

// joinNode gets the node into the cluster: attempts in the node, and between them what needs the cluster's administrator. The cause that is
// reported in the end is the first attempt's, because later ones fail at what the first left.
func (c *Run) joinNode(ctx context.Context, n config.Node, pin string) error {
	// containerd may be what the join is about to repair: then they are imported after it.
	noImages := c.images(ctx, []config.Node{n})
	j := &nodeJoin{Run: c, node: n, pin: pin, step: c.Events.Start(n.Name, "join", c.joinBudget())}
	o, err := join.Loop(ctx, c.joinPolicy(n.Role), j.attempt, j.repair)
	if err != nil {
		if o.Hint != "" {
			err = fmt.Errorf("%w\nnext: %s", err, o.Hint)
		}
		return j.step.End(c.joinFailed(n, fmt.Errorf("%s: %w", n.Name, err)))
	}
	if err := j.step.End(c.look(ctx, n)); err != nil || noImages == nil {
		return err
	}
	return c.images(ctx, []config.Node{n})
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
		return j.said(o), err
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
	token, err := signedToken(ctx, s, j.Admin, joinMark(j.node.Name))
	if err != nil {
		return join.Outcome{}, err
	}
	text, err := marshal(joinDocuments(s, j.node, token, j.pin, key))
	if err == nil {
		o, err = runJoin(ctx, s, j.node, text, number, &j.heard, j.joinBudget(), j.step)
	}
	if ctx.Err() != nil { // the join goes on in the node, by its token; the next run deletes it
		return j.said(o), err
	}
	left := j.forgetToken(ctx, token)
	if err == nil && o.Joined && left != nil {
		j.step.Progress("warning: %v; it ends by itself within 30 minutes", left)
		left = nil
	}
	return j.said(o), errors.Join(err, left)
}

// forgetTime bounds the deletion of a token. The virtual IP may just move to the control plane that has joined.
const forgetTime = 15 * time.Second

// forgetToken deletes an attempt's token, also after a failure.
func (j *nodeJoin) forgetToken(ctx context.Context, token string) error {
	budget := forgetTime * time.Duration(j.TimeScale())
	return wait.For(ctx, "the join's token to be deleted", budget, j.Pace(), func(ctx context.Context) error {
		return j.Admin.Kube.DeleteBootstrapToken(ctx, token)
	})
}

// said announces the cause of a failed attempt, unless a check in the node has.
func (j *nodeJoin) said(o join.Outcome) join.Outcome {
	told := slices.ContainsFunc(o.Checks, func(c join.Check) bool { return c.Symptom == o.Symptom && c.Result != join.Warn })
	if !o.Joined && o.Symptom != "" && !told {
		j.cause(o.Symptom, "%s", o.Evidence)
	}
	return o
}

// cause announces why a join does not go on as it is, as soon as it is known.
func (j *nodeJoin) cause(id symptom.ID, format string, args ...any) {
	j.step.Progress(join.CauseMark+"%s: %s", id, fmt.Sprintf(format, args...))
}

// repair does about a failed attempt's cause what the node itself could not. What is in the way in the cluster, the next attempt clears.
func (j *nodeJoin) repair(ctx context.Context, failed join.Outcome) (bool, error) {
	action := join.Remedy(failed.Symptom)
	j.step.Progress("remedy: %s", action)
	switch {
	case action == join.Stop, refusedName(failed):
		return false, nil
	case action == join.UploadCertificates:
		j.forget()
	}
	return true, j.look(ctx, j.node)
}

// refusedName tells whether the Node of the joining machine's name was found to be another's, which another attempt would find too.
func refusedName(failed join.Outcome) bool {
	return failed.Symptom == symptom.NodeNameExists && failed.Phase == join.PhaseCluster
}

// forget makes the next control plane's join upload the certificates again.
func (c *Run) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.certificateKey = ""
}

// stable waits until another control plane may join: the API answers and every etcd member is a healthy voter. It shows what it waits for.
func (j *nodeJoin) stable(ctx context.Context) error {
	j.step.Progress("every etcd member a healthy voter")
	return wait.For(ctx, "etcd before "+j.node.Name+" joins", j.Stabilize(), j.Pace(), session.Telling(j.step, j.Admin.Etcd.Healthy))
}

// learnerEvery is how often the learner's progress is looked at.
const learnerEvery = 2 * time.Second

// showLearner shows how far the learner is behind while it catches up; the function that it returns ends that.
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

// uploadedKey is the key of the certificates that are in the cluster for a control plane to fetch: init's own, or a new upload's.
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
