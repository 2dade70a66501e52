package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Size is what this computer has for machines.
type Size struct {
	CPUs   int
	Memory int // MiB
}

// Measure reads this computer's size.
func Measure() (Size, error) { return measure("/") }

func measure(root string) (Size, error) {
	cpus, err := os.ReadFile(filepath.Join(root, "proc/cpuinfo"))
	if err != nil {
		return Size{}, err
	}
	memory, err := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	if err != nil {
		return Size{}, err
	}
	var s Size
	for line := range strings.Lines(string(cpus)) {
		if key, _, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "processor" {
			s.CPUs++
		}
	}
	for line := range strings.Lines(string(memory)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "MemTotal:" {
			kib, _ := strconv.Atoi(fields[1])
			s.Memory = kib >> 10
		}
	}
	if s.CPUs == 0 || s.Memory == 0 {
		return s, fmt.Errorf("/proc/cpuinfo and /proc/meminfo do not tell this computer's processors and memory")
	}
	return s, nil
}
