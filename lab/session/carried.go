package session

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"k8slab/lab/node"
)

// carryScript puts labnode into a private directory and prints where. It reads the program's size, compressed and not, the hash of the
// compressed, and whether it stays. Without the last, it ends when its input does, as when the connection breaks or labctl is killed, and
// removes what it put there. The first directory with room for the program that lets it run is taken. One that stayed was compared with its hash
// when it came: now it must have the same size, and be this login's own.
const carryScript = `set -eu
umask 077
uname -m
read -r size full sum stay
kept=${HOME:-/root}/.cache/k8slab
if [ "$stay" = true ] && [ -x "$kept/labnode-$sum" ] && [ "$(stat -c '%s %u' -- "$kept/labnode-$sum")" = "$full $(id -u)" ]; then
	echo "have $kept/labnode-$sum"
	exit 0
fi
dir= why=
trap '[ -z "$dir" ] || rm -rf -- "$dir"' EXIT
trap 'exit 1' HUP INT TERM PIPE
for base in "${HOME:-/root}" /var/tmp /run /dev/shm; do
	room=$(df -Pk -- "$base" 2>/dev/null | awk 'NR==2 {print $4}')
	[ "${room:-0}" -gt $(((full + size) / 1024 + 1024)) ] || { why="$why $base has no room for $((full / 1048576)) MiB;"; continue; }
	dir=$(mktemp -d -- "$base/.k8slab-XXXXXXXX" 2>/dev/null) || { why="$why $base cannot be written;"; dir=; continue; }
	printf '#!/bin/sh\n' >"$dir/try" && chmod 700 "$dir/try" && "$dir/try" 2>/dev/null && break
	why="$why $base lets no program run;"
	rm -rf -- "$dir"
	dir=
done
[ -n "$dir" ] || { echo "no directory for labnode:$why" >&2; exit 1; }
rm -f -- "$dir/try"
echo send
head -c "$size" >"$dir/packed" || { echo "its program cannot be written to $dir" >&2; exit 1; }
[ "$(sha256sum <"$dir/packed" | cut -d' ' -f1)" = "$sum" ] || { echo "its program did not arrive as it was sent" >&2; exit 1; }
gzip -dc <"$dir/packed" >"$dir/labnode" || { echo "its program cannot be written to $dir" >&2; exit 1; }
rm -f -- "$dir/packed"
chmod 700 -- "$dir/labnode"
if [ "$stay" = true ]; then
	sync -- "$dir/labnode"
	mkdir -p -- "$kept"
	rm -f -- "$kept"/labnode-*
	mv -fT -- "$dir/labnode" "$kept/labnode-$sum"
	echo "have $kept/labnode-$sum"
	exit 0
fi
echo "have $dir/labnode"
cat >/dev/null
`

// machinesArch is the processor of a program, by what uname calls a machine's.
var machinesArch = map[string]string{"x86_64": "amd64", "aarch64": "arm64"}

// program is labnode for one kind of processor, ready to be sent.
type program struct {
	packed []byte
	full   uint32 // its size, as gzip's last four bytes say it
	sum    string // SHA-256 of the packed
}

// sentAtOnce is how many machines are sent labnode at the same time: each gets its part of this computer's uplink.
const sentAtOnce = 16

// programs measures labnode once for each kind of processor.
type programs struct {
	sending chan struct{}

	of func(arch string) (packed []byte, err error)

	mu    sync.Mutex
	ready map[string]func() (program, error)
}

func newPrograms(of func(arch string) ([]byte, error)) *programs {
	return &programs{of: of, sending: make(chan struct{}, sentAtOnce), ready: map[string]func() (program, error){}}
}

func (p *programs) get(machine string) (program, error) {
	arch, known := machinesArch[machine]
	if !known {
		return program{}, fmt.Errorf("its processor is %q, and labnode exists for x86_64 and aarch64", machine)
	}
	p.mu.Lock()
	once := p.ready[arch]
	if once == nil {
		once = sync.OnceValues(func() (program, error) { return measure(p.of, arch) })
		p.ready[arch] = once
	}
	p.mu.Unlock()
	return once()
}

func measure(of func(string) ([]byte, error), arch string) (program, error) {
	if of == nil {
		return program{}, errors.New("no labnode is given to send to machines")
	}
	packed, err := of(arch)
	if err != nil {
		return program{}, err
	}
	if len(packed) < 18 { // gzip's head and end
		return program{}, fmt.Errorf("the program for %s is no labnode that make has packed", arch)
	}
	sum := sha256.Sum256(packed)
	return program{packed, binary.LittleEndian.Uint32(packed[len(packed)-4:]), hex.EncodeToString(sum[:])}, nil
}

// carried is a node to which labnode is brought when it is first needed, and from which it is removed at Close. Callers name it LabnodePath
// as everywhere.
type carried struct {
	Node
	programs *programs
	keep     bool

	mu   sync.Mutex
	path string // "" while it is not there
	hold *holding
}

// holding is the command that has put labnode there and removes it.
type holding struct {
	input  *io.PipeWriter
	cancel context.CancelFunc
	ended  chan struct{} // closed after the command's end, when err is set
	err    error
}

// The limits of bringing labnode. Waiting for others to be sent theirs does not count.
const (
	answerTime = 7 * time.Second // of each answer of the script
	sendTime   = time.Minute     // of sending: 16 machines at once at 30 Mbit/s take it
	removeTime = 5 * time.Second // how long Close waits until labnode is removed
)

// Bring has labnode on a machine that exists, so that the time limit of the command that needs it is the command's alone.
func (s *Session) Bring(ctx context.Context, name string) error {
	c, is := s.Nodes[name].(*carried)
	if !is {
		return nil
	}
	_, err := c.labnode(ctx)
	return err
}

func (c *carried) Run(ctx context.Context, cmd node.Command) error {
	var err error
	if cmd.Argv, err = c.argv(ctx, cmd.Argv); err != nil {
		return err
	}
	return c.Node.Run(ctx, cmd)
}

func (c *carried) Read(ctx context.Context, argv ...string) (string, error) {
	argv, err := c.argv(ctx, argv)
	if err != nil {
		return "", err
	}
	return c.Node.Read(ctx, argv...)
}

func (c *carried) argv(ctx context.Context, argv []string) ([]string, error) {
	i := slices.Index(argv, LabnodePath) // also behind systemd-run or env
	if i < 0 {
		return argv, nil
	}
	path, err := c.labnode(ctx)
	if err != nil {
		return nil, err
	}
	argv = slices.Clone(argv)
	argv[i] = path
	return argv, nil
}

// labnode is the program's path on the machine. It brings it there if it is not, or no longer since the connection broke.
func (c *carried) labnode(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold != nil {
		select {
		case <-c.hold.ended:
			c.path, c.hold = "", nil
		default:
		}
	}
	if c.path != "" {
		return c.path, nil
	}
	path, hold, err := c.bring(ctx)
	if err != nil {
		return "", err
	}
	c.path, c.hold = path, hold
	return path, nil
}

// bring runs the script until labnode is there. The script outlives ctx.
func (c *carried) bring(ctx context.Context) (string, *holding, error) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	from, input := io.Pipe()
	answers, out := io.Pipe()
	h := &holding{input: input, cancel: cancel, ended: make(chan struct{})}
	go func() {
		h.err = c.Node.Run(inner, node.Command{Argv: []string{"sh", "-c", carryScript}, Stdin: from, Stdout: out, ReadOnly: true})
		_ = from.CloseWithError(io.ErrClosedPipe) // whoever sends is not kept waiting
		_ = out.Close()
		close(h.ended)
		cancel()
	}()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	stop := context.AfterFunc(ctx, func() {
		_ = answers.CloseWithError(context.Cause(ctx))
		_ = input.CloseWithError(context.Cause(ctx))
	})
	defer stop()
	path, err := c.send(ctx, bufio.NewReader(answers), input, giveUp)
	if err == nil {
		go func() { _, _ = io.Copy(io.Discard, answers) }()
		return path, h, nil
	}
	said := h.end(removeTime)
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case said != nil && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe)): // why the script ended
		err = said
	}
	if _, unreachable := errors.AsType[*node.ConnectError](err); unreachable {
		return "", nil, err
	}
	if exit, is := errors.AsType[*node.ExitError](err); is && strings.TrimSpace(exit.Stderr) != "" {
		err = errors.New(strings.TrimSpace(exit.Stderr))
	}
	return "", nil, fmt.Errorf("%s: bring labnode: %w", c.Name(), err)
}

// send speaks with the script, and returns the path that it says. What takes too long is given up.
func (c *carried) send(ctx context.Context, answers *bufio.Reader, input io.Writer, giveUp context.CancelCauseFunc) (string, error) {
	late := time.AfterFunc(answerTime, func() { giveUp(fmt.Errorf("no answer within %s: %w", answerTime, context.DeadlineExceeded)) })
	defer late.Stop()
	machine, err := line(answers)
	if err != nil {
		return "", err
	}
	p, err := c.programs.get(machine)
	if err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(input, "%d %d %s %t\n", len(p.packed), p.full, p.sum, c.keep); err != nil {
		return "", err
	}
	answer, err := line(answers)
	if err != nil {
		return "", err
	}
	if answer == "send" {
		late.Stop()
		select {
		case c.programs.sending <- struct{}{}:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		defer func() { <-c.programs.sending }()
		late := time.AfterFunc(sendTime, func() {
			giveUp(fmt.Errorf("%d MiB not sent within %s: %w", len(p.packed)>>20, sendTime, context.DeadlineExceeded))
		})
		defer late.Stop()
		if _, err := input.Write(p.packed); err != nil {
			return "", err
		}
		if answer, err = line(answers); err != nil {
			return "", err
		}
	}
	path, said := strings.CutPrefix(answer, "have ")
	if !said {
		return "", fmt.Errorf("unexpected answer %.80q", answer)
	}
	return path, nil
}

// lineLimit is the longest line that the script says.
const lineLimit = 4096

func line(from *bufio.Reader) (string, error) {
	text, err := from.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	if len(text) > lineLimit {
		return "", errors.New("it says too much")
	}
	return strings.TrimSpace(string(text)), nil
}

// end ends the script's input, waits until it has removed labnode, and returns its error.
func (h *holding) end(within time.Duration) error {
	_ = h.input.Close()
	select {
	case <-h.ended:
	case <-time.After(within):
		h.cancel()
		<-h.ended
	}
	return h.err
}

// Close removes labnode, unless it stays, and closes the connection.
func (c *carried) Close() error {
	c.mu.Lock()
	if c.hold != nil {
		_ = c.hold.end(removeTime) // a machine that is gone removes it when it notices
		c.path, c.hold = "", nil
	}
	c.mu.Unlock()
	return c.Node.Close()
}
