package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDocuments(t *testing.T) {
	dir := t.TempDir()
	if _, err := documents(dir); err == nil || !strings.Contains(err.Error(), "the module's layout has changed") {
		t.Errorf("error %v", err)
	}
	for name, text := range map[string]string{"b.yaml": "---\nkind: B\n", "a.yaml": "kind: A", "README.md": "no kind"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := documents(dir)
	if want := "---\nkind: A\n---\n---\nkind: B\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v, wanted %q", got, err, want)
	}
}
