package node

import (
	"encoding/binary"
	"io"
	"net"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// enter counts a session, as sshd does, or refuses it.
func (s *server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions >= s.maxSessions {
		s.refused++
		return false
	}
	s.sessions++
	s.peak = max(s.peak, s.sessions)
	return true
}

func (s *server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions--
}

func (s *server) session(request ssh.NewChannel) {
	if !s.enter() {
		_ = request.Reject(ssh.ConnectionFailed, "open failed")
		return
	}
	channel, requests, err := request.Accept()
	if err != nil {
		s.leave()
		return
	}
	c := &call{
		stdin: channel, stdout: channel, stderr: channel.Stderr(),
		signals: make(chan string, 8), closed: make(chan struct{}), sizes: make(chan [2]uint32, 8),
	}
	started := false
	for r := range requests {
		switch r.Type {
		case "exec", "shell":
			if r.Type == "exec" {
				c.line = parseString(r.Payload)
			}
			started = true
			_ = r.Reply(true, nil)
			s.wg.Go(func() { s.execute(channel, c) })
		case "signal":
			c.signals <- parseString(r.Payload)
		case "pty-req":
			c.term = parseString(r.Payload)
			c.sizes <- parseSize(r.Payload[4+len(c.term):])
			_ = r.Reply(true, nil)
		case "window-change":
			c.sizes <- parseSize(r.Payload)
		default:
			_ = r.Reply(false, nil)
		}
	}
	close(c.closed)
	if !started {
		s.leave()
	}
}

func (s *server) execute(channel ssh.Channel, c *call) {
	e := s.handle(c)
	s.leave()
	switch {
	case e.silence:
	case e.signal != "":
		_, _ = channel.SendRequest("exit-signal", false, ssh.Marshal(struct {
			Signal string
			Core   bool
			Text   string
			Lang   string
		}{Signal: e.signal}))
	default:
		_, _ = channel.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, e.status))
	}
	_ = channel.CloseWrite()
	_ = channel.Close()
}

func (s *server) forward(request ssh.NewChannel) {
	var to struct {
		Host     string
		Port     uint32
		FromHost string
		FromPort uint32
	}
	if err := ssh.Unmarshal(request.ExtraData(), &to); err != nil {
		_ = request.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	target, err := net.Dial("tcp", net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))))
	if err != nil {
		_ = request.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	channel, requests, err := request.Accept()
	if err != nil {
		target.Close()
		return
	}
	s.wg.Go(func() { ssh.DiscardRequests(requests) })
	s.wg.Go(func() { _, _ = io.Copy(target, channel); target.Close() })
	_, _ = io.Copy(channel, target)
	channel.Close()
}

func parseString(payload []byte) string {
	return string(payload[4 : 4+binary.BigEndian.Uint32(payload)])
}

func parseSize(payload []byte) [2]uint32 {
	return [2]uint32{binary.BigEndian.Uint32(payload), binary.BigEndian.Uint32(payload[4:])}
}

// realShell runs the line the way sshd does: through a shell, in its own process group.
func realShell(c *call) end {
	cmd := exec.Command("/bin/sh", "-c", c.line)
	cmd.Stdout, cmd.Stderr = c.stdout, c.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return end{status: 255}
	}
	if err := cmd.Start(); err != nil {
		return end{status: 255}
	}
	go func() { _, _ = io.Copy(stdin, c.stdin); stdin.Close() }()
	done := make(chan struct{})
	go func() {
		select {
		case <-c.signals:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		case <-done:
		}
	}()
	_ = cmd.Wait()
	close(done)
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return end{signal: map[syscall.Signal]string{syscall.SIGTERM: "TERM", syscall.SIGKILL: "KILL"}[status.Signal()]}
	}
	return end{status: uint32(status.ExitStatus())}
}
