package node

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// newNode makes a node that is closed, and has left no goroutine behind, when the test ends.
func newNode(t *testing.T, cfg Config) *Node {
	t.Helper()
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// settle is to be called first: its check runs after every other cleanup.
func settle(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		deadline := time.Now().Add(10 * time.Second)
		for runtime.NumGoroutine() > before {
			if time.Now().After(deadline) {
				stacks := make([]byte, 1<<20)
				t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before,
					stacks[:runtime.Stack(stacks, true)])
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
}

// setup is a server, and a node on it.
func setup(t *testing.T, handle func(*call) end) (*server, *Node) {
	t.Helper()
	settle(t)
	s, cfg := newServer(t, handle)
	return s, newNode(t, cfg)
}

func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// promptly fails the test if f takes longer than anything that should not have to wait.
func promptly(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(3 * time.Second):
		t.Fatal("still blocked after 3s")
	}
}
