package diagnose

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/diagnose/siterule"
	"k8slab/lab/golden"
	joining "k8slab/lab/join"
	"k8slab/lab/symptom"
)

const siteFile = `causes:
  - id: nas-offline
    meaning: The NAS does not answer.
    fix: Ask the storage team, page 7.
    brings: [kubelet-not-running]
phrases:
  - {cause: nas-offline, contains: "server nas not responding", level: fail}
  - {cause: nas-offline, contains: "server nas is slow"}
  - {cause: token-expired-or-invalid, regexp: 'ticket \d+ has lapsed', source: kubelet}
  - {cause: disk-full, contains: "quota of the volume is used up", level: fail}
hints:
  - {cause: disk-full, text: "Ask for more at the desk."}
  - {cause: runtime-socket-missing, text: "The runtime is restarted by the desk."}
`

const siteText = "Nov 27 08:00:00 w7 kubelet[4]: token=abcdef.0123456789abcdef server nas not responding\n" +
	"Nov 27 08:00:01 w7 kubelet[4]: ticket 7 has lapsed\nNov 27 08:00:02 w7 etcd[9]: ticket 8 has lapsed\n" +
	"Nov 27 08:00:03 w7 mount[4]: server nas not responding\n"

func rulesOf(t *testing.T, text string) *siterule.Set {
	t.Helper()
	file := filepath.Join(t.TempDir(), "home.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	rules, problems := siterule.Load([]string{file})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return rules
}

// one is the finding of a cause.
func one(t *testing.T, found []symptom.Finding, id symptom.ID) symptom.Finding {
	t.Helper()
	i := slices.IndexFunc(found, func(f symptom.Finding) bool { return f.Symptom == id })
	if i < 0 {
		t.Fatalf("no %s: %+v", id, found)
	}
	return found[i]
}

func TestSiteRulesOfText(t *testing.T) {
	r, err := FromWith(rulesOf(t, siteFile), "-", strings.NewReader(siteText))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 2 {
		t.Errorf("something is guessed beside what is known: %+v", r.Findings)
	}
	nas, token := one(t, r.Findings, "nas-offline"), one(t, r.Findings, symptom.TokenExpiredOrInvalid)
	if nas.Level != symptom.Fail || nas.Node != "w7" || nas.Rule != "home.yaml:7" || nas.Repairable || len(nas.Evidence) != 2 ||
		nas.Hint != "Ask the storage team, page 7." || r.Healthy {
		t.Errorf("%+v", nas)
	}
	if text := nas.Evidence[0].Text; strings.Contains(text, "0123456789abcdef") || nas.Evidence[1].Line != 4 {
		t.Errorf("%+v", nas.Evidence)
	}
	if token.Level != symptom.Warn || token.Rule != "home.yaml:9" || token.Repairable || len(token.Evidence) != 1 || token.Evidence[0].Line != 2 {
		t.Errorf("%+v", token)
	}
	golden.Check(t, "view-site-80.txt", textOf(t, Report{Source: "-", Time: noon, Findings: r.Findings}, 80, false))
	var page strings.Builder
	if err := WriteHTML(&page, r); err != nil || !strings.Contains(page.String(), "(rule home.yaml:7)") {
		t.Errorf("%v\n%s", err, page.String())
	}
	if r, err = FromWith(rulesOf(t, siteFile), "-", strings.NewReader("server nas is slow")); err != nil || !r.Healthy || len(r.Findings) != 1 {
		t.Errorf("a warning is no illness: %+v, %v", r, err)
	}
	if r, err = From("-", strings.NewReader(siteText)); err != nil || r.Failed() || r.Findings[0].Rule != "" {
		t.Errorf("without rules: %+v, %v", r, err)
	}
}

// A failure that only a rule of the site explains is explained.
func TestSiteRuleExplainsWhatIsUndetermined(t *testing.T) {
	text := "error execution phase x: server nas not responding\n"
	r, err := FromWith(rulesOf(t, siteFile), "-", strings.NewReader(text))
	if err != nil || len(r.Undetermined) > 0 || r.Findings[0].Symptom != "nas-offline" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestSiteRulesOfDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"w1/kubelet.log": "ticket 7 has lapsed\n", "w2/etcd.log": "ticket 8 has lapsed\n", "w2/kubelet.log": socketGone + "\n"})
	r, err := FromWith(rulesOf(t, siteFile), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token := one(t, r.Findings, symptom.TokenExpiredOrInvalid); token.Node != "w1" || len(token.Evidence) != 1 {
		t.Errorf("%+v", token)
	}
	socket := one(t, r.Findings, symptom.RuntimeSocketMissing)
	if socket.Rule != "" || !socket.Repairable || len(socket.Notes) != 1 || socket.Notes[0] != (symptom.Note{Text: "The runtime is restarted by the desk.", Rule: "home.yaml:13"}) {
		t.Errorf("%+v", socket)
	}
}

func TestSiteRulesOfFacts(t *testing.T) {
	judged := func(damage func(m *fact.Machine)) []symptom.Finding {
		f := healthyFacts(2)
		damage(f.Machine("w1"))
		r, err := NewReportWith(rulesOf(t, siteFile), f)
		if err != nil {
			t.Fatal(err)
		}
		return r.Findings
	}
	found := judged(func(m *fact.Machine) {
		journal(m, "kubelet", time.Minute, "server nas not responding")
		m.Inside.Facts.Kubelet.Active = "failed"
		m.Inside.Units["kubelet"] = fact.Unit{Load: "loaded", Active: "failed", Result: "exit-code", Since: midday.Add(-time.Minute)}
		fail(m, joining.Check{ID: "kubelet", Result: joining.Blocked, Evidence: "kubelet is failed", Symptom: symptom.KubeletNotRunning})
	})
	if nas, kubelet := one(t, found, "nas-offline"), one(t, found, symptom.KubeletNotRunning); nas.Node != "w1" || kubelet.BecauseOf != "nas-offline" {
		t.Errorf("%+v", found)
	}
	if found = judged(func(m *fact.Machine) { journal(m, "kubelet", 3*time.Hour, "server nas not responding") }); len(found) > 0 {
		t.Errorf("old trouble: %+v", found)
	}
	if found = judged(func(m *fact.Machine) { journal(m, "kubelet", time.Minute, "quota of the volume is used up") }); len(found) > 0 {
		t.Errorf("a measurement contradicts it: %+v", found)
	}
}

// A long line costs no more than its limit, and a text may come in pieces.
func TestSiteScan(t *testing.T) {
	s := &siteScan{rules: rulesOf(t, siteFile), source: "x.log"}
	for _, part := range []string{strings.Repeat("x", 2*lineLimit), " server nas not responding\nserver nas", " not responding\r\n", "last: server nas not responding"} {
		if n, err := s.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	found := s.findings("w1")
	if len(found) != 1 || found[0].Evidence[0].Line != 2 || found[0].Evidence[1].Line != 3 || found[0].Node != "w1" || cap(s.line) > 2*lineLimit {
		t.Errorf("%+v", found)
	}
}
