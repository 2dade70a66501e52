package kube

import "testing"

func TestLacks(t *testing.T) {
	type m = map[string]any
	live := m{"spec": m{"replicas": int64(3), "template": m{"containers": []any{m{"name": "a", "image": "x:1", "added": true}}}}, "rules": []any{m{"verbs": []any{"get"}}}}
	tests := []struct {
		name   string
		want   any
		except []string
		lacks  string
	}{
		{"what others added does not matter", m{"spec": m{"template": m{"containers": []any{m{"name": "a", "image": "x:1"}}}}}, nil, ""},
		{"another image", m{"spec": m{"template": m{"containers": []any{m{"image": "x:2"}}}}}, nil, "spec.template.containers.image"},
		{"a container more", m{"spec": m{"template": m{"containers": []any{m{}, m{}}}}}, nil, "spec.template.containers"},
		{"a missing field", m{"data": m{"key": "value"}}, nil, "data.key"},
		{"an empty value says nothing", m{"status": m{}, "creationTimestamp": nil, "hostNetwork": false}, nil, ""},
		{"another number", m{"spec": m{"replicas": float64(2)}}, nil, "spec.replicas"},
		{"the same number of another type", m{"spec": m{"replicas": float64(3)}}, nil, ""},
		{"a path that does not matter", m{"spec": m{"replicas": int64(2)}}, []string{"spec.replicas"}, ""},
		{"a verb taken away", m{"rules": []any{m{"verbs": []any{"get", "list"}}}}, nil, "rules.verbs"},
	}
	for _, tt := range tests {
		if got := lacks(live, tt.want, "", tt.except); got != tt.lacks {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.lacks)
		}
	}
}
