package scenarios

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"

	"k8slab/lab/symptom"
)

// containerd asks for the head of a manifest first, and must understand what the mirror answers.
func TestMirrorAnswers(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", answer, "sh", "401 Unauthorized", `WWW-Authenticate: Basic realm="fault"`)
	cmd.Stdin = strings.NewReader("HEAD /v2/shop/web/manifests/1 HTTP/1.1\r\nHost: " + mirrorAt + "\r\nAccept: */*\r\n\r\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	asked, err := http.NewRequestWithContext(t.Context(), http.MethodHead, "http://"+mirrorAt, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(out)), asked)
	if err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusUnauthorized || r.Header.Get("WWW-Authenticate") != `Basic realm="fault"` || !r.Close {
		t.Errorf("%q", out)
	}
}

// warned is a model whose diagnosis warns of a pod without its image.
type warned struct {
	*model
	detail string
}

func (w warned) Labctl(ctx context.Context, args ...string) (string, error) {
	if args[0] == "diagnose" && len(w.on) > 0 {
		return fmt.Sprintf(`{"findings": [{"symptom": "image-pull-failure", "detail": %q, "level": "warn", "node": "w1"}]}`, w.detail), nil
	}
	return w.model.Labctl(ctx, args...)
}

// The diagnosis must also say of which kind the cause is. Where no command ends the fault, its own script acts as a person does.
func TestExperimentOfAFaultThatNoCommandEnds(t *testing.T) {
	for detail, want := range map[string]struct {
		class         Class
		calls, reason string
	}{
		"user-pod closed": {Passed, "[]", ""},
		"user-pod limited": {Failed, "[repair up]",
			"expected image-pull-failure (user-pod closed) on w1, diagnosis said image-pull-failure (user-pod limited) on w1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t)
			f := m.breaks("a", symptom.ImagePullFailure, nil)
			f.Detail, f.ByHand = "user-pod closed", "somebody starts the mirror again"
			f.Restore = func(_ context.Context, s Target) error { delete(m.on, s.Node); return nil }
			r := Round{{f, "w1"}}.Run(t.Context(), warned{m, detail}, Options{})
			if calls := fmt.Sprint(m.calls); r.Class != want.class || calls != want.calls || !strings.Contains(r.Reason, want.reason) {
				t.Errorf("%s: %+v, called %s", detail, r, calls)
			}
		})
	}
}
