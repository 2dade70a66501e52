package node

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestAnswerIsBounded(t *testing.T) {
	var told error
	a := &Answer{full: func(err error) { told = err }}
	mebibyte := bytes.Repeat([]byte("x"), 1<<20)
	written := 0
	for range 40 {
		n, _ := a.Write(mebibyte)
		written += n
	}
	if written != answerLimit || len(a.String()) != answerLimit || told == nil || !strings.Contains(told.Error(), "more than 32 MiB") {
		t.Errorf("%d bytes, told %v", written, told)
	}
}

func TestLines(t *testing.T) {
	var got []string
	l := &Lines{Each: func(line []byte) error { got = append(got, string(line)); return nil }}
	for _, piece := range []string{"a", "b\nc\n", "\n", "d"} {
		if n, err := l.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Errorf("%q: %d, %v", piece, n, err)
		}
	}
	if strings.Join(got, "|") != "ab|c|" {
		t.Errorf("got %q", got)
	}
	if _, err := l.Write(bytes.Repeat([]byte("x"), lineLimit+1)); err == nil || !strings.Contains(err.Error(), "longer than 1 MiB") {
		t.Errorf("a line without an end: %v", err)
	}
	why := errors.New("no JSON")
	l.Each = func([]byte) error { return why }
	if _, err := l.Write([]byte("x\n")); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
