package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8slab/config"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/node"
	"k8slab/lab/wait"
)

// clusterSide is what the cluster shows of joins, looked at for all joins of a run together: a look is a dozen requests.
type clusterSide struct {
	mu   sync.Mutex
	at   time.Time // when the look began
	seen kube.JoinSide
	err  error
}

// side is the cluster's side of the joins: see clusterSide.get.
func (c *Run) side(ctx context.Context, since time.Time) (kube.JoinSide, error) {
	return c.joinSide.get(ctx, since, c.Admin.Kube.JoinSide)
}

// get is at most one look old, and not older than since.
func (s *clusterSide) get(ctx context.Context, since time.Time, look func(context.Context) (kube.JoinSide, error)) (kube.JoinSide, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.Before(since) || time.Since(s.at) >= join.SideEvery/2 || s.err != nil {
		s.at = time.Now()
		s.seen, s.err = look(ctx)
	}
	return s.seen, s.err
}

// lacking is what the cluster lacks for joins. Denied rights are asked for again: an API server that has just started denies everything
// until it has read its roles.
func (c *Run) lacking(ctx context.Context) (needs []kube.JoinNeed, err error) {
	isRight := func(n kube.JoinNeed) bool { return n.Right }
	side, err := c.side(ctx, time.Time{})
	if needs = side.Needs; err != nil || !slices.ContainsFunc(needs, isRight) {
		return needs, err
	}
	_ = wait.For(ctx, "the rights that joins need", join.SideEvery*time.Duration(c.TimeScale()), c.Pace(), func(ctx context.Context) error {
		again, err := c.Admin.Kube.MissingForJoins(ctx)
		if err != nil { // the last answer holds
			return err
		}
		if needs = again; slices.ContainsFunc(needs, isRight) {
			return errors.New(kube.Words(needs))
		}
		return nil
	})
	return needs, nil
}

// restoreConfig has the configuration for kubeadm on a control plane that restores what joins need. Another kubeadm may run there.
const restoreConfig = "/run/k8slab/restore.yaml"

// RestoreJoins restores what the cluster lacks for joins, by the phases of kubeadm that have made it, and says what that was. The lab's
// cluster was made by kubeadm, with a configuration that the lab makes again.
func (c *Run) RestoreJoins(ctx context.Context) (restored []kube.JoinNeed, err error) {
	c.restoring.Lock() // another join may be doing it
	defer c.restoring.Unlock()
	needs, err := c.Admin.Kube.MissingForJoins(ctx)
	if err != nil || len(needs) == 0 {
		return nil, err
	}
	var phases []string
	for _, n := range needs {
		phases = append(phases, n.Phase)
		if err == nil && n.Phase == kube.PhaseBootstrapToken && !n.Right {
			err = c.Admin.Kube.DropClusterInfo(ctx)
		}
	}
	slices.Sort(phases)
	phases = slices.Compact(phases)
	if err == nil {
		err = c.MakeAgain(ctx, phases)
	}
	if err != nil {
		return nil, fmt.Errorf("restore what joins need (%s): %w", kube.Words(needs), err)
	}
	left, err := c.Admin.Kube.MissingForJoins(ctx)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("`kubeadm init phase %s` did not restore it: %s; next: look at these objects, delete those that were changed, "+
			"and try again", strings.Join(phases, "`, `kubeadm init phase "), kube.Words(left))
	}
	c.joinSide.mu.Lock()
	c.joinSide.at = time.Time{}
	c.joinSide.mu.Unlock()
	return needs, err
}

// MakeAgain runs phases of `kubeadm init` with the lab's configuration, on the first control plane that has kubeadm.
func (c *Run) MakeAgain(ctx context.Context, phases []string) error {
	_, err := firstWithKubeadm(c.JoinedControlPlanes(), func(n config.Node) (string, error) { return "", c.initPhases(ctx, n, phases) })
	return err
}

// initPhases runs phases of `kubeadm init` on a control plane. bootstrap-token wants to make a token: it is deleted again.
func (c *Run) initPhases(ctx context.Context, on config.Node, phases []string) (err error) {
	id, secret := kube.NewToken()
	text, err := marshal(initDocuments(c.Session, on, id+"."+secret, ""))
	if c.Cluster.OverSSH() { // kubeadm's record of the cluster is its own
		text, err = Configuration(ctx, c.Session, c.Admin, on, id+"."+secret, nil)
	}
	if err != nil {
		return err
	}
	n := c.Nodes[on.Name]
	if err := n.Copy(ctx, restoreConfig, 0o600, strings.NewReader(text)); err != nil {
		return err
	}
	for _, phase := range phases {
		argv := append([]string{"kubeadm", "init", "phase"}, strings.Fields(phase)...)
		if phase == kube.PhaseBootstrapToken {
			argv = append(argv, "--skip-token-print")
		}
		if err = n.Run(ctx, node.Command{Argv: append(argv, "--config", restoreConfig)}); err != nil {
			break
		}
	}
	ctx = context.WithoutCancel(ctx)
	if slices.Contains(phases, kube.PhaseBootstrapToken) {
		err = errors.Join(err, c.Admin.Kube.DeleteBootstrapToken(ctx, id))
	}
	return errors.Join(err, n.Run(ctx, node.Command{Argv: []string{"rm", "-f", restoreConfig}}))
}

// admitted prepares the cluster for the join: it restores what joins need, and asks whether admission would keep the Node out, for which
// no attempt is of use. What cannot be seen now is looked for again while the join runs.
func (j *nodeJoin) admitted(ctx context.Context) (join.Outcome, error) {
	needs, err := j.lacking(ctx)
	if err != nil {
		j.step.Progress("the cluster's side of the join cannot be seen yet: %v", err)
		return join.Outcome{}, nil
	}
	for _, f := range join.NeedFaults(needs) {
		j.cause(f.Symptom, "%s", f.Evidence)
	}
	if len(needs) > 0 {
		if err := j.restoreJoins(ctx); err != nil {
			return join.Outcome{}, err
		}
	}
	return j.rejected(ctx), nil
}

// rejected is the outcome of a join whose Node admission keeps out. A webhook that does not answer may be about to start.
func (j *nodeJoin) rejected(ctx context.Context) (o join.Outcome) {
	budget := join.SilentLimit * time.Duration(j.TimeScale())
	told := false
	_ = wait.For(ctx, "the admission of "+j.node.Name, budget, time.Second, func(ctx context.Context) error {
		rejection, err := j.Admin.Kube.RejectsNode(ctx, j.node.Name)
		if ctx.Err() != nil { // this question was cut off: the last answer counts
			return ctx.Err()
		}
		o = join.Outcome{}
		if err != nil || rejection == nil {
			return nil
		}
		f := join.RejectionFault(rejection, j.node.Name)
		o = join.Outcome{Symptom: f.Symptom, Evidence: f.Evidence, Hint: f.Hint, Phase: join.PhaseCluster, ExitCode: -1}
		if !rejection.Silent {
			return nil
		}
		if !told {
			told = true
			j.cause(f.Symptom, "%s", f.Evidence)
		}
		return errors.New(f.Evidence)
	})
	return o
}

func (j *nodeJoin) restoreJoins(ctx context.Context) error {
	restored, err := j.RestoreJoins(ctx)
	if err == nil && len(restored) > 0 {
		j.step.Progress("repaired with kubeadm: %s", kube.Words(restored))
	}
	return err
}

// watchSide watches the cluster's side of the join with the token, until the returned function is called: it returns the fault for which
// the join was ended, nil for none. The token's secret half is known to the run that made it alone.
func (j *nodeJoin) watchSide(ctx context.Context, token string) (stop func() *join.SideFault) {
	ctx, cancel := context.WithCancel(ctx)
	id, _, _ := strings.Cut(token, ".")
	made := time.Now() // what was seen earlier lacks the token
	w := &join.SideWatch{
		Node: j.node.Name, TokenID: id,
		Look:    func(ctx context.Context) (kube.JoinSide, error) { return j.side(ctx, made) },
		Rejects: j.Admin.Kube.RejectsNode, Leader: j.Admin.Kube.Leader,
		Tell:     func(f join.SideFault) { j.cause(f.Symptom, "%s", f.Evidence) },
		Mend:     func(ctx context.Context, f join.SideFault) { j.mendSide(ctx, f, token) },
		Patience: time.Duration(j.TimeScale()),
	}
	ended := make(chan *join.SideFault, 1)
	go func() {
		f := w.Run(ctx)
		if f != nil {
			j.step.Progress("the join is ended, since waiting is of no use")
			// labnode ends kubeadm where that is safe, and leaves its outcome.
			if err := j.Nodes[j.node.Name].Run(ctx, node.Command{Argv: []string{"systemctl", "stop", "--no-block", join.JoinUnit}}); err != nil {
				j.step.Progress("%v", err)
			}
		}
		ended <- f
	}()
	return func() *join.SideFault { cancel(); return <-ended }
}

// mendSide repairs what is the lab's own. A request for a certificate is approved only if it was made with the token that labctl made for
// this join, and names this node: SideWatch looks at no other.
func (j *nodeJoin) mendSide(ctx context.Context, f join.SideFault, token string) {
	var err error
	did := ""
	switch {
	case len(f.Needs) > 0:
		err = j.restoreJoins(ctx)
	case f.TokenGone && strings.Contains(token, "."):
		did = "made the token again"
		err = j.Admin.Kube.EnsureBootstrapToken(ctx, token, tokenTTL, joinMark(j.node.Name))
	case f.Pending != "":
		did = "approved CSR " + f.Pending
		err = j.Admin.Kube.ApproveCSR(ctx, f.Pending, "made with the token that labctl made for the join of "+j.node.Name)
	default:
		return
	}
	switch {
	case err != nil && ctx.Err() == nil:
		j.step.Progress("%v", err)
	case err == nil && did != "":
		j.step.Progress("repaired: %s", did)
	}
}

// showOthers watches a join that somebody else began, with a token that labctl made, until the returned function is called.
func (j *nodeJoin) showOthers(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watches sync.WaitGroup
	if j.node.Role == config.ControlPlane {
		end := j.showLearner(ctx)
		watches.Go(func() { <-ctx.Done(); end() })
	}
	watches.Go(func() {
		if id := j.othersToken(ctx); id != "" {
			end := j.watchSide(ctx, id)
			<-ctx.Done()
			end()
		}
	})
	return func() { cancel(); watches.Wait() }
}

// othersToken waits until it knows the ID of the token that another run's join uses: the one for joins of this node, or the one of a
// join command with which this node asks for its certificate. "" says that ctx has ended.
func (j *nodeJoin) othersToken(ctx context.Context) (id string) {
	_ = wait.For(ctx, "the token of the join of "+j.node.Name, tokenTTL, join.SideEvery, func(ctx context.Context) error {
		if ids, err := j.Admin.Kube.BootstrapTokens(ctx, joinMark(j.node.Name)); err == nil && len(ids) == 1 {
			id = ids[0]
			return nil
		}
		side, err := j.side(ctx, time.Time{})
		if err != nil {
			return err
		}
		made, err := j.Admin.Kube.BootstrapTokens(ctx, joinCommandMark)
		if err != nil {
			return err
		}
		for _, r := range side.CSRs {
			if r.Node == j.node.Name && r.State == "pending" && slices.Contains(made, r.TokenID()) {
				id = r.TokenID()
				return nil
			}
		}
		return errors.New("no request for a certificate waits")
	})
	return id
}
