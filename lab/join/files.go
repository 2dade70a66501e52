package join

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"k8slab/lab/atomicfile"
)

// set writes a kernel's file, which must exist.
func (m Machine) set(file, value string) error {
	f, err := os.OpenFile(m.Path(file), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value + "\n")
	return errors.Join(err, f.Close())
}

// addLines makes sure that a file of ours has the lines.
func (m Machine) addLines(file string, lines []string) error {
	text, err := m.Read(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	have := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines {
		if !slices.Contains(have, line) {
			text += line + "\n"
		}
	}
	if err := os.MkdirAll(m.Path(path.Dir(file)), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(m.Path(file), 0o644, []byte(text))
}

// saved is the ending of a file's old content.
const saved = ".k8slab-saved"

// replace changes a file's content and keeps the first old content beside it. It refuses a link, because other programs may use its target.
func (m Machine) replace(file, text string) error {
	info, err := os.Lstat(m.Path(file))
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return refuse(file+" is not a plain file", "change it by hand")
	}
	old, err := m.Read(file)
	if err != nil {
		return err
	}
	if !m.Exists(file + saved) {
		if err := atomicfile.Write(m.Path(file+saved), info.Mode().Perm(), []byte(old)); err != nil {
			return err
		}
	}
	return atomicfile.Write(m.Path(file), info.Mode().Perm(), []byte(text))
}

// moveAside renames a file within its directory to a name that no program reads.
func (m Machine) moveAside(file string) error {
	to := file + saved
	for i := 1; m.Exists(to); i++ {
		to = fmt.Sprintf("%s%s-%d", file, saved, i)
	}
	return os.Rename(m.Path(file), m.Path(to))
}
