package report

import (
	"bytes"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"k8slab/lab/golden"
	"k8slab/lab/metrics"
	"k8slab/lab/onboard"
)

func TestMetrics(t *testing.T) {
	var b bytes.Buffer
	s := &metrics.Set{}
	AddMetrics(s, failed().State, "node", "w3")
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "failed.prom", b.String())
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(&b)
	if err != nil {
		t.Fatal(err)
	}
	set := 0.0
	for _, m := range families["k8slab_onboarding_phase_status"].GetMetric() {
		set += m.GetGauge().GetValue()
	}
	if want := float64(len(onboard.Phases())); set != want {
		t.Errorf("%v statuses are set, want one for each of %v phases", set, want)
	}
}
