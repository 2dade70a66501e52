package etcd

import (
	"slices"
	"strings"
	"testing"
)

func TestResign(t *testing.T) {
	tests := []struct {
		name    string
		leader  uint64
		resigns uint64
		silent  []uint64
		want    string // the call
	}{
		{"to the one that is the least behind", 1, 1, nil, "lead https://m1:2379 3"},
		{"one that answers", 1, 1, []uint64{3}, "lead https://m1:2379 2"},
		{"it does not lead", 2, 1, nil, ""},
		{"no member", 1, 9, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			f.cluster(1, member(1), member(2), member(3))
			for id := uint64(1); id <= 3; id++ {
				if slices.Contains(tt.silent, id) {
					f.down(id)
				} else {
					f.answer(id, answer{id: id, leader: tt.leader, index: id * 10})
				}
			}
			if err := f.client(nil, at(1)).Resign(t.Context(), tt.resigns); err != nil {
				t.Fatal(err)
			}
			var calls []string
			for _, call := range f.calls {
				if strings.HasPrefix(call, "lead ") {
					calls = append(calls, call)
				}
			}
			if got := strings.Join(calls, ", "); got != tt.want {
				t.Errorf("called %q, want %q", got, tt.want)
			}
		})
	}
}
