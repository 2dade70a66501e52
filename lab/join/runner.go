package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"k8slab/lab/command"
	"k8slab/lab/event"
)

// RunRequest makes the attempts of the request that Start left, within the unit: it takes the request into memory, writes each event to the
// series' file, and at the end the Outcome, whatever it is. Its error means that there is no Outcome. e needs no Events and no Node.
func RunRequest(ctx context.Context, e Engine) error {
	m := e.Machine
	var r Request
	err := m.readJSON(requestFile, &r)
	if err = errors.Join(err, remove(m.Path(requestFile))); err != nil {
		return err
	}
	job, err := r.job()
	if err != nil {
		return err
	}
	events, err := event.File(m.Path(eventsFile))
	if err != nil {
		return err
	}
	e.Events, e.Node = event.NewStream(events), r.Node
	s := &series{engine: &e, request: r, job: job, login: Login{Host: r.Login, Run: command.Command.Run}}
	s.login.BeforeDelete = s.reset
	o := s.run(ctx)
	return errors.Join(e.Events.Close(), m.writeJSON(outcomeFile, o))
}

func (r Request) job() (*Job, error) {
	config, target, err := ReadConfiguration([]byte(r.Config), Environment{})
	if err != nil {
		return nil, err
	}
	target.Peers, target.Known = r.Peers, r.Known
	return &Job{Config: config, Target: target, Node: r.Node, Ready: r.Ready, MemberRemoved: r.MemberRemoved}, nil
}

// series is the attempts of one request.
type series struct {
	engine  *Engine
	request Request
	job     *Job
	login   Login
}

func (s *series) run(ctx context.Context) Outcome {
	policy := s.request.Policy
	policy.Jitter = rand.Float64
	o, err := Loop(ctx, policy, s.attempt, s.repair)
	if !o.Joined && err != nil && o.Evidence == "" {
		o.Evidence = event.Redact(err.Error())
	}
	return o
}

func (s *series) attempt(ctx context.Context, number int) (Outcome, error) {
	before := max(s.request.First, 1) - 1
	s.job.Number, s.job.Of = before+number, before+max(s.request.Policy.Attempts, 1)
	o := s.watched(ctx)
	s.tell(o)
	if s.job.Number == 1 {
		return o, s.engine.Machine.writeJSON(firstFile, o)
	}
	return o, nil
}

// watched makes an attempt, and watches it from the cluster's side where there is a login for that.
func (s *series) watched(ctx context.Context) Outcome {
	if s.login.Host == "" {
		return s.engine.Attempt(ctx, s.job)
	}
	ctx, end := context.WithCancelCause(ctx)
	found := make(chan *SideFault, 1)
	go func() {
		f := s.watchSide(ctx)
		if f != nil {
			end(errors.New(f.Evidence))
		}
		found <- f
	}()
	o := s.engine.Attempt(ctx, s.job)
	end(nil)
	return EndedBy(o, <-found)
}

// watchSide returns the fault for which the attempt is to end. It repairs nothing: the cluster is somebody else's.
func (s *series) watchSide(ctx context.Context) *SideFault {
	step := sync.OnceValue(func() *event.Step { return s.engine.Events.Start(s.engine.Node, string(PhaseCluster), 0) })
	api, err := s.login.kube(ctx)
	if err != nil {
		if ctx.Err() == nil {
			step().EndWith(fmt.Sprintf("warning: the join is not watched from the cluster's side: %v", err))
		}
		return nil
	}
	defer api.Close()
	id, _, _ := strings.Cut(cmp.Or(s.job.Config.tlsToken(), s.job.Target.Token), ".")
	w := &SideWatch{
		Node: s.job.Node, TokenID: id, Look: api.JoinSide, Rejects: api.RejectsNode, Leader: api.Leader,
		Tell:     func(f SideFault) { step().Progress(CauseMark+"%s: %s", f.Symptom, event.Redact(f.Evidence)) },
		Patience: s.engine.Machine.Patience(),
	}
	return w.Run(ctx)
}

// tell tells of an attempt that has ended.
func (s *series) tell(o Outcome) {
	if s.engine.Ended == nil || o.Already {
		return
	}
	if err := s.engine.Ended(o); err != nil {
		s.engine.Events.Start(s.engine.Node, "metrics", 0).EndWith(fmt.Sprintf("warning: %v", err))
	}
}

// repair does between two attempts what this machine, and the login if there is one, can do.
func (s *series) repair(ctx context.Context, failed Outcome) (bool, error) {
	action := Remedy(failed.Symptom)
	step := s.engine.Events.Start(s.engine.Node, string(PhaseRepair), 0)
	step.Progress("%s: %s", failed.cause(), action)
	again, err := s.login.Repair(ctx, s.job, failed, s.engine.Machine.identity())
	if err != nil {
		return again, step.End(err)
	}
	step.EndWith(fmt.Sprintf("another attempt: %t", again))
	return again, nil
}

func (s *series) reset(ctx context.Context) error {
	_, err := Reset(ctx, s.engine.Machine, ResetOptions{MemberRemoved: s.job.MemberRemoved, CRISocket: s.job.Target.CRISocket})
	return err
}
