package host

import (
	"os"
	"path/filepath"
	"testing"

	"k8slab/lab/event"
)

func TestRaiseInotify(t *testing.T) {
	tests := []struct {
		name, has, want string
		fails           bool
	}{
		{"too low", "128\n", "1024", false},
		{"enough", "8192\n", "8192\n", false},
		{"no number", "many\n", "many\n", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "max_user_instances")
			if err := os.WriteFile(path, []byte(tt.has), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := raiseInotify(path, event.NewStream()); (err != nil) != tt.fails {
				t.Errorf("got %v", err)
			}
			if got, _ := os.ReadFile(path); string(got) != tt.want {
				t.Errorf("left %q, want %q", got, tt.want)
			}
		})
	}
}
