package event

import (
	"bytes"
	"encoding/json"
	"io"
)

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
