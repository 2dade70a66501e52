package metrics

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"k8slab/lab/atomicfile"
)

// Attempt is the end of one attempt to join.
type Attempt struct {
	Joined bool
	Cause  string // the symptom's ID, of one that failed; "" is not known
	Took   time.Duration
	Ended  time.Time
}

// The names of what is told of a node's attempts, and the values of their label `result`.
const (
	attemptsName  = "k8slab_join_attempts_total"
	durationName  = "k8slab_join_duration_seconds"
	timestampName = "k8slab_join_last_timestamp_seconds"

	joined = "joined"
	failed = "failed"
)

// CountAttempt adds an attempt to those that the directory's file has. Two that are counted at once may lose one. A file that cannot be
// understood is replaced by one that begins anew, and the error says so: the attempt is counted then, too.
func CountAttempt(dir string, a Attempt) error {
	path := filepath.Join(dir, joinFile)
	known, lost := readJoins(path)
	if lost != nil {
		known, lost = newJoins(), fmt.Errorf("the count of attempts to join starts at zero again: %s: %w", path, lost)
	}
	known.add(a)
	var b bytes.Buffer
	if err := known.set().Write(&b); err != nil {
		return err
	}
	return errors.Join(lost, write(path, b.Bytes()))
}

// joins is the content of the file.
type joins struct {
	attempts map[ending]float64
	took     map[string]float64 // seconds of the last attempt, by result
	last     map[string]float64 // when it ended, as a Unix time, by result
}

type ending struct{ result, cause string }

// newJoins are no attempts yet. Both results are there from the first on, so that their sums never lack one.
func newJoins() joins {
	return joins{attempts: map[ending]float64{{result: joined}: 0, {result: failed}: 0}, took: map[string]float64{}, last: map[string]float64{}}
}

func (j joins) add(a Attempt) {
	e := ending{result: joined}
	if !a.Joined {
		e = ending{failed, cmp.Or(a.Cause, "unknown")}
	}
	j.attempts[e]++
	j.took[e.result], j.last[e.result] = a.Took.Seconds(), float64(a.Ended.Unix())
}

func (j joins) set() *Set {
	s := &Set{}
	compare := func(a, b ending) int { return cmp.Or(cmp.Compare(a.result, b.result), cmp.Compare(a.cause, b.cause)) }
	for _, e := range slices.SortedFunc(maps.Keys(j.attempts), compare) {
		s.Counter(attemptsName, "Attempts of this node to join a cluster.", j.attempts[e], "result", e.result, "cause", e.cause)
	}
	for _, result := range slices.Sorted(maps.Keys(j.took)) {
		s.Gauge(durationName, "Duration of the last attempt to join with this result.", j.took[result], "result", result)
	}
	for _, result := range slices.Sorted(maps.Keys(j.last)) {
		s.Gauge(timestampName, "End of the last attempt to join with this result, as a Unix time.", j.last[result], "result", result)
	}
	return s
}

// maxFile bounds a file that is read: there are fewer causes than a hundred.
const maxFile = 1 << 20

// readJoins reads what set wrote; nothing where there is no file.
func readJoins(path string) (joins, error) {
	j := newJoins()
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return j, err
	}
	defer f.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(f, maxFile))
	if err != nil {
		return j, err
	}
	for _, m := range families[attemptsName].GetMetric() {
		n := m.GetCounter().GetValue()
		if m.Counter == nil || n != math.Trunc(n) || n < 0 || math.IsInf(n, 0) {
			return j, fmt.Errorf("%s is %v, which counts nothing", attemptsName, n)
		}
		j.attempts[ending{label(m, "result"), label(m, "cause")}] = n
	}
	for _, m := range families[durationName].GetMetric() {
		j.took[label(m, "result")] = m.GetGauge().GetValue()
	}
	for _, m := range families[timestampName].GetMetric() {
		j.last[label(m, "result")] = m.GetGauge().GetValue()
	}
	return j, nil
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.Label {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// write replaces a file as a whole. The collector is another user and reads all *.prom: until it is whole, the file has another name.
func write(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // a join runs with a umask that keeps others out
		return err
	}
	return atomicfile.Write(path, 0o644, data)
}
