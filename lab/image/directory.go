package image

import (
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
	name    string // in the directory; an archive has archiveEnding, or that and .gz, at its end
	digest  string // SHA-256 in hexadecimal digits
}

func (f sourceFile) isArchive() bool {
	return strings.HasSuffix(strings.TrimSuffix(f.name, ".gz"), archiveEnding)
}

// outputs are where the build of Kubernetes puts what it makes, below the directory _output of a checkout.
var outputs = []string{"bin", "local/bin/linux/amd64", "dockerized/bin/linux/amd64", "release-images/amd64"}

// checksums is the file with the SHA-256 of the others, where the directory has one.
const checksums = "SHA256SUMS"

// openDirectory reads each file of Kubernetes that is used, which takes seconds, and fails with all that is wrong with them. version is the one
// that kubeadm must be of.
func openDirectory(ctx context.Context, dir, version string, step *event.Step) (*directory, error) {
	const key = "kubernetes.source"
	if _, err := os.ReadDir(dir); err != nil {
		return nil, fmt.Errorf("%s: %w; it takes a directory with kubeadm and the other programs of Kubernetes, or a checkout", key, err)
	}
	d := &directory{path: dir}
	problems := append(d.open(slices.Concat(hostPrograms, imagePrograms), step), d.unlike(ctx, version)...)
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("%s: %s has no Kubernetes %s that the lab can use:\n%w", key, dir, version, err)
	}
	return d, nil
}

// openPrograms is openDirectory for programs that need not be of a certain version.
func openPrograms(key, dir string, programs []string, step *event.Step) (*directory, error) {
	d := &directory{path: dir}
	_, err := os.ReadDir(dir)
	if err == nil {
		err = errors.Join(d.open(programs, step)...)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s has not what the lab can use:\n%w", key, dir, err)
	}
	return d, nil
}

// openProgram is a directory's one file, whatever its name.
func openProgram(key, file, program string) (*directory, error) {
	d := &directory{path: filepath.Dir(file)}
	f := sourceFile{program: program, name: filepath.Base(file)}
	var err error
	if f.isArchive() && !slices.Contains(imagePrograms, program) {
		err = errors.New("is an archive; the nodes need the program itself")
	}
	if err == nil {
		f, err = d.read(f, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s %w", key, file, err)
	}
	d.files = []sourceFile{f}
	return d, nil
}

// open finds and reads the files of the programs.
func (d *directory) open(programs []string, step *event.Step) (problems []error) {
	sums, err := readSums(filepath.Join(d.path, checksums))
	if err != nil {
		problems = append(problems, err)
	}
	for _, program := range programs {
		f, err := d.find(program, sums, step)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %w", f.name, err))
			continue
		}
		d.files = append(d.files, f)
	}
	return problems
}

// places are the directories to look into: for _output those of the build.
func (d *directory) places() []string {
	if filepath.Base(d.path) != "_output" {
		return []string{""}
	}
	return outputs
}

// find reads the file that gives a program. An image archive comes before the program itself.
func (d *directory) find(program string, sums map[string]string, step *event.Step) (sourceFile, error) {
	wanted := sourceFile{program: program, name: program}
	var found sourceFile
	for _, place := range d.places() {
		f, err := d.findIn(place, program, sums, step)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return f, err
		case found.name == "":
			found = f
		case found.digest != f.digest && found.isArchive() == f.isArchive():
			return wanted, fmt.Errorf("is not the same in %s and %s; name one of these directories, or remove the older one", path.Dir(found.name), place)
		}
	}
	if found.name != "" {
		return found, nil
	}
	missing := "is missing"
	if slices.Contains(imagePrograms, program) {
		missing += fmt.Sprintf(", and so is %s%s", program, archiveEnding)
	}
	return wanted, errors.New(missing)
}

// findIn is find in one place. The error is fs.ErrNotExist if the place has no such file.
func (d *directory) findIn(place, program string, sums map[string]string, step *event.Step) (sourceFile, error) {
	f := sourceFile{program: program, name: path.Join(place, program)}
	if slices.Contains(imagePrograms, program) {
		archive, zipped := f.name+archiveEnding, f.name+archiveEnding+".gz"
		switch hasArchive, hasZipped := exists(d.at(archive)), exists(d.at(zipped)); {
		case hasArchive && hasZipped:
			return f, fmt.Errorf("exists twice, as %s and as %s; keep one", archive, zipped)
		case hasArchive:
			f.name = archive
		case hasZipped:
			f.name = zipped
		}
	}
	if _, err := os.Stat(d.at(f.name)); errors.Is(err, fs.ErrNotExist) {
		return f, fs.ErrNotExist
	}
	step.Progress("reading %s", f.name)
	return d.read(f, sums)
}

// read computes the file's digest, and refuses one that cannot be used.
func (d *directory) read(f sourceFile, sums map[string]string) (sourceFile, error) {
	info, err := os.Stat(d.at(f.name))
	if err == nil && !info.Mode().IsRegular() {
		return f, errors.New("is not a file")
	}
	if err == nil {
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
	if i := slices.IndexFunc(d.files, func(f sourceFile) bool { return f.program == "kubeadm" }); i >= 0 {
		kubeadm := d.at(d.files[i].name)
		err := versionProblem(ctx, kubeadm, version)
		if err == nil {
			names, err = imageNames(ctx, kubeadm, version)
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

func (d *directory) origin() origin { return origin{From: "directory " + d.path} }

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
