package reader

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// pieceLimit is the longest part of a line that is looked at as one, in bytes.
const pieceLimit = 64 << 10

// recordReader splits a text into records.
type recordReader struct {
	rec     record
	line    int    // its number, from 0
	subject string // the pod whose events are being read
	heading string // of the page that is being read, until its state was
	// onLine gets each line after it was added to its record, and onRecord each record that is whole. Both may keep nothing of it.
	onLine   func(number int, line []byte)
	onRecord func()
}

// read takes all of r.
func (s *recordReader) read(r io.Reader) error {
	in := bufio.NewReaderSize(r, pieceLimit)
	cut := false
	for {
		line, err := in.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		s.physical(withoutCutWords(line, cut, full))
		if cut = full; cut {
			continue
		}
		if err != nil {
			s.flush()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		s.line++
	}
}

// withoutCutWords drops the words that stand half in this part of a line and half in another: redacting does not recognise half a secret.
func withoutCutWords(part []byte, before, after bool) []byte {
	const longestSecret = 128 // where there are no words
	if before {
		i := bytes.IndexAny(part, " \t")
		if i < 0 {
			i = min(len(part), longestSecret)
		}
		part = part[i:]
	}
	if after {
		i := bytes.LastIndexAny(part, " \t")
		if i < 0 {
			i = max(0, len(part)-longestSecret)
		}
		part = part[:i]
	}
	return part
}

// physical takes one line, or a part of one that is too long. In JSON and in Ansible's output, line ends are written as \n; they end a
// record too.
func (s *recordReader) physical(line []byte) {
	for bytes.IndexByte(line, '\\') >= 0 {
		i := bytes.Index(line, []byte(`\n`))
		if i < 0 {
			break
		}
		s.logical(bytes.TrimRight(line[:i], `\`))
		s.flush()
		line = line[i+2:]
	}
	s.logical(line)
}

func (s *recordReader) logical(line []byte) {
	line = unquoted(line)
	if !s.rec.continuesIn(line) {
		s.flush()
	}
	if heading := headingOf(line); heading != "" {
		s.heading = heading
	} else if s.heading != "" && saysState(line) {
		line = append([]byte(s.heading), line...)
		s.heading = ""
	}
	if subject := subjectOf(line); subject != "" {
		s.subject = subject
	} else if s.subject != "" && saysReason(line) {
		line = append([]byte(s.subject+" "), line...)
	} else if s.subject != "" && bytes.HasSuffix(line, backOff) { // older kubelets do not name the container
		line = append(append(append([]byte(nil), line...), ' '), s.subject...)
	}
	s.rec.add(line)
	s.onLine(s.line, line)
}

// flush hands over the record that has been gathered, and begins another.
func (s *recordReader) flush() {
	if len(s.rec.normal) > 0 {
		s.rec.normal = append(s.rec.normal, '\n')
		s.onRecord()
	}
	s.rec.reset(s.line + 1)
}
