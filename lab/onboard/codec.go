package onboard

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8slab/lab/event"
)

// RefusedError is a state file that cannot be used.
type RefusedError struct {
	Path   string
	Reason string
	Next   string // what to do about it

	foreign bool // a good file of another cluster, node or role
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the onboarding's state %s is refused: %s; %s", e.Path, e.Reason, e.Next)
}

// refuse makes an error of text that may come from the file.
func refuse(next, format string, args ...any) *RefusedError {
	return &RefusedError{Reason: cut(event.OneLine(fmt.Sprintf(format, args...))), Next: next}
}

// What to do about a refused file.
const (
	nextAside  = "read the changes in it, then move it away: a new onboarding checks what exists, but cannot undo what this one did"
	nextNewer  = "use the version of labctl that wrote it"
	nextMode   = "see whether somebody changed it, then make it private: chmod 600"
	nextTarget = "name its own node and cluster, or move it away"
)

// A state file is a JSON object whose first line has the checksum of everything below that line, so that
// `tail -n +3 FILE | sha256sum` tells it too. The checksum shows damage and careless editing; it does not keep out whoever can write files.
const (
	head     = "{\n  \"checksum\": \"sha256:"
	headDone = "\",\n"
)

func checksum(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// encode returns the content of the state's file. It refuses a state that parse would refuse, so that such a file is never written.
func (s *State) encode() ([]byte, error) {
	data, err := s.marshal()
	if err == nil {
		_, err = parse(data)
	}
	var bad *RefusedError
	if errors.As(err, &bad) {
		return nil, fmt.Errorf("the onboarding's state is not written: %s", bad.Reason)
	}
	return data, err
}

func (s *State) marshal() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // errors are full of <this>
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		return nil, err
	}
	return seal(b.Bytes()[len("{\n"):]), nil
}

// seal puts the checksum above a body.
func seal(body []byte) []byte {
	return append([]byte(head+checksum(body)+headDone), body...)
}

// parse reads exactly what encode writes, and refuses everything else with a *RefusedError.
func parse(data []byte) (*State, error) {
	if len(data) > maxSize {
		return nil, refuse(nextAside, "it is larger than %d bytes", maxSize)
	}
	// Another version may have its checksum elsewhere.
	var version struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, refuse(nextAside, "it is torn or damaged: %v", err)
	}
	if version.Schema > schema {
		return nil, refuse(nextNewer, "it has version %d, and this labctl knows up to %d", version.Schema, schema)
	}
	sum, body, ok := strings.Cut(strings.TrimPrefix(string(data), head), headDone)
	if !ok || !bytes.HasPrefix(data, []byte(head)) {
		return nil, refuse(nextAside, "its first line is not a checksum: labctl did not write it like this")
	}
	if sum != checksum([]byte(body)) {
		return nil, refuse(nextAside, "its checksum is not that of its content: it was edited or damaged")
	}
	s := &State{}
	dec := json.NewDecoder(strings.NewReader("{\n" + body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(s); err != nil {
		return nil, refuse(nextAside, "its content does not fit: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, refuse(nextAside, "something follows its content")
	}
	if err := s.sound(data); err != nil {
		return nil, err
	}
	return s, nil
}

// sound finds what a strict decoder accepts: keys that occur twice or in other letter case, other spellings of values, contradictions.
func (s *State) sound(data []byte) error {
	if s.Schema != schema {
		return refuse(nextAside, "it has version %d, which never existed", s.Schema)
	}
	if found := s.problems(); len(found) > 0 {
		return refuse(nextAside, "it contradicts itself: %s", strings.Join(found, "; "))
	}
	if again, err := s.marshal(); err != nil || !bytes.Equal(again, data) {
		return refuse(nextAside, "it is not in the form that labctl writes")
	}
	return nil
}

// check refuses the state of another target.
func (t Target) check(s *State) error {
	var found []string
	differs := func(what, has, want string) {
		if has != want {
			found = append(found, fmt.Sprintf("%s %s and not %s", what, has, want))
		}
	}
	differs("node", s.Node, t.Node)
	differs("role", s.Role, t.Role)
	differs("cluster", s.Cluster+" ("+s.ClusterID+")", t.Cluster+" ("+t.ClusterID+")")
	if s.Node == t.Node && s.Role == t.Role && s.ClusterID == t.ClusterID {
		return nil // a cluster may be renamed
	}
	bad := refuse(nextTarget, "it is of %s", strings.Join(found, ", "))
	bad.foreign = true
	return bad
}
