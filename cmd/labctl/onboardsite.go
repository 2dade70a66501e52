package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"k8slab/config"
	"k8slab/lab"
	"k8slab/lab/event"
	"k8slab/lab/gitrepo"
	"k8slab/lab/image"
	"k8slab/lab/onboard"
	"k8slab/lab/onboard/phase"
	"k8slab/lab/state"
	"k8slab/lab/validate"
)

// site is the cluster that a node is onboarded into, and what the onboarding works with.
type site struct {
	phase.Config
	engine  *onboard.Engine
	lab     *lab.Lab // nil for another cluster
	closing func()   // ends the way to the cluster, nil where there is none
	log     string   // the run's log in levels; "" for a look

	mu      sync.Mutex
	changed []string
}

// mutated counts what the cluster's client changes.
func (s *site) mutated(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = append(s.changed, what)
	return nil
}

// changes are what this process has changed.
func (s *site) changes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lab == nil {
		return s.changed
	}
	return append(s.lab.Changes(), s.changed...)
}

func (s *site) close() {
	if s.closing != nil {
		s.closing()
	}
	if s.lab != nil {
		s.lab.Close()
	}
}

// site opens the lab or the other cluster. A dry run and a status write nothing: no log, no test pods.
func (a *app) site(cmd *cobra.Command, node string, o onboardOptions) (s *site, err error) {
	ctx, looks := cmd.Context(), o.dryRun || o.status
	s = &site{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	image := cmp.Or(o.image, image.ProbeImage)
	if looks || o.elsewhere() && o.image == "" {
		image = ""
	}
	var settings config.Onboarding
	if o.elsewhere() {
		settings, err = a.openElsewhere(cmd, s, node, image, o)
	} else {
		settings, err = a.openLab(ctx, s, node, image, o)
	}
	if err != nil {
		return s, err
	}
	s.Cluster.Owner = phase.Owner(node)
	if s.Store, err = onboard.OpenStore(s.Dir, s.Target); err != nil {
		return s, err
	}
	s.Seen = phase.OpenEvidence(s.Dir, node, s.Store)
	if o.status {
		return s, nil
	}
	if err := s.openGit(ctx, settings.Git); err != nil {
		return s, err
	}
	runners, undoers := phase.Prepare(s.Config)
	patience := 1
	if s.lab != nil {
		patience = s.lab.TimeScale()
	}
	s.engine = &onboard.Engine{Store: s.Store, Runners: runners, Undoers: undoers, Timeouts: limits(settings.Timeouts, patience), Events: s.Events}
	return s, nil
}

// limits are the phases' time limits that differ from the defaults: those of cluster.yaml, and longer ones for emulated machines.
func limits(set config.Timeouts, patience int) map[onboard.PhaseID]time.Duration {
	all, given := map[onboard.PhaseID]time.Duration{}, set.ByPhase()
	for _, p := range onboard.Phases() {
		all[p.ID] = cmp.Or(given[string(p.ID)], p.Timeout*time.Duration(patience))
	}
	return all
}

// openLab opens the lab, for a node of cluster.yaml.
func (a *app) openLab(ctx context.Context, s *site, node, image string, o onboardOptions) (config.Onboarding, error) {
	c, err := a.cluster()
	if err != nil {
		return config.Onboarding{}, err
	}
	n, err := onboardedNode(c, node)
	if err != nil {
		return c.Onboarding, err
	}
	if err := s.openEvents(a, c.Name, o.dryRun || o.status); err != nil {
		return c.Onboarding, err
	}
	if s.lab, err = lab.New(c, a.labOptions(s.Events)); err != nil {
		return c.Onboarding, err
	}
	if c.OverSSH() {
		if o.autoFix {
			return c.Onboarding, usageError{errors.New("--auto-fix is only for a lab; with machines: ssh, repair with labctl repair first")}
		}
		if o.image == "" {
			image = "" // its nodes have none of labctl's
		}
		err = s.lab.Closed().Remember()
	}
	if err == nil {
		s.Target, err = labTarget(s.lab, c, n)
	}
	if err == nil {
		s.MachineID, err = s.lab.MachineID(ctx, node)
	}
	if err == nil {
		s.Cluster, s.closing, err = labCluster(ctx, s.lab, image, s.mutated)
	}
	s.Lab, s.Dir = s.lab, s.lab.Closed().OnboardingDir()
	if !c.OverSSH() { // the size of other machines is not known before they join
		size := c.Resource(n.Role)
		s.CPUs, s.Memory = size.CPUs, size.Memory
	}
	return c.Onboarding, err
}

// labTarget is the target of an onboarding in the lab.
func labTarget(l *lab.Lab, c *config.Cluster, n config.Node) (onboard.Target, error) {
	id, err := l.ID()
	return onboard.Target{Node: n.Name, Role: string(n.Role), Cluster: c.Name, ClusterID: id}, err
}

// openElsewhere opens another cluster, for a machine that joins it. The file of -c has the settings.
func (a *app) openElsewhere(cmd *cobra.Command, s *site, node, image string, o onboardOptions) (settings config.Onboarding, err error) {
	if cmd.Flags().Changed("config") {
		if settings, err = config.LoadOnboarding(a.file); err != nil {
			return settings, err
		}
	}
	if s.Cluster, err = validate.Open(o.kubeconfig, o.context, image, s.mutated); err != nil {
		return settings, err
	}
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), 30*time.Second, fmt.Errorf("no answer for 30s"))
	defer cancel()
	id, err := s.Cluster.Identity(ctx)
	if err != nil {
		return settings, err
	}
	s.Target = onboard.Target{
		Node: node, Role: cmp.Or(o.role, string(config.Worker)), Cluster: cmp.Or(o.context, filepath.Base(o.kubeconfig)), ClusterID: id,
	}
	if err := s.Target.Check(); err != nil { // before it names a directory
		return settings, err
	}
	root, err := state.Root()
	s.Dir = filepath.Join(root, ".clusters", s.Target.ClusterID, "onboard") // no lab has such a name
	if err == nil {
		err = s.openEvents(a, s.Target.ClusterID, o.dryRun || o.status)
	}
	return settings, err
}

// openEvents opens the event stream: for the terminal, as JSON lines, and as a log with levels.
func (s *site) openEvents(a *app, name string, looks bool) error {
	if looks {
		s.Events = event.NewStream()
		return nil
	}
	path, err := state.RunLog(name, "onboard")
	if err != nil {
		return err
	}
	file, err := event.File(path)
	if err != nil {
		return err
	}
	s.log = strings.TrimSuffix(path, ".jsonl") + ".log"
	levels, err := newLevelLog(s.log)
	if err != nil {
		return err
	}
	sinks := a.sinks()
	if !a.verbose {
		for i := range sinks {
			sinks[i] = withoutDebug{sinks[i]}
		}
	}
	s.Events = event.NewStream(append(sinks, file, levels)...)
	return nil
}

// openGit opens the configured repository, or that of the lab's add-on if it has one.
func (s *site) openGit(ctx context.Context, g config.Git) error {
	namespace, source, _ := strings.Cut(g.Source, "/")
	_, kustomization, _ := strings.Cut(g.Kustomization, "/")
	s.Flux = validate.Ref{Namespace: namespace, Source: source, Kustomization: kustomization}
	c := gitrepo.Config{
		URL: g.URL, Branch: g.Branch, File: g.File, Entry: g.EntryOf(s.Target.Node), Username: g.Username, PasswordFile: g.PasswordFile,
		SigningKey: g.SigningKey, Target: gitrepo.Target{Node: s.Target.Node, Cluster: s.Target.Cluster, ClusterID: s.Target.ClusterID},
		Backup: filepath.Join(s.Dir, s.Target.Node, "kustomization-before.yaml"),
	}
	s.GitExplicit = g.URL != ""
	if !s.GitExplicit {
		if s.lab == nil || s.lab.Closed().Cluster.OverSSH() {
			return nil
		}
		own, err := s.lab.GitOps(ctx)
		if err != nil {
			return s.withoutGit(err)
		}
		c.URL, c.Dial = own.URL, own.Dial
		c.PasswordFile = cmp.Or(g.PasswordFile, own.PasswordFile)
	}
	var err error
	s.Git, err = gitrepo.Open(ctx, c)
	return err
}

// withoutGit goes on without the lab's repository, unless the onboarding has already changed it: then a rollback needs it.
func (s *site) withoutGit(why error) error {
	view, err := s.Store.Status()
	if err != nil || view.State == nil {
		return err
	}
	for _, c := range view.Changes {
		if c.Kind == gitrepo.Kind && c.Status != onboard.Undone {
			return why
		}
	}
	return nil
}
