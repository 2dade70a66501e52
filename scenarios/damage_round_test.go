package scenarios

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8slab/lab/symptom"
)

// ruins is a lab in memory with one node that is damaged: what the diagnosis says and what heals it is told.
type ruins struct {
	*model
	damaged  bool // and not undone
	broken   bool
	says     []symptom.Finding // while it is broken
	shows    string            // when it breaks: "" at once, "restart" when services are restarted, "never"
	heals    []string          // commands that heal it
	up       bool              // labctl up brings the lab back when the damage is undone
	stubborn bool              // the damage cannot be undone
	uid      string            // of another node, when repaired
	kept     []string          // bundles
}

const theFile = "/usr/bin/containerd"

func (l *ruins) Run(ctx context.Context, node string, argv ...string) (string, error) {
	script := argv[min(2, len(argv)-1)]
	switch {
	case strings.Contains(script, "-print0"):
		return theFile + "\x00", nil
	case strings.Contains(script, `mv -fT`):
		l.damaged, l.broken = true, l.shows == ""
	case strings.Contains(script, "systemctl restart"):
		l.broken = l.broken || l.shows == "restart"
	case strings.Contains(script, `force=$3`):
		if l.stubborn {
			return "", errors.New("input/output error")
		}
		l.damaged = false
	case l.ran(strings.Join(argv, " ")):
	}
	return l.model.Run(ctx, node, argv...)
}

// ran heals the lab if the command does.
func (l *ruins) ran(command string) bool {
	heals := slices.Contains(l.heals, command)
	if heals {
		l.broken, l.damaged = false, false
	}
	return heals
}

func (l *ruins) Labctl(ctx context.Context, args ...string) (string, error) {
	switch args[0] {
	case "status":
		out, _ := json.Marshal(map[string]any{"nodes": l.members, "problems": []string{"w1 is not Ready"}})
		if l.broken {
			return string(out), errors.New("not healthy")
		}
		return string(out), nil
	case "diagnose":
		findings := []symptom.Finding{{Symptom: symptom.CrictlEndpointUnset, Level: symptom.Warn, Node: "w1"}}
		if l.broken {
			findings = append(findings, l.says...)
		}
		out, _ := json.Marshal(map[string]any{"findings": findings})
		if i := slices.Index(args, "--bundle"); i > 0 {
			l.kept = append(l.kept, filepath.Base(args[i+1]))
		}
		return string(out), nil
	case "kubectl":
		if slices.Contains(args, "nodes") {
			uid := "1"
			if slices.Contains(l.calls, strings.Join(repairAll, " ")) {
				uid = cmp.Or(l.uid, uid)
			}
			return `{"items": [{"metadata": {"name": "w2", "uid": "` + uid + `"}}]}`, nil
		}
		return l.model.Labctl(ctx, args...)
	}
	l.calls = append(l.calls, strings.Join(args, " "))
	if l.ran("labctl " + strings.Join(args, " ")); args[0] == "up" && l.up && !l.damaged {
		l.broken = false
	}
	if l.broken {
		return "[]", errors.New("exit status 1: something is left")
	}
	return "[]", nil
}

// onFile is a round of the seed that damages a file of w1, which is not only deleted.
func onFile(t *testing.T, seed uint64) int {
	for n := range 10000 {
		if p, err := planned(seed, n, members(3, 2)); err == nil && p.name == "file" && p.node == "w1" && p.how == "halve" {
			return n
		}
	}
	t.Fatal("no such round")
	return 0
}

func TestOutcomesOfDamage(t *testing.T) {
	const all = "labctl repair --up-to recreate -o json"
	right := []symptom.Finding{{Symptom: symptom.RuntimeSocketMissing, Level: symptom.Fail, Node: "w1", Hint: "`systemctl restart kubelet`, `systemctl unmask UNIT`, `systemctl unmask containerd`; `kubeadm reset -f`"}}
	wrong := []symptom.Finding{{Symptom: symptom.KubeletNotRunning, Level: symptom.Fail, Node: "w1"}}
	tests := []struct {
		name     string
		lab      ruins
		named    Naming
		healed   Healing
		class    Class
		by       string
		restored bool
		reason   string
	}{
		{"named and healed", ruins{says: right, heals: []string{all}}, Named, Healed, Passed, "labctl repair --up-to recreate", true, ""},
		{"it shows after a restart", ruins{says: right, shows: "restart", heals: []string{all}}, Named, Healed, Passed, "labctl repair --up-to recreate", true, ""},
		{"it never shows", ruins{says: right, shows: "never"}, Harmless, "", Passed, "", true, ""},
		{"another is named", ruins{says: wrong, heals: []string{all}}, Misnamed, Healed, Failed, "labctl repair --up-to recreate", true, ""},
		{"nothing is named", ruins{heals: []string{all}}, Silent, Healed, Failed, "labctl repair --up-to recreate", true, ""},
		{"a person does what the hint says", ruins{says: right, heals: []string{"systemctl unmask containerd"}}, Named, Healed, Passed,
			"systemctl restart kubelet on w1, systemctl unmask containerd on w1", true, ""},
		{"up heals it", ruins{says: wrong, heals: []string{"labctl up"}}, Misnamed, Healed, Failed, "labctl up", true, ""},
		{"nothing heals it", ruins{says: right, up: true}, Named, DeadEnd, Failed, "", true, "after labctl up: a healthy lab: 1m0s budget ran out; last seen: diagnose: runtime-socket-missing on w1"},
		{"it cannot even be undone", ruins{says: right, up: true, stubborn: true}, Named, DeadEnd, Failed, "", false, "input/output error"},
		{"something else was lost", ruins{says: right, heals: []string{all}, uid: "2"}, Named, Lost, Failed, "labctl repair --up-to recreate", true, "changed too much"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lab := tt.lab
				lab.model = newModel(t)
				record := Record{Path: filepath.Join(t.TempDir(), "faults.json")}
				d := RunDamage(t.Context(), &lab, 5, onFile(t, 5), Options{Record: record, Evidence: "kept"})
				if d.Named != tt.named || d.Healed != tt.healed || d.Class != tt.class || d.By != tt.by || d.Restored != tt.restored || !strings.Contains(d.Reason, tt.reason) {
					got, _ := json.Marshal(d)
					t.Errorf("got %s after %q", got, lab.calls)
				}
				if d.What != theFile || d.Node != "w1" || d.How != "halve" || (d.Reason == "") != (tt.reason == "") {
					t.Errorf("it damaged %s on %s: %s", d.Damage, d.Node, d.Reason)
				}
				if reported := d.Result(); (reported.Reason == "") != (tt.class == Passed) || reported.Node != "w1" {
					t.Errorf("reported as %+v", reported)
				}
				if left, err := record.Left(); err != nil || (len(left) == 0) != tt.restored {
					t.Errorf("in the record: %v, %v", left, err)
				}
				for what, want := range map[string]bool{"unnamed": tt.named == Misnamed || tt.named == Silent, "unhealed": tt.healed == DeadEnd || tt.healed == Lost} {
					if got := slices.ContainsFunc(lab.kept, func(f string) bool { return strings.Contains(f, what) }); got != want {
						t.Errorf("the evidence of what is %s is kept: %t", what, got)
					}
				}
				if lab.damaged == tt.restored {
					t.Errorf("the damage is left: %v", lab.damaged)
				}
			})
		})
	}
}

func TestDamageOfALabThatIsNotHealthy(t *testing.T) {
	lab := ruins{model: newModel(t), broken: true, says: []symptom.Finding{{Symptom: symptom.DiskFull, Level: symptom.Fail, Node: "w2"}}}
	d := RunDamage(t.Context(), &lab, 5, onFile(t, 5), Options{})
	if d.Class != SetupFailed || d.Named != "" || lab.damaged || !strings.Contains(d.Reason, "disk-full on w2") {
		t.Errorf("got %+v", d)
	}
}

// What a killed soak damaged is in the record, with all that is needed to undo it.
func TestKilledDamageIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, kill := context.WithCancel(t.Context())
		lab := ruins{model: newModel(t), heals: []string{"none"}}
		record := Record{Path: filepath.Join(t.TempDir(), "faults.json")}
		RunDamage(ctx, &lab, 5, onFile(t, 5), Options{Record: record, Progress: func(step string) {
			if step == "diagnose" {
				kill()
			}
		}})
		left, err := record.Left()
		if err != nil || len(left) != 1 || !lab.damaged {
			t.Fatalf("left %+v, %v", left, err)
		}
		if err := left[0].Damage.Undo(t.Context(), &lab); err != nil || lab.damaged {
			t.Errorf("it is still damaged: %v", err)
		}
		if err := record.Forget(left...); err != nil {
			t.Error(err)
		}
		if left, err := record.Left(); err != nil || len(left) != 0 {
			t.Errorf("left %+v, %v", left, err)
		}
	})
}

func TestSoakOfDamageEnds(t *testing.T) {
	passed := Damaged{Class: Passed, Named: Named, Healed: Healed, Restored: true}
	harmless := Damaged{Class: Passed, Named: Harmless, Restored: true}
	silent := Damaged{Class: Failed, Named: Silent, Healed: Healed, Restored: true}
	deadEnd := Damaged{Class: Failed, Named: Misnamed, Healed: DeadEnd, Restored: true}
	lost := Damaged{Class: Failed, Named: Named, Healed: Lost, Restored: true}
	stuck := Damaged{Class: Failed, Named: Named, Healed: DeadEnd}
	unset := Damaged{Class: SetupFailed}
	tests := []struct {
		name   string
		ends   []Damaged
		within time.Duration
		want   Score
	}{
		{"it goes on after misses", []Damaged{passed, silent, deadEnd, lost, harmless, passed}, 0,
			Score{Rounds: 6, Named: 3, Misnamed: 1, Silent: 1, Healed: 3, DeadEnds: 1, Lost: 1, Harmless: 1, NamedShare: 0.6, HealedShare: 0.6}},
		{"a lab that cannot be restored", []Damaged{passed, stuck, passed}, 0, Score{Rounds: 2, Named: 2, Healed: 1, DeadEnds: 1, NamedShare: 1, HealedShare: 0.5}},
		{"one that could not be set up", []Damaged{unset, passed, passed}, 0, Score{Rounds: 3, Named: 2, Healed: 2, SetupFailed: 1, NamedShare: 1, HealedShare: 1}},
		{"two in a row", []Damaged{unset, unset, passed}, 0, Score{Rounds: 2, SetupFailed: 2}},
		{"the time is over", []Damaged{passed, passed, passed}, 90 * time.Second, Score{Rounds: 2, Named: 2, Healed: 2, NamedShare: 1, HealedShare: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var played []int
				s := SoakDamage(t.Context(), 1, 7, len(tt.ends), tt.within, func(n int) Damaged {
					time.Sleep(time.Minute)
					played = append(played, n)
					d := tt.ends[n-7]
					d.Round = n
					return d
				})
				if s.Score != tt.want || played[0] != 7 {
					t.Errorf("got %+v, played %v", s.Score, played)
				}
			})
		})
	}
}

// The rounds without which the lab can be restored are left out.
func TestShortestDamage(t *testing.T) {
	s := DamageSoaked{Rounds: []Damaged{{Round: 3}, {Round: 4}, {Round: 5}, {Round: 6}}}
	var since []int
	err := s.Shorten(t.Context(), 30, func() error { since = nil; return nil }, func(n int) Damaged {
		since = append(since, n)
		if n == 6 && slices.Contains(since, 4) {
			return Damaged{Round: n, Class: Failed}
		}
		return Damaged{Round: n, Class: Passed, Restored: true}
	})
	if err != nil || !s.Reproduced || !slices.Equal(s.Shortest, []int{4, 6}) {
		t.Errorf("got %v, %v", s.Shortest, err)
	}
}
