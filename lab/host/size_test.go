package host

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMeasure(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("proc/cpuinfo", "processor\t: 0\nmodel name\t: a processor\n\nprocessor\t: 1\n")
	write("proc/meminfo", "MemTotal:       24683612 kB\nMemFree:        20557312 kB\n")
	if got, err := measure(root); err != nil || got != (Size{CPUs: 2, Memory: 24105}) {
		t.Errorf("got %+v, %v", got, err)
	}
	write("proc/meminfo", "MemFree:        20557312 kB\n")
	if got, err := measure(root); err == nil {
		t.Errorf("without a total: %+v", got)
	}
	if got, err := Measure(); err != nil {
		t.Errorf("this computer: %+v, %v", got, err)
	}
}
