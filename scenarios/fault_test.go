package scenarios

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/symptom"
)

// recorder is a pair of hands that does nothing.
type recorder struct{ ran []string }

func (r *recorder) Run(_ context.Context, node string, argv ...string) (string, error) {
	r.ran = append(r.ran, node+": "+strings.Join(argv, " "))
	return "", nil
}

func (r *recorder) Labctl(_ context.Context, args ...string) (string, error) {
	r.ran = append(r.ran, "labctl: "+strings.Join(args, " "))
	return "", nil
}

func TestFaults(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	all := All()
	if !slices.IsSortedFunc(all, func(a, b Fault) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("not sorted by name")
	}
	for i, f := range all {
		if !name.MatchString(f.Name) || i > 0 && f.Name == all[i-1].Name {
			t.Errorf("name %q", f.Name)
		}
		if f.Story == "" || len(f.Roles) == 0 {
			t.Errorf("%s: story %q, roles %q", f.Name, f.Story, f.Roles)
		}
		for _, id := range []symptom.ID{f.Symptom, f.cause()} {
			if _, known := symptom.Lookup(id); id != "" && !known {
				t.Errorf("%s: symptom %q", f.Name, id)
			}
		}
	}
}

func (f Fault) cause() symptom.ID {
	if f.Join == nil {
		return ""
	}
	return f.Join.Cause
}

// mayRun are the beginnings of what injectors may do elsewhere than on their node: change etcd's data and members.
var mayRun = []string{"n: ", "c: etcdctl ", "c: sh -ec \n\t\tdir=$(mktemp -d)", "labctl: power off n", "labctl: join-command --control-plane"}

// An injector acts on the node that it was given, or on the control plane beside it.
func TestInjectorsStayOnTheirNodes(t *testing.T) {
	for _, f := range All() {
		hands := &recorder{}
		site := Site{Hands: hands, Node: "n", Address: "10.0.0.9", ControlPlane: "c"}
		err := f.Inject(t.Context(), site)
		injected := len(hands.ran)
		if f.Restore != nil && err == nil {
			err = f.Restore(t.Context(), site)
		}
		if err != nil || injected == 0 && f.Name != quorumLost.Name { // which is made on the others, and here are none
			t.Errorf("%s: %v, ran %q", f.Name, err, hands.ran)
		}
		for _, line := range hands.ran {
			if !slices.ContainsFunc(mayRun, func(prefix string) bool { return strings.HasPrefix(line, prefix) }) {
				t.Errorf("%s ran %q", f.Name, line)
			}
		}
	}
}
