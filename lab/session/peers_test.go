package session_test

import (
	"testing"

	"k8slab/lab/etcd"
	"k8slab/lab/labtest"
	"k8slab/lab/session"
)

func TestOwnsPeer(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	n := labtest.Node(t, s.Lab, "cp1") // 10.30.0.11
	tests := []struct {
		name string
		urls []string
		want bool
	}{
		{"its own", []string{"https://10.30.0.11:2380"}, true},
		{"one of several", []string{"https://10.30.9.9:2380", "https://10.30.0.11:2380"}, true},
		{"another's", []string{"https://10.30.0.12:2380"}, false},
		{"one that begins like it", []string{"https://10.30.0.111:2380", "https://10.30.0.1:2380"}, false},
		{"client port", []string{"https://10.30.0.11:2379"}, false},
		{"none", nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := session.OwnsPeer(n, etcd.Member{PeerURLs: tt.urls}); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
