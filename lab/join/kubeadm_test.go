package join

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"k8slab/lab/symptom"
)

func TestKubeadmSucceeds(t *testing.T) {
	s := newScenery(t, false, `echo "[preflight] Running pre-flight checks"; echo "[kubelet-start] Starting the kubelet"; echo "token `+testToken+`"`)
	o, ok := s.run(t.Context())
	if !ok || o.ExitCode != 0 || !o.Finished || o.Phase != "kubelet-start" || !s.Exists(joinedMark) {
		t.Errorf("%+v, %t, mark %t", o, ok, s.Exists(joinedMark))
	}
	config, err := os.ReadFile(s.path("config"))
	if err != nil || !bytes.Contains(config, []byte(testToken)) {
		t.Errorf("kubeadm got no configuration: %v", err)
	}
	args, _ := os.ReadFile(s.path("args"))
	if bytes.Contains(args, []byte(testToken)) || !bytes.Contains(args, []byte("-v=5")) {
		t.Errorf("kubeadm's arguments: %s", args)
	}
	for _, file := range []string{kubeadmLog, joinedMark} {
		if info, err := os.Stat(s.Path(file)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", file, info, err)
		}
	}
	log, _ := s.Read(kubeadmLog)
	for what, text := range map[string]string{"log": log, "events": s.events.details(), "output": o.Output} {
		if strings.Contains(text, "0123456789abcdef") {
			t.Errorf("the token is in the %s", what)
		}
	}
	s.kubeadmEnds(t)
}

func TestKubeadmFails(t *testing.T) {
	tests := []struct {
		name, script string
		cause        symptom.ID
		code         int
		phase        Phase
		says         string
	}{
		{"by itself", `echo "[preflight] Running pre-flight checks"; echo "error: error execution phase kubelet-start: no luck" >&2; echo "main.main" >&2; exit 1`,
			"", 1, "kubelet-start", "error execution phase kubelet-start: no luck"},
		{"not found, by a wrapper", `echo "/bin/sh: 1: kubeadm: not found" >&2; exit 127`, symptom.KubeBinariesMissing, 127, "kubeadm", "kubeadm: not found"},
		{"with the bootstrap kubeconfig written", `mkdir -p $ETC; echo secret >$ETC/bootstrap-kubelet.conf; exit 1`, "", 1, "kubeadm", "exit status 1"},
		{"a signal", `kill -9 $$`, "", -1, "kubeadm", "signal: killed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScenery(t, false, tt.script)
			t.Setenv("ETC", s.Path("/etc/kubernetes"))
			o, ok := s.run(t.Context())
			if ok || o.Symptom != tt.cause || o.ExitCode != tt.code || o.Phase != tt.phase || !strings.Contains(o.Evidence, tt.says) {
				t.Errorf("%+v", o)
			}
			if s.Exists(joinedMark) {
				t.Error("it is marked as joined")
			}
			s.kubeadmEnds(t)
		})
	}
}

// What kubeadm had said until somebody killed it, warnings too, is not why it failed.
func TestKilledKubeadmHasNoCause(t *testing.T) {
	s := newScenery(t, false, `echo "[WARNING SystemVerification]: cgroups v1 support is deprecated"; kill -9 $$`)
	s.engine.Causes = func(string) []symptom.ID { return []symptom.ID{symptom.CgroupV1Unsupported} }
	o, ok := s.run(t.Context())
	if ok || o.Symptom != "" || !o.Killed || !strings.Contains(o.Evidence, "killed kubeadm") || Remedy(o.Symptom) != Retry {
		t.Errorf("%+v", o)
	}
	s.kubeadmEnds(t)
}

func TestKubeadmIsMissing(t *testing.T) {
	s := newScenery(t, false, "")
	s.engine.Kubeadm = []string{s.path("nowhere")}
	begin := time.Now()
	o, ok := s.run(t.Context())
	if ok || o.Symptom != symptom.KubeBinariesMissing || o.ExitCode != -1 || o.Finished || time.Since(begin) > time.Second {
		t.Errorf("%+v after %s", o, time.Since(begin))
	}
	s.kubeadmEnds(t)
}

// A cause that is certain ends kubeadm at once, without waiting for its own time-outs.
func TestCertainCauseEndsKubeadm(t *testing.T) {
	s := newScenery(t, true, `
echo 'I0301 10:11:12.131415    4242 etcd.go:496] [etcd] Adding etcd member "https://10.30.0.12:2380" as learner' >&2
echo 'I0301 10:11:12.151415    4242 etcd.go:518] Failed to add etcd member: etcdserver: too many learner members in cluster' >&2
exec sleep 60`)
	begin := time.Now()
	o, ok := s.run(t.Context())
	if took := time.Since(begin); ok || o.Symptom != symptom.EtcdTooManyLearners || o.Finished || o.ExitCode != -1 || o.Phase != "etcd" || took > 3*time.Second {
		t.Errorf("after %s: %+v", took, o)
	}
	s.kubeadmEnds(t)
}

func TestJournalNamesTheCause(t *testing.T) {
	s := newScenery(t, false, `echo "[kubelet-start] Starting the kubelet"; sleep 0.1; touch `+"$(dirname $0)"+`/now; exec sleep 60`)
	s.journal("now", "kubelet.service", `E0301 10:11:12.1 77 run.go:72] "command failed" err="dial unix /run/containerd/containerd.sock: connect: no such file or directory"`)
	begin := time.Now()
	o, _ := s.run(t.Context())
	if o.Symptom != symptom.RuntimeSocketMissing || !strings.HasPrefix(o.Evidence, "kubelet: ") || time.Since(begin) > 3*time.Second {
		t.Errorf("%+v", o)
	}
}

// A control plane's own API server refuses kubelet until it has read its roles; kubelet asks again.
func TestWhatKubeletAsksAgainIsNoCause(t *testing.T) {
	s := newScenery(t, false, `echo "[kubelet-start] Starting the kubelet"; sleep 0.1; touch $(dirname $0)/now; sleep 0.3; echo "[kubelet-start] done"`)
	s.journal("now", "kubelet.service", `E0301 10:11:12.1 77 reflector.go:1] "Failed while requesting a signed certificate" err="certificatesigningrequests.certificates.k8s.io is forbidden: User system:bootstrap:abcdef cannot create resource"`)
	if o, ok := s.run(t.Context()); !ok || o.Symptom != "" {
		t.Errorf("%+v", o)
	}
}

// Before kubeadm has started it, kubelet speaks of an earlier life: that is no cause. Only a start without its configuration is of interest.
func TestKubeletsEarlierLifeIsNoCause(t *testing.T) {
	s := newScenery(t, false, `dir=$(dirname $0); touch $dir/now; sleep 0.3; [ -e `+"$CONFIG"+` ] && cp $CONFIG $dir/bridge; echo "[kubelet-start] done"`)
	t.Setenv("CONFIG", s.Path(kubeletConfig))
	s.journal("now", "kubelet.service", `E0301 10:11:12.1 77 run.go:72] "command failed" err="failed to load kubelet config file, path: /var/lib/kubelet/config.yaml; containerd.sock: connect: x"`)
	o, ok := s.run(t.Context())
	if !ok || o.Symptom != "" {
		t.Errorf("%+v", o)
	}
	if text, err := os.ReadFile(s.path("bridge")); err != nil || !bytes.HasPrefix(text, []byte(bridgeMark)) {
		t.Errorf("a kubelet that something else started got no temporary configuration: %v", err)
	}
	s.kubeadmEnds(t)
}

// A kill between the adding and the promotion of the learner would leave it behind: kubeadm goes on, whatever is certain or has run out.
func TestKubeadmIsNotEndedWhileItsLearnerIsOnItsWay(t *testing.T) {
	adding := `trap 'touch ` + "$(dirname $0)" + `/killed; exit 143' TERM
echo 'I0301 10:11:12.131415    4242 etcd.go:496] [etcd] Adding etcd member "https://10.30.0.12:2380" as learner' >&2
echo "[etcd] Announced new etcd member joining to the existing etcd cluster"
touch ` + "$(dirname $0)" + `/now
i=0; while [ $i -lt 10 ]; do sleep 0.05; i=$((i+1)); done
`
	promoted := `touch ` + "$(dirname $0)" + `/promoted
echo 'I0301 10:11:14.131415    4242 etcd.go:667] [etcd] The learner was promoted as a voting member: 8e9e05c52164694d' >&2
i=0; while [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done
`
	why := map[string]func(*scenery) context.Context{
		"a certain cause": func(s *scenery) context.Context {
			s.journal("now", "containerd.service", "containerd.sock: connect: connection refused")
			return t.Context()
		},
		"interrupted": func(s *scenery) context.Context {
			ctx, cancel := context.WithCancel(t.Context())
			s.engine.Journal = []string{"sh", "-c", "sleep 60"}
			go func() {
				for s.missing("now") {
					time.Sleep(10 * time.Millisecond)
				}
				cancel()
			}()
			return ctx
		},
	}
	for name, arrange := range why {
		t.Run(name+", and it ends by itself", func(t *testing.T) {
			s := newScenery(t, true, adding+"exit 1")
			o, _ := s.run(arrange(s))
			if !s.missing("killed") || o.ExitCode != 1 || !o.Finished {
				t.Errorf("killed %t: %+v", !s.missing("killed"), o)
			}
			if !strings.Contains(s.events.details(), "not ended before its etcd learner is promoted") {
				t.Errorf("nobody says why it goes on:\n%s", s.events.details())
			}
		})
		t.Run(name+", and it is ended after the promotion", func(t *testing.T) {
			s := newScenery(t, true, adding+promoted)
			begin := time.Now()
			s.run(arrange(s))
			if s.missing("killed") || s.missing("promoted") || time.Since(begin) > 3*time.Second {
				t.Errorf("killed %t, promoted %t, after %s", !s.missing("killed"), !s.missing("promoted"), time.Since(begin))
			}
		})
	}
}

func (s *scenery) missing(name string) bool {
	_, err := os.Stat(s.path(name))
	return err != nil
}

// Another's learner is in nobody's way any more when our own is in.
func TestTooManyLearnersIsNoCauseOnceOurOwnIsIn(t *testing.T) {
	s := newScenery(t, true, `
echo "[etcd] Announced new etcd member joining to the existing etcd cluster"
echo "somebody else: too many learner members in cluster"
echo "[etcd] Waiting for the new etcd member to join the cluster. This can take up to 40s"
sleep 0.3
echo "[mark-control-plane] Marking the node cp2 as control-plane"`)
	if o, ok := s.run(t.Context()); !ok || o.Symptom != "" || o.Phase != "mark-control-plane" {
		t.Errorf("%+v", o)
	}
}

// A kubeadm that hangs beyond all of its own time-outs is ended by the budget.
func TestBudgetEndsKubeadm(t *testing.T) {
	s := newScenery(t, false, "echo '[kubelet-check] Initial timeout of 40s passed.'; exec sleep 60")
	run := &kubeadmRun{engine: s.engine, step: s.engine.Events.Start("w1", "kubeadm", 0), shown: newRepeats(), phase: "kubeadm"}
	exit, why := s.engine.runKubeadm(t.Context(), s.job, run, 300*time.Millisecond)
	if exit == nil || why == nil || !strings.Contains(why.Error(), "budget") || run.phase != "kubelet-check" {
		t.Errorf("%v, %v", exit, why)
	}
}
