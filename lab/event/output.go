package event

import (
	"errors"
	"io"
	"os"
	"os/signal"
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
