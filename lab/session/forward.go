package session

import (
	"context"
	"io"
	"net"
	"os"
	"sync"

	"k8slab/lab/kube"
)

// Forwarded is the cluster's API at a port of this computer.
type Forwarded struct {
	Kubeconfig string // the path of a file for it, which Stop removes
	Stop       func()
}

// Forward listens on a port of this computer's loopback, and connects whoever dials it to the cluster's API over SSH.
func Forward(ctx context.Context, s *Session, v *Admin) (Forwarded, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return Forwarded{}, err
	}
	host, _, _ := net.SplitHostPort(s.Endpoint())
	text, err := kube.WithServer(v.Config, "https://"+listener.Addr().String(), host)
	file := ""
	if err == nil {
		file, err = privateFile(text)
	}
	if err != nil {
		_ = listener.Close()
		return Forwarded{}, err
	}
	end := s.Carry(ctx, listener, s.Endpoint(), nil) // a client sees a connection that was closed, and says so
	return Forwarded{file, func() { end(); _ = os.Remove(file) }}, nil
}

// Carry connects whoever dials the listener with an address in the cluster, over SSH, until stop is called. failed, if not nil, is told of
// each connection that did not come about; it may be called concurrently.
func (s *Session) Carry(ctx context.Context, listener net.Listener, address string, failed func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() {
				if err := s.pipe(ctx, conn, address); err != nil && failed != nil && ctx.Err() == nil {
					failed(err)
				}
			})
		}
	})
	return func() {
		cancel()
		_ = listener.Close()
		connections.Wait()
	}
}

// privateFile writes a new file that only the user can read.
func privateFile(text []byte) (string, error) {
	f, err := os.CreateTemp("", "k8slab-kubeconfig-") // made with mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return f.Name(), err
}

// pipe connects a connection with an address in the cluster until both ends have closed, or ctx ends.
func (s *Session) pipe(ctx context.Context, here net.Conn, address string) error {
	defer func() { _ = here.Close() }()
	there, err := s.DialCluster(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = there.Close() }()
	stop := context.AfterFunc(ctx, func() { _, _ = here.Close(), there.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { carry(there, here) })
	both.Go(func() { carry(here, there) })
	both.Wait()
	return nil
}

// carry copies until from has said all, and then says so to the other end, which may still answer.
func carry(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	if half, is := to.(interface{ CloseWrite() error }); is {
		_ = half.CloseWrite()
		return
	}
	_ = to.Close()
}
