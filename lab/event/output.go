package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// output is a writer that a run does not depend on: after its first error it
// swallows everything, because a closed pager must not end a half-made cluster.
type output struct {
	w   io.Writer
	err error
}

func newOutput(w io.Writer) *output {
	if w == io.Writer(os.Stdout) || w == io.Writer(os.Stderr) {
		outliveReader()
	}
	return &output{w: w}
}

func (o *output) write(p []byte) {
	if o.err == nil {
		_, o.err = o.w.Write(p)
	}
}

// close reports output that was lost, unless its reader had left by choice. It does not close the writer.
func (o *output) close() error {
	if errors.Is(o.err, syscall.EPIPE) || errors.Is(o.err, io.ErrClosedPipe) {
		return nil
	}
	return o.err
}

// outliveReader keeps a broken standard output from killing the process, which is what Go does by default. Being notified is used rather
// than ignoring the signal, because child processes would inherit that.
var outliveReader = sync.OnceFunc(func() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
})

type jsonLines struct {
	out *output
}

// JSON writes one JSON object per line.
func JSON(w io.Writer) Sink {
	return &jsonLines{out: newOutput(w)}
}

func (j *jsonLines) Emit(e Event) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // it is read with grep as often as with jq
	if enc.Encode(e.wire()) == nil {
		j.out.write(b.Bytes())
	}
}

func (j *jsonLines) Close() error { return j.out.close() }

type plain struct {
	out  *output
	node int // the widest node name so far
}

// Plain writes a line per event: time, node, phase, and what happened. Further lines of a detail follow indented.
func Plain(w io.Writer) Sink {
	return &plain{out: newOutput(w), node: len(hostName)}
}

func (p *plain) Emit(e Event) {
	who := e.who()
	p.node = max(p.node, Columns(who))
	text := lines(happened(e))
	head := e.Time.Format("15:04:05 ") + pad(who, p.node) + " "

	var b strings.Builder
	b.WriteString(head + OneLine(e.Phase) + ": " + text[0] + "\n")
	for _, line := range text[1:] {
		b.WriteString(strings.TrimRight(strings.Repeat(" ", Columns(head)+2)+line, " ") + "\n")
	}
	p.out.write([]byte(b.String()))
}

func (p *plain) Close() error { return p.out.close() }

func happened(e Event) string {
	switch e.State {
	case Started:
		if e.Limit > 0 {
			return "started (limit " + limitText(e.Limit) + ")"
		}
		return "started"
	case Progress:
		// The time goes on the first line, where it does not look like output.
		first, rest, _ := strings.Cut(strings.Trim(e.Detail, "\r\n"), "\n")
		first = strings.TrimRight(first, "\r ")
		return strings.TrimSpace(first+" ("+running(e.Elapsed, e.Limit)+")") + "\n" + rest
	case Done:
		return withDetail("done in "+took(e.Elapsed), e.Detail)
	case Failed:
		return withDetail("failed after "+took(e.Elapsed), e.Detail)
	}
	return withDetail(string(e.State), e.Detail)
}

func withDetail(text, detail string) string {
	if detail = strings.Trim(detail, "\r\n"); detail == "" {
		return text
	}
	return text + ": " + detail
}

type file struct {
	*jsonLines
	f *os.File
}

// File appends JSON lines to a file that only its owner can read, and creates the file and its directories when they are missing. It
// refuses a symbolic link in the file's place, and anything else that is not a regular file.
func File(path string) (Sink, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, unwritable(path, err)
	}
	// Without O_NONBLOCK, opening a planted fifo would wait for its reader.
	const flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, unwritable(path, err)
	}
	if err := makePrivate(f); err != nil {
		return nil, errors.Join(fmt.Errorf("run log %s: %w", path, err), f.Close())
	}
	return &file{jsonLines: &jsonLines{out: newOutput(f)}, f: f}, nil
}

// unwritable is the error for a log that cannot be written. Usually the lab belongs to another user.
func unwritable(path string, err error) error {
	if cause, ok := errors.AsType[*os.PathError](err); ok {
		err = cause.Err
	}
	err = fmt.Errorf("cannot write the log of this run into %s: %w", filepath.Dir(path), err)
	if errors.Is(err, os.ErrPermission) {
		err = fmt.Errorf("%w; run as root, or set XDG_STATE_HOME to a directory of your own", err)
	}
	return err
}

func makePrivate(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return f.Chmod(0o600)
}

func (f *file) Close() error {
	return errors.Join(f.jsonLines.Close(), f.f.Close())
}
