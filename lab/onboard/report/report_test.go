package report

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"

	"k8slab/lab/golden"
	"k8slab/lab/onboard"
	"k8slab/lab/validate"
)

// at is the moment s seconds after the samples' beginning.
func at(s int) time.Time { return time.Date(2026, 3, 1, 10, 30, s, 0, time.UTC) }

// state is an onboarding of which the first phases are completed.
func state(completed int) *onboard.State {
	st := &onboard.State{
		Target: onboard.Target{Node: "w3", Role: "worker", Cluster: "small", ClusterID: "5f1c1c5e-0d5c-4b0a-9a57-0f1f7f4b7d10"},
		Status: onboard.InProgress, Started: at(0), Timestamp: at(20 * completed), CompletedPhases: completed, TotalPhases: 9,
		PhaseStatus: map[onboard.PhaseID]onboard.Status{}, PhaseErrors: map[onboard.PhaseID]string{}, PhaseTimes: map[onboard.PhaseID]onboard.Times{},
	}
	for i, p := range onboard.Phases() {
		st.PhaseStatus[p.ID], st.PhaseErrors[p.ID] = onboard.NotStarted, ""
		if i < completed {
			st.PhaseStatus[p.ID] = onboard.Completed
			st.PhaseTimes[p.ID] = onboard.Times{Started: at(20 * i), Ended: at(20*i + 9), Attempts: 1, Seconds: 9.25}
		}
	}
	if completed >= 3 {
		st.Changes = []onboard.Change{
			{Phase: onboard.GitOpsActivation, Kind: "git", What: "switch w3 on in apps/kustomization.yaml", Undo: "switch it off again and push that", Status: onboard.Made, Time: at(25)},
			{Phase: onboard.NodeJoinMonitoring, Kind: "join", What: "join w3", Undo: "drain w3, reset it and delete its Node", Status: onboard.Intended, Time: at(41)},
		}
	}
	return st
}

func clusters() (before, after *validate.Snapshot) {
	before = &validate.Snapshot{
		Time: at(0), Nodes: map[string]bool{"cp1": true}, Pods: map[string]int{"Running": 12}, Workload: map[string]int{"cp1": 7},
		API: validate.Latency{MedianMS: 3.21, P95MS: 8.2, Reads: 20}, PodStartError: "Unschedulable: no node",
	}
	after = &validate.Snapshot{
		Time: at(170), Nodes: map[string]bool{"cp1": true, "w3": true}, Pods: map[string]int{"Running": 17, "Pending": 1}, Workload: map[string]int{"cp1": 7, "w3": 5},
		API: validate.Latency{MedianMS: 3.4, P95MS: 9, Reads: 20}, PodStartMS: 1340, Flux: &validate.Share{Ready: 1, Total: 2}, PersistentVolumes: map[string]int{"Bound": 1},
	}
	return before, after
}

func completed() Input {
	st := state(9)
	st.Status = onboard.Completed
	st.Changes[1].Status = onboard.Made
	st.PhaseTimes[onboard.StorageIntegration] = onboard.Times{Started: at(60), Ended: at(99), Attempts: 2, Seconds: 31}
	st.Errors = []onboard.Failure{{Time: at(70), Phase: onboard.StorageIntegration, Error: "write on a claimed volume: no answer"}}
	in := Input{State: st, Log: "/home/user/.local/state/k8slab/.logs/small/run.jsonl", Findings: map[onboard.PhaseID][]validate.Finding{
		onboard.PreValidation: {
			{Area: validate.AreaCluster, Check: "every Node is Ready", Status: validate.Passed, Detail: "1 of 1"},
			{Area: validate.AreaStorage, Check: "Longhorn is healthy", Status: validate.NotApplicable, Detail: "there is no Longhorn"},
		},
		onboard.SecurityValidation: {
			{Area: validate.AreaSecurity, Check: "every namespace has a policy", Status: validate.Warned, Detail: "none in default", Next: "write one for default"},
		},
	}}
	in.Before, in.After = clusters()
	return in
}

func failed() Input {
	st := state(3)
	st.CurrentPhase, st.FailedPhases, st.Timestamp = onboard.StorageIntegration, 1, at(75)
	const text = "write on a claimed volume: w3: the claim is Pending: no disk\nnext: see the storage's log"
	st.PhaseStatus[onboard.StorageIntegration], st.PhaseErrors[onboard.StorageIntegration] = onboard.Failed, text
	st.PhaseStatus[onboard.PreValidation] = onboard.Skipped
	st.CompletedPhases = 2
	st.PhaseTimes[onboard.StorageIntegration] = onboard.Times{Started: at(60), Ended: at(75), Attempts: 1, Seconds: 15.02}
	st.Errors = []onboard.Failure{{Time: at(75), Phase: onboard.StorageIntegration, Error: text}}
	before, _ := clusters()
	next := "free a disk on w3"
	return Input{State: st, Before: before, Findings: map[onboard.PhaseID][]validate.Finding{
		onboard.StorageIntegration: {
			{Area: validate.AreaStorage, Check: "the node has a disk", Status: validate.Failed, Detail: "no disk", Next: next},
			{Area: validate.AreaStorage, Check: "the claim is bound", Status: validate.Failed, Detail: "Pending", Next: next},
		},
	}}
}

func rolledBack() Input {
	in := failed()
	in.State.Status, in.State.CurrentPhase, in.State.Timestamp = onboard.RolledBack, "", at(110)
	for i := range in.State.Changes {
		in.State.Changes[i].Status, in.State.Changes[i].Time = onboard.Undone, at(105-i)
	}
	return in
}

const hostileText = "</td><script>alert(1)</script> | cell | \n# heading\n- [x](javascript:alert(1)) ![i](//evil) `code` **bold** _em_ node_join <b onload=x> &lt; \x1b[31m\u202e \\| " +
	"token: abcdef.0123456789abcdef"

// hostile has markup, escape sequences, a secret and far too much of it wherever a text is not labctl's own.
func hostile() Input {
	in := failed()
	long := strings.Repeat("ä<|", 5000)
	in.State.Cluster, in.State.ClusterID, in.Log = hostileText, hostileText, hostileText
	in.State.PhaseErrors[onboard.StorageIntegration] = hostileText + long
	in.State.Errors[0].Error = hostileText + long
	in.State.Changes[0].What, in.State.Changes[0].Undo = hostileText, hostileText
	in.Findings = map[onboard.PhaseID][]validate.Finding{
		"<phase>|": {{Area: "<area>|", Check: hostileText, Status: "<fine>|", Detail: hostileText, Next: hostileText}},
		onboard.StorageIntegration: {
			{Area: validate.AreaStorage, Check: "# first", Status: validate.Failed, Detail: long, Next: "1. heading\n===\n" + hostileText},
		},
	}
	in.After = &validate.Snapshot{Nodes: map[string]bool{hostileText: false}, Pods: map[string]int{hostileText: 1}, PodStartError: hostileText}
	return in
}

var samples = map[string]func() Input{"failed": failed, "completed": completed, "rolled-back": rolledBack, "hostile": hostile}

var forms = map[string]func(io.Writer, Input) error{".md": Markdown, ".html": HTML}

func rendered(t *testing.T, form string, in Input) string {
	t.Helper()
	var b bytes.Buffer
	if err := forms[form](&b, in); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReports(t *testing.T) {
	for name, sample := range samples {
		for form := range forms {
			t.Run(name+form, func(t *testing.T) { golden.Check(t, name+form, rendered(t, form, sample())) })
		}
	}
}

func TestNoSecretAndNoControlCharacters(t *testing.T) {
	for form := range forms {
		got := rendered(t, form, hostile())
		if strings.Contains(got, "0123456789abcdef") || strings.ContainsAny(got, "\x1b\u202e\x00") || !utf8.ValidString(got) {
			t.Errorf("%s: something of it is left", form)
		}
	}
}

// A page of hostile texts has the elements that the same page has of harmless ones.
func TestHostileTextIsNoMarkupInHTML(t *testing.T) {
	allowed := " html head meta title style body header main section h1 h2 p dl dt dd table thead tbody tfoot tr th td span pre ol ul li strong "
	z := html.NewTokenizer(strings.NewReader(rendered(t, ".html", hostile())))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			if !errors.Is(z.Err(), io.EOF) {
				t.Error(z.Err())
			}
			return
		}
		token := z.Token()
		if (kind == html.StartTagToken || kind == html.SelfClosingTagToken) && !strings.Contains(allowed, " "+token.Data+" ") {
			t.Errorf("element %s", token)
		}
		for _, a := range token.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "href" || a.Key == "src" || a.Key == "style" {
				t.Errorf("attribute %s of %s", a.Key, token)
			}
		}
	}
}

// Every table of the Markdown keeps its number of columns, and no line begins with what a text brought along.
func TestHostileTextIsNoMarkupInMarkdown(t *testing.T) {
	pipe := regexp.MustCompile(`(^|[^\\])(\\\\)*\|`)
	ours := regexp.MustCompile(`^($|#{1,2} [A-Z]|\*\*[✓✗!–] |\| |\|---|- |[A-Z0-9])`)
	columns := 0
	for line := range strings.Lines(rendered(t, ".md", hostile())) {
		line = strings.TrimSuffix(line, "\n")
		if !ours.MatchString(line) {
			t.Errorf("a line begins with %.60q", line)
		}
		if strings.ContainsAny(line, "<>") {
			t.Errorf("HTML in %.200q", line)
		}
		n := 0
		if strings.HasPrefix(line, "|") {
			n = len(pipe.FindAllString(line, -1))
		}
		if columns > 0 && n > 0 && n != columns {
			t.Errorf("%d columns instead of %d in %.200q", n, columns, line)
		}
		columns = n
	}
}

func TestMarkdown(t *testing.T) {
	for text, want := range map[string]string{
		"node_join_monitoring": "node_join_monitoring", "_em_ a__b": `\_em\_ a__b`, "__x": `\_\_x`, "a | b\nc": `a \| b; c`, "# x": `\# x`, "12. x": `12\. x`, "- x": `\- x`,
		`\|`: `\\\|`, "<b>&": "&lt;b&gt;&amp;", "[x](y) *z* `c` ~s~": "\\[x\\](y) \\*z\\* \\`c\\` \\~s\\~", "v1.36.3": "v1.36.3", "8.2ms": "8.2ms", "---": `\---`,
	} {
		if got := markdown(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Outcomes are told of every condition that an onboarding can be in.
func TestOutcome(t *testing.T) {
	half := rolledBack().State
	half.Status, half.Changes[0].Status = onboard.RollingBack, onboard.Made
	waiting := state(4)
	waiting.CurrentPhase = onboard.NetworkValidation
	for want, st := range map[string]*onboard.State{
		"w3 is a member of small": completed().State, "Failed at storage_integration": failed().State, "Rolled back: every change is undone": rolledBack().State,
		"Half rolled back: 1 of 2 changes are left": half, "Not finished: at network_validation": waiting, "Not finished": state(4),
	} {
		text, tone := outcome(st)
		if text != want || signs[tone] == "" {
			t.Errorf("%q (%s), want %q", text, tone, want)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "reports")
	for range 2 { // again is no error
		paths, err := Write(dir, completed())
		if err != nil || len(paths) != 2 {
			t.Fatal(paths, err)
		}
		for i, ending := range []string{".md", ".html"} {
			info, err := os.Stat(paths[i])
			if err != nil || info.Mode() != 0o600 || filepath.Base(paths[i]) != "node-onboarding-w3-20260301-103300"+ending {
				t.Errorf("%s: %v, %v", paths[i], info.Mode(), err)
			}
			data, _ := os.ReadFile(paths[i])
			if string(data) != rendered(t, ending, completed()) {
				t.Errorf("%s has other content", paths[i])
			}
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("left in the directory: %v", entries)
	}
}

func TestWriteRefuses(t *testing.T) {
	outside := completed()
	outside.State.Node = "../w3"
	for want, in := range map[string]Input{"no onboarding": {}, "cannot be part of a file's name": outside} {
		if paths, err := Write(t.TempDir(), in); err == nil || !strings.Contains(err.Error(), want) || paths != nil {
			t.Errorf("%v, %v, want %q", paths, err, want)
		}
	}
	for form, render := range forms {
		if render(io.Discard, Input{}) == nil {
			t.Errorf("%s of no state", form)
		}
	}
}
