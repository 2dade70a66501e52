package image

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8slab/lab/atomicfile"
	"k8slab/lab/event"
)

// directory is a source that copies programs and image archives which are on this computer.
type directory struct {
	path  string
	files []sourceFile
}

// sourceFile is one of the files that are used.
type sourceFile struct {
	program string
	name    string // in the directory; an archive has archiveEnding, or that and .gz, after the program's name
	digest  string // SHA-256 in hexadecimal digits
}

func (f sourceFile) isArchive() bool { return f.name != f.program }

// checksums is the file with the SHA-256 of the others, where the directory has one.
const checksums = "SHA256SUMS"

// openDirectory reads each file that is used, which takes seconds, and fails with all that is wrong with them.
func openDirectory(ctx context.Context, dir, version string, step *event.Step) (*directory, error) {
	if _, err := os.ReadDir(dir); err != nil {
		return nil, fmt.Errorf("kubernetes.source: %w; it takes a directory with kubeadm and the other programs of Kubernetes", err)
	}
	d := &directory{path: dir}
	sums, err := readSums(filepath.Join(dir, checksums))
	problems := []error{err}
	for _, program := range slices.Concat(hostPrograms, imagePrograms) {
		f, err := d.find(program, sums, step)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %w", f.name, err))
			continue
		}
		d.files = append(d.files, f)
	}
	problems = append(problems, d.unlike(ctx, version)...)
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("kubernetes.source: %s has no Kubernetes %s that the lab can use:\n%w", dir, version, err)
	}
	return d, nil
}

// find reads the file that gives a program. An image archive comes before the program itself.
func (d *directory) find(program string, sums map[string]string, step *event.Step) (sourceFile, error) {
	f := sourceFile{program: program, name: program}
	missing := errors.New("is missing")
	if slices.Contains(imagePrograms, program) {
		archive, zipped := program+archiveEnding, program+archiveEnding+".gz"
		missing = fmt.Errorf("is missing, and so is %s", archive)
		switch hasArchive, hasZipped := exists(d.at(archive)), exists(d.at(zipped)); {
		case hasArchive && hasZipped:
			return f, fmt.Errorf("exists twice, as %s and as %s; keep one", archive, zipped)
		case hasArchive:
			f.name = archive
		case hasZipped:
			f.name = zipped
		}
	}
	info, err := os.Stat(d.at(f.name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, missing
	case err == nil && !info.Mode().IsRegular():
		return f, errors.New("is not a file")
	case err == nil:
		step.Progress("reading %s", f.name)
		f.digest, err = fileHash(d.at(f.name))
	}
	if err != nil {
		return f, fmt.Errorf("cannot be read: %w", bare(err))
	}
	if want := sums[f.name]; sums != nil && want != f.digest {
		if want == "" {
			return f, fmt.Errorf("is not in %s; add it, or remove that file", checksums)
		}
		return f, fmt.Errorf("has the SHA-256 %s, and %s says %s; copy it again from where it came from", f.digest, checksums, want)
	}
	if f.isArchive() {
		return f, nil
	}
	return f, programProblem(d.at(f.name))
}

func (d *directory) at(name string) string { return filepath.Join(d.path, name) }

// unlike lists files of another version: kubeadm itself, and archives of images that it does not ask for.
func (d *directory) unlike(ctx context.Context, version string) (problems []error) {
	var names []string // stay unknown without a kubeadm that runs
	if slices.ContainsFunc(d.files, func(f sourceFile) bool { return f.name == "kubeadm" }) {
		err := versionProblem(ctx, d.at("kubeadm"), version)
		if err == nil {
			names, err = imageNames(ctx, d.at("kubeadm"), version)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("kubeadm %w", err))
		}
	}
	for _, f := range d.files {
		if !f.isArchive() {
			continue
		}
		i := slices.IndexFunc(names, func(ref string) bool { return strings.Contains(ref, "/"+f.program+":") })
		ref := ""
		if i >= 0 {
			ref = names[i]
		}
		if err := archiveProblem(d.at(f.name), ref); err != nil {
			problems = append(problems, fmt.Errorf("%s %w", f.name, bare(err)))
		}
	}
	return problems
}

func (d *directory) inputs() []string {
	in := []string{"directory 1"}
	for _, f := range d.files {
		in = append(in, f.name, f.digest)
	}
	return in
}

func (d *directory) build(ctx context.Context, dir string, step *event.Step) error {
	for _, f := range d.files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		step.Progress("copying %s", f.name)
		to, mode := f.program, fs.FileMode(0o755)
		if f.isArchive() {
			to, mode = f.program+archiveEnding, 0o644
		}
		digest, err := copyFile(d.at(f.name), filepath.Join(dir, to), mode)
		if err != nil {
			return err
		}
		if digest != f.digest {
			return fmt.Errorf("%s changed while it was being used; run the command again when it is complete", d.at(f.name))
		}
	}
	return nil
}

// copyFile returns the SHA-256 of what it copied.
func copyFile(from, to string, mode fs.FileMode) (string, error) {
	in, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, h), in)
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, out.Close())
}

// readSums reads what sha256sum wrote: file name → SHA-256, nil where there is no such file.
func readSums(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", checksums, bare(err))
	}
	sums := map[string]string{}
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		digest, name, _ := strings.Cut(line, " ")
		name = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(name, " "), "*"))
		if !isDigest(digest) || name == "" {
			return sums, fmt.Errorf("%s: line %d is not a SHA-256 and a file name", checksums, i+1)
		}
		sums[path.Clean(name)] = strings.ToLower(digest)
	}
	return sums, nil
}

// Unpack writes the program, from packed in gzip's format, into the cache, unless it is there with the same bytes, and returns its path.
// The cache's directory must belong to the caller: the program runs as root on every node.
func Unpack(name string, packed []byte) (string, error) {
	cacheDir, err := CacheDir()
	if err != nil {
		return "", err
	}
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", fmt.Errorf("unpack %s: %w", name, err)
	}
	program, err := io.ReadAll(zipped)
	if err != nil {
		return "", fmt.Errorf("unpack %s: %w", name, err)
	}
	sum := sha256.Sum256(program)
	want := hex.EncodeToString(sum[:])
	dir := filepath.Join(cacheDir, name+"-"+want[:16])
	if err := (cache{dir: cacheDir}).make(); err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if err := atomicfile.CheckDir(dir); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if has, err := fileHash(path); err == nil && has == want {
		return path, touch(dir)
	}
	return path, atomicfile.Write(path, 0o755, program)
}
