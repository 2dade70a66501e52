package session

import (
	"context"
	"io"
	"net"
	"os"
	"sync"

	"k8slab/lab/kube"
)

// Forward listens on a port of this computer's loopback, and connects whoever dials it to the cluster's API over SSH. The kubeconfig for it
// is a file that stop removes.
func (s *Session) Forward(ctx context.Context, v *Admin) (kubeconfig string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	host, _, _ := net.SplitHostPort(s.Endpoint())
	text, err := kube.WithServer(v.Config, "https://"+listener.Addr().String(), host)
	file := ""
	if err == nil {
		file, err = privateFile(text)
	}
	if err != nil {
		_ = listener.Close()
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() { s.pipe(ctx, conn) })
		}
	})
	return file, func() {
		cancel()
		_ = listener.Close()
		connections.Wait()
		_ = os.Remove(file)
	}, nil
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

// pipe connects a connection with the cluster's API until either end closes, or ctx ends.
func (s *Session) pipe(ctx context.Context, here net.Conn) {
	defer func() { _ = here.Close() }()
	there, err := s.DialCluster(ctx, "tcp", s.Endpoint())
	if err != nil {
		return // the client sees a connection that was closed, and says so
	}
	defer func() { _ = there.Close() }()
	stop := context.AfterFunc(ctx, func() { _, _ = here.Close(), there.Close() })
	defer stop()
	ended := make(chan struct{}, 2)
	carry := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from)
		ended <- struct{}{}
	}
	go carry(there, here)
	go carry(here, there)
	<-ended
}
