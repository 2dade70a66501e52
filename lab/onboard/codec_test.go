package onboard

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sample is a state in the middle: a phase has failed before, one was interrupted.
func sample() *State {
	at := time.Date(2024, 1, 15, 10, 30, 0, 0, time.UTC)
	s := newState(target)
	s.Started, s.Timestamp = at, at.Add(4*time.Minute+12*time.Second+345*time.Millisecond)
	s.CurrentPhase = NodeJoinMonitoring
	s.set(PreValidation, Completed, nil)
	s.set(GitOpsActivation, Completed, nil)
	s.set(NodeJoinMonitoring, InProgress, nil)
	s.PhaseTimes[PreValidation] = Times{Started: at, Ended: at.Add(12 * time.Second), Attempts: 1, Seconds: 12.04}
	s.PhaseTimes[GitOpsActivation] = Times{Started: at.Add(12 * time.Second), Ended: at.Add(90 * time.Second), Attempts: 2, Seconds: 71.2}
	s.PhaseTimes[NodeJoinMonitoring] = Times{Started: at.Add(90 * time.Second), Attempts: 1, Seconds: 162.3}
	refused := "push the commit: <remote> \"origin\" refused:\nnon-fast-forward \x1b[31m"
	s.Errors = []Failure{{Time: at.Add(40 * time.Second), Phase: GitOpsActivation, Error: refused}}
	s.Changes = []Change{
		{Phase: GitOpsActivation, Kind: "commit", Params: map[string]string{"repository": "/srv/git", "branch": "main"},
			What: "commit w2's configuration", Undo: "revert the commit of w2's configuration", Status: Made, Time: at.Add(80 * time.Second)},
		{Phase: NodeJoinMonitoring, Kind: "join", What: "join w2", Undo: "drain w2 and delete its Node", Status: Intended, Time: at.Add(95 * time.Second)},
	}
	return s
}

func encoded(t testing.TB, s *State) []byte {
	t.Helper()
	data, err := s.encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The fields and their names are an interface to people's scripts.
func TestFormat(t *testing.T) {
	data := encoded(t, sample())
	for _, want := range []string{
		"  \"schema\": 1,\n  \"node\": \"w2\",\n  \"role\": \"worker\",\n  \"cluster\": \"small\",\n", "  \"timestamp\": \"2024-01-15T10:34:12.345Z\",\n",
		"  \"current_phase\": \"node_join_monitoring\",\n  \"completed_phases\": 2,\n  \"failed_phases\": 0,\n  \"total_phases\": 9,\n",
		"    \"health_verification\": \"not_started\",\n", "\"phase_errors\": {\n", "<remote>",
	} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("%q is not in\n%s", want, data)
		}
	}
	lines := bytes.SplitAfterN(data, []byte("\n"), 3)
	if want := fmt.Sprintf("  \"checksum\": \"sha256:%s\",\n", checksum(lines[2])); string(lines[1]) != want {
		t.Errorf("the second line is %q, want %q", lines[1], want)
	}
	s, err := parse(data)
	must(t, err)
	if again := encoded(t, s); !bytes.Equal(again, data) {
		t.Errorf("read and written it is\n%s\nand was\n%s", again, data)
	}
}

// edit changes the text of the sample's file and gives it the checksum that it then has.
func edit(t *testing.T, from, to string) []byte {
	t.Helper()
	data := encoded(t, sample())
	if strings.Count(string(data), from) != 1 {
		t.Fatalf("%q is not in it once", from)
	}
	data = bytes.Replace(data, []byte(from), []byte(to), 1)
	return seal(bytes.SplitAfterN(data, []byte("\n"), 3)[2])
}

// contradiction is a state's file that the sample was made into, without the check that keeps it from being written.
func contradiction(t *testing.T, change func(*State)) []byte {
	t.Helper()
	s := sample()
	change(s)
	data, err := s.marshal()
	must(t, err)
	if _, err := s.encode(); err == nil {
		t.Error("it would be written")
	}
	return data
}

type refusal struct {
	data []byte
	want string
}

func refusals(t *testing.T) map[string]refusal {
	good := encoded(t, sample())
	all := map[string]refusal{
		"empty":             {nil, "torn or damaged: unexpected end of JSON input; read the changes in it, then move it away"},
		"torn":              {good[:len(good)/2], "torn or damaged"},
		"last byte missing": {good[:len(good)-1], "its checksum is not that of its content"},
		"zeros":             {make([]byte, len(good)), "torn or damaged"},
		"not JSON":          {[]byte("w2: completed\n"), "torn or damaged"},
		"another JSON":      {[]byte("[]\n"), "torn or damaged"},
		"no checksum":       {[]byte("{}\n"), "its first line is not a checksum"},
		"edited":            {bytes.Replace(good, []byte(`"made"`), []byte(`"undone"`), 1), "it was edited or damaged"},
		"appended":          {append(bytes.Clone(good), '\n'), "it was edited or damaged"},
		"huge":              {bytes.Repeat([]byte(" "), maxSize+1), "larger than 1048576 bytes"},
		"future":            {edit(t, `"schema": 1`, `"schema": 2`), "it has version 2, and this labctl knows up to 1; use the version"},
		"future, edited":    {bytes.Replace(good, []byte(`"schema": 1`), []byte(`"schema": 9`), 1), "it has version 9"},
		"no version":        {edit(t, "  \"schema\": 1,\n", ""), "it has version 0, which never existed"},
		"unknown field":     {edit(t, `"status": "in_progress",`, `"status": "in_progress", "force": true,`), `unknown field "force"`},
		"second checksum":   {edit(t, `"schema": 1`, `"checksum": "", "schema": 1`), `unknown field "checksum"`},
		"another type":      {edit(t, `"total_phases": 9`, `"total_phases": "9"`), "its content does not fit: cannot unmarshal string"},
		"a key twice":       {edit(t, `"total_phases": 9`, `"total_phases": 8, "total_phases": 9`), "not in the form that labctl writes"},
		"a key in capitals": {edit(t, `"total_phases"`, `"Total_Phases"`), "not in the form that labctl writes"},
		"another spelling":  {edit(t, `"seconds": 12.04`, `"seconds": 1204e-2`), "not in the form that labctl writes"},
		"two documents":     {edit(t, `}`+"\n  ]\n}\n", `}`+"\n  ]\n}\n{}\n"), "torn or damaged"},
	}
	for name, c := range contradictions {
		all[name] = refusal{contradiction(t, c.change), c.want}
	}
	return all
}

var contradictions = map[string]struct {
	change func(*State)
	want   string
}{
	"completed and failed": {func(s *State) { s.PhaseErrors[PreValidation] = "no" }, `pre_validation is completed and has failed with "no"`},
	"failed for nothing":   {func(s *State) { s.PhaseStatus[PreValidation] = Failed }, "pre_validation has failed without an error"},
	"unknown phase": {func(s *State) {
		s.PhaseStatus["dance"], s.PhaseErrors["dance"], s.PhaseTimes["dance"] = Completed, "", Times{}
	},
		`phase_status has "dance", which is not a phase; phase_errors has "dance", which is not a phase; phase_times has "dance"`},
	"phase missing":         {func(s *State) { delete(s.PhaseStatus, PostValidation) }, "phase_status or phase_errors lacks post_validation"},
	"no phases":             {func(s *State) { s.PhaseStatus, s.PhaseErrors, s.PhaseTimes = nil, nil, nil }, "lacks health_verification"},
	"unknown status":        {func(s *State) { s.PhaseStatus[PostValidation] = Made }, `post_validation is "made", which no phase can be`},
	"skipped in the middle": {func(s *State) { s.set(GitOpsActivation, Skipped, nil) }, "gitops_activation is skipped, and only pre_validation may be"},
	"two in progress":       {func(s *State) { s.set(GitOpsActivation, InProgress, nil) }, "gitops_activation is in progress, and the current phase"},
	"unknown current phase": {func(s *State) { s.CurrentPhase = "../x" }, `current_phase is "../x", which is not a phase`},
	"miscounted":            {func(s *State) { s.CompletedPhases = 3 }, "3 completed and 0 failed of 9 phases are counted, and there are 2, 0 and 9"},
	"ten phases":            {func(s *State) { s.TotalPhases = 10 }, "of 10 phases"},
	"time before the start": {
		func(s *State) { s.PhaseTimes[PostValidation] = Times{Started: s.Started, Attempts: 1} }, "post_validation was not started and took time",
	},
	"no time": {func(s *State) { delete(s.PhaseTimes, PreValidation) }, "pre_validation is completed and has no times"},
	"negative time": {
		func(s *State) { s.PhaseTimes[PreValidation] = Times{Started: s.Started, Attempts: 1, Seconds: -1} }, "pre_validation took -1 s in 1 attempts",
	},
	"no start":              {func(s *State) { s.Started = time.Time{} }, "started or timestamp is missing"},
	"error of nothing":      {func(s *State) { s.Errors[0].Phase = "dance" }, "errors[0] has no phase"},
	"endless errors":        {func(s *State) { s.Errors = make([]Failure, maxErrors+1) }, "there are 51 errors"},
	"change of no phase":    {func(s *State) { s.Changes[0].Phase = "" }, "changes[0] has no phase"},
	"change too early":      {func(s *State) { s.Changes[1].Phase = PostValidation }, "changes[1] is of post_validation, which was not started"},
	"undone for nothing":    {func(s *State) { s.Changes[0].Status = Undone }, "changes[0] is undone without a rollback"},
	"unknown change status": {func(s *State) { s.Changes[0].Status = Failed }, `changes[0] is "failed", which no change can be`},
	"a change twice":        {func(s *State) { s.Changes = append(s.Changes, s.Changes[1]) }, "changes[2] is there twice"},
	"unknown as a whole":    {func(s *State) { s.Status = Failed }, `status is "failed", which no onboarding can be`},
	"completed in part":     {func(s *State) { s.Status = Completed }, "the onboarding is completed and 7 phases are not"},
	"ended in a phase":      {func(s *State) { s.Status = RolledBack }, `the onboarding is rolled_back and still in "node_join_monitoring"`},
	"not all rolled back":   {func(s *State) { s.Status = RolledBack }, `changes[0] is "made" after the rollback`},
	"a path as node":        {func(s *State) { s.Node = "../w2" }, `node "../w2" is not the name of a Node`},
	"no role":               {func(s *State) { s.Role = "master" }, `role "master" is neither`},
	"no cluster":            {func(s *State) { s.ClusterID = "" }, `cluster_id "" is not a UUID`},
	"escape sequences":      {func(s *State) { s.Role = "\x1b[2Jworker" }, `role "\x1b[2Jworker" is neither`},
}

// Whatever is wrong with a file, nothing is done with it, and it stays as it is.
func TestRefused(t *testing.T) {
	for name, r := range refusals(t) {
		t.Run(name, func(t *testing.T) {
			refusesAll(t, r.want, func(path string) error { return os.WriteFile(path, r.data, 0o600) })
		})
	}
}

// refusesAll plants a file in the state's place.
func refusesAll(t *testing.T, want string, plant func(path string) error) {
	t.Helper()
	dir := t.TempDir()
	f := newFake(dir)
	must(t, f.Store.makeDirs())
	must(t, os.WriteFile(f.Store.path(lockFile), nil, 0o600))
	must(t, plant(f.Store.path(stateFile)))
	info, err := os.Lstat(f.Store.path(stateFile))
	must(t, err)
	_, planned := f.Plan(t.Context(), Options{Resume: true})
	_, undoable := f.Undoable()
	_, status := f.Store.Status()
	for _, err := range []error{
		f.Run(t.Context(), Options{}), f.Run(t.Context(), Options{Resume: true}), f.Rollback(t.Context()), planned, undoable, status,
	} {
		if bad, ok := errors.AsType[*RefusedError](err); !ok || bad.Path != f.Store.path(stateFile) || bad.Next == "" {
			t.Errorf("got %v", err)
		}
		contains(t, err, want)
	}
	after, err := os.Lstat(f.Store.path(stateFile))
	must(t, err)
	if f.world.done() != "" || !os.SameFile(info, after) || after.ModTime() != info.ModTime() || after.Mode() != info.Mode() {
		t.Errorf("done: %s; the file is %v", f.world.done(), after.Mode())
	}
	for _, r := range f.runners {
		if r.ran > 0 {
			t.Error("a phase ran")
		}
	}
}

func TestRefusedFiles(t *testing.T) {
	good := encoded(t, sample())
	write := func(mode fs.FileMode) func(string) error {
		return func(path string) error { return errors.Join(os.WriteFile(path, good, 0o600), os.Chmod(path, mode)) }
	}
	of := func(change func(*State)) func(string) error {
		return func(path string) error {
			s := sample()
			change(s)
			return os.WriteFile(path, encoded(t, s), 0o600)
		}
	}
	tests := []struct {
		name, want string
		plant      func(path string) error
	}{
		{"others can write it", "its mode is 0620; see whether somebody changed it, then make it private: chmod 600", write(0o620)},
		{"others can read it", "its mode is 0644", write(0o644)},
		{"a link", "it is a symbolic link", func(path string) error {
			return errors.Join(os.WriteFile(path+".real", good, 0o600), os.Symlink(filepath.Base(path)+".real", path))
		}},
		{"a fifo", "it is not a regular file", func(path string) error { return syscall.Mkfifo(path, 0o600) }},
		{"a directory", "it is not a regular file", func(path string) error { return os.Mkdir(path, 0o700) }},
		{"another node", "it is of node w3 and not w2", of(func(s *State) { s.Node = "w3" })},
		{"another role", "it is of role control-plane and not worker", of(func(s *State) { s.Role = "control-plane" })},
		{"another cluster", "it is of cluster small (00000000-0000-4000-8000-000000000001) and not small (4f0c6f0e", of(func(s *State) { s.ClusterID = anotherID })},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { refusesAll(t, tt.want, tt.plant) })
	}
	t.Run("another user's", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root can give files away")
		}
		refusesAll(t, "it belongs to another user", func(path string) error { return errors.Join(write(0o600)(path), os.Chown(path, 65534, -1)) })
	})
}

func TestStored(t *testing.T) {
	token := "abcdef.0123456789abcdef"
	tests := []struct{ text, want string }{
		{"no Node w2", "no Node w2"}, {"", "an error without a text"}, {"bad \xff byte", "bad ? byte"}, {"token " + token, "token abcdef.***"},
	}
	for _, tt := range tests {
		if got := stored(errors.New(tt.text)); got != tt.want {
			t.Errorf("%q is stored as %q", tt.text, got)
		}
	}
	if got := stored(errors.New(strings.Repeat("ä", maxText))); len(got) > maxText || !strings.HasSuffix(got, "ä…") {
		t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-10:])
	}
	s := sample()
	for i := range 2 * maxErrors {
		s.record(PreValidation, fmt.Errorf("%d %s", i, strings.Repeat("\x00", maxText)))
	}
	if data := encoded(t, s); !strings.HasPrefix(s.Errors[maxErrors-1].Error, "99 ") || len(data) > maxSize*3/4 {
		t.Errorf("%d bytes, the last error is %.10q", len(data), s.Errors[maxErrors-1].Error)
	}
}
