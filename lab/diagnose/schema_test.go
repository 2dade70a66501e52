package diagnose

import (
	"reflect"
	"strings"
	"testing"

	"k8slab/lab/golden"
)

func TestSchema(t *testing.T) {
	schema := golden.ReadSchema(t, "../../docs/schema/diagnose.v1.json")
	schema.CheckType(t, reflect.TypeFor[Report]())
	for _, one := range reports {
		r := one.make()
		r.Schema = Schema
		schema.Check(t, r)
	}
	for _, tt := range damages {
		f := healthyFacts(2)
		tt.damage(&f)
		r, err := NewReportWith(rulesOf(t, siteFile), f)
		if err != nil {
			t.Fatal(err)
		}
		schema.Check(t, r)
	}
	for _, name := range []string{"healthy", "dead-containerd"} {
		schema.Check(t, reportOf(t, name))
	}
	for _, text := range []string{"all is well\n", socketGone + "\n", siteText, "error execution phase x: nobody knows this\n"} {
		r, err := FromWith(rulesOf(t, siteFile), "-", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		schema.Check(t, r)
	}
}
