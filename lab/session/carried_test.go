package session

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8slab/lab/node"
)

// shellNode runs commands on this computer, with a home of its own.
type shellNode struct {
	Node
	home string
}

func (n shellNode) Name() string { return "w1" }
func (n shellNode) Close() error { return nil }

func (n shellNode) Run(ctx context.Context, c node.Command) error {
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+n.home)
	cmd.Stdout, cmd.Stderr = c.Stdout, c.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	go func() { // a read that blocks for good outlives the command
		if c.Stdin != nil {
			_, _ = io.Copy(input, c.Stdin)
		}
		_ = input.Close()
	}()
	var said strings.Builder
	if cmd.Stderr == nil {
		cmd.Stderr = &said
	}
	if err := cmd.Run(); err != nil {
		return &node.ExitError{Status: cmd.ProcessState.ExitCode(), Stderr: said.String()}
	}
	return nil
}

func packedProgram(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	to := gzip.NewWriter(&packed)
	_, err := to.Write([]byte("#!/bin/sh\necho says \"$1\"\n"))
	if err := errors.Join(err, to.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// What is packed arrives, runs, and is removed at the end, unless it stays.
func TestBring(t *testing.T) {
	packed := packedProgram(t)
	for _, keep := range []bool{false, true} {
		home := t.TempDir()
		c := &carried{Node: shellNode{home: home}, programs: newPrograms(func(string) ([]byte, error) { return packed, nil }), keep: keep}
		if err := (&Session{Nodes: map[string]Node{"w1": c}}).Bring(t.Context(), "w1"); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := c.Run(t.Context(), node.Command{Argv: []string{LabnodePath, "hello"}, Stdout: &out}); err != nil || out.String() != "says hello\n" {
			t.Errorf("keep %t: %q, %v", keep, out.String(), err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		left, _ := filepath.Glob(filepath.Join(home, ".*", "*"))
		if kept := len(left) > 0; kept != keep {
			t.Errorf("keep %t: left %q", keep, left)
		}
	}
}

// What did not arrive as it was sent does not run, and one that stayed is sent again if it is not what it was.
func TestBringComparesHashes(t *testing.T) {
	packed, home := packedProgram(t), t.TempDir()
	sent := program{packed: packed, full: 99, sum: strings.Repeat("0", 64)}
	from := newPrograms(nil)
	for _, machine := range machinesArch {
		from.ready[machine] = func() (program, error) { return sent, nil }
	}
	bring := func() (string, error) {
		c := &carried{Node: shellNode{home: home}, programs: from, keep: true}
		defer func() { _ = c.Close() }()
		return c.labnode(t.Context())
	}
	if _, err := bring(); err == nil || !strings.Contains(err.Error(), "did not arrive as it was sent") {
		t.Errorf("another hash: %v", err)
	}
	var err error
	if sent, err = measure(func(string) ([]byte, error) { return packed, nil }, "amd64"); err != nil {
		t.Fatal(err)
	}
	path, err := bring()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err := errors.Join(err, os.WriteFile(path, whole[:10], 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := bring(); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, whole) {
		t.Errorf("after it was cut: %q, %v", again, err)
	}
}

// There is a labnode for two kinds of processor.
func TestBringToUnknownProcessor(t *testing.T) {
	for machine, want := range map[string]string{"riscv64": `its processor is "riscv64"`, "aarch64": "no labnode is given"} {
		if _, err := newPrograms(nil).get(machine); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", machine, err)
		}
	}
}

// deafNode wants to be sent labnode, and takes no byte of it.
type deafNode struct {
	Node
	end <-chan struct{}
}

func (n deafNode) Name() string { return "w1" }

func (n deafNode) Run(_ context.Context, c node.Command) error {
	fmt.Fprintln(c.Stdout, "x86_64")
	_, _ = bufio.NewReaderSize(c.Stdin, 16).ReadString('\n')
	fmt.Fprintln(c.Stdout, "send")
	<-n.end
	return errors.New("ended")
}

// Sending to a machine that takes nothing ends with the caller's time, and says why.
func TestBringToDeafMachine(t *testing.T) {
	packed := packedProgram(t)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("my time is over"))
	defer cancel()
	c := &carried{Node: deafNode{end: ctx.Done()}, programs: newPrograms(func(string) ([]byte, error) { return packed, nil })}
	_, err := c.labnode(ctx)
	if err == nil || !strings.Contains(err.Error(), "w1: bring labnode: my time is over") {
		t.Errorf("got %v", err)
	}
}

// A machine whose connection breaks while labnode arrives removes what it has of it: nobody reads what its shell says then.
func TestBringIsCutOff(t *testing.T) {
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", carryScript)
	cmd.Env = append(os.Environ(), "HOME="+home)
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	packed := packedProgram(t)
	fmt.Fprintf(input, "%d %d %064d false\n", len(packed), 1000, 0)
	for from := bufio.NewReader(answers); ; {
		if text, err := line(from); err != nil {
			t.Fatal(err)
		} else if text == "send" {
			break
		}
	}
	_ = answers.Close()
	_, _ = input.Write(packed[:len(packed)/2])
	_ = input.Close()
	if err := cmd.Wait(); err == nil {
		t.Error("it ended well")
	}
	if left, _ := filepath.Glob(filepath.Join(home, ".*")); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}
