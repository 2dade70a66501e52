// Package metrics writes numbers in Prometheus' text format: into files that node_exporter's textfile collector reads on a node, and for
// whoever scrapes labctl. docs/metrics.md lists the names. It imports nothing of ours, as it also runs on nodes.
package metrics

import (
	"io"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Where the textfile collector looks on a node, which reads every *.prom file there.
const (
	Dir            = "/var/lib/k8slab/textfile"
	joinFile       = "k8slab_join.prom"
	OnboardingFile = "k8slab_onboarding.prom"
)

// Set is metrics in the order in which they were first added.
type Set struct{ families []*dto.MetricFamily }

// Gauge adds a value that goes up and down. labels are names and values in turns.
func (s *Set) Gauge(name, help string, value float64, labels ...string) {
	s.add(name, help, dto.MetricType_GAUGE, &dto.Metric{Gauge: &dto.Gauge{Value: &value}, Label: pairs(labels)})
}

// Counter adds a value that only goes up. labels are names and values in turns.
func (s *Set) Counter(name, help string, value float64, labels ...string) {
	s.add(name, help, dto.MetricType_COUNTER, &dto.Metric{Counter: &dto.Counter{Value: &value}, Label: pairs(labels)})
}

func (s *Set) add(name, help string, kind dto.MetricType, m *dto.Metric) {
	i := slices.IndexFunc(s.families, func(f *dto.MetricFamily) bool { return f.GetName() == name })
	if i < 0 {
		i = len(s.families)
		s.families = append(s.families, &dto.MetricFamily{Name: &name, Help: &help, Type: &kind})
	}
	s.families[i].Metric = append(s.families[i].Metric, m)
}

func pairs(labels []string) (all []*dto.LabelPair) {
	for pair := range slices.Chunk(labels, 2) {
		value := strings.ToValidUTF8(pair[1], "?")
		all = append(all, &dto.LabelPair{Name: &pair[0], Value: &value})
	}
	return all
}

// Write writes the metrics as text.
func (s *Set) Write(w io.Writer) error {
	for _, f := range s.families {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return err
		}
	}
	return nil
}

// Bool is a truth as a value: 1 or 0.
func Bool(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
