package scenarios

import (
	"bufio"
	"bytes"
	"net/http"
	"os/exec"
	"strings"
	"testing"
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
