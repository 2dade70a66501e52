package diagnose

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"k8slab/lab/atomicfile"
	"k8slab/lab/diagnose/fact"
)

// A bundle is a tar.gz of facts.json, which comes first, and the texts, texts/NODE/NAME.log.
const (
	factsFile = "facts.json"
	textsDir  = "texts"
)

// What is read of a bundle, which may come from anywhere. Texts of a foreign one are judged as they stream by, so that only what the facts
// need is ever in memory.
const (
	factsLimit    = 32 << 20
	objectsLimit  = 100_000 // of JSON in the facts: "{}" takes hundreds of bytes when it is one of them
	machinesLimit = 1000
	textsLimit    = 256 << 20 // of the texts that belong to facts, together
	unpackedLimit = 4 << 30
)

// WriteBundle saves the facts, redacted, in a file that a user named, readable by its owner alone.
func WriteBundle(path string, f fact.Facts) error {
	if err := atomicfile.Export(path, func(w io.Writer) error { return writeBundle(w, f) }); err != nil {
		return fmt.Errorf("save the bundle %s: %w", path, err)
	}
	return nil
}

func writeBundle(w io.Writer, f fact.Facts) error {
	packed := gzip.NewWriter(w)
	out := tar.NewWriter(packed)
	f, err := redacted(f)
	if err != nil {
		return err
	}
	facts, err := json.MarshalIndent(f.WithoutTexts(), "", " ")
	if err != nil {
		return err
	}
	if err := addFile(out, factsFile, f, string(facts)); err != nil {
		return err
	}
	for _, m := range f.Machines {
		if m.Inside == nil {
			continue
		}
		for _, t := range m.Inside.Texts {
			if err := addFile(out, path.Join(textsDir, m.Name, t.Name+".log"), f, t.Text); err != nil {
				return err
			}
		}
	}
	return errors.Join(out.Close(), packed.Close())
}

func addFile(out *tar.Writer, name string, f fact.Facts, text string) error {
	err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), ModTime: f.Time, Typeflag: tar.TypeReg})
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

// judgeBundle judges facts, where the bundle has them, else each of its files as a text. Nothing is ever written to disk, and an entry that
// could not be unpacked safely makes the whole suspicious.
func (r *Report) judgeBundle(in io.Reader) error {
	unpacked, err := gzip.NewReader(in)
	if err != nil {
		return fmt.Errorf("unpack the bundle: %w", err)
	}
	bounded := &boundedReader{r: unpacked, left: unpackedLimit}
	if err := r.judgeEntries(tar.NewReader(bounded)); err != nil {
		return fmt.Errorf("unpack the bundle: %w", err)
	}
	return nil
}

func (r *Report) judgeEntries(in *tar.Reader) error {
	texts := textFindings{rules: r.rules}
	var kept *fact.Facts
	room := int64(textsLimit)
	for files := 0; ; files++ {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = safeEntry(header)
		}
		if err != nil {
			return err
		}
		if files >= filesLimit {
			return fmt.Errorf("it has more than %d files", filesLimit)
		}
		if header.Typeflag == tar.TypeDir {
			continue
		}
		name := path.Clean(header.Name)
		switch {
		case files == 0 && name == factsFile:
			kept, err = readFacts(in)
		case kept != nil:
			err = keepText(kept, name, in, &room)
		default:
			err = texts.judge(name, in)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", printable(name), err)
		}
	}
	if kept != nil {
		if len(kept.Machines) == 0 {
			return errors.New("its " + factsFile + " has no machines")
		}
		r.fill(*kept)
		return nil
	}
	if texts.inked == 0 {
		return errors.New("it has no text")
	}
	r.Findings, r.Undetermined = texts.ordered(), texts.undetermined
	return nil
}

// safeEntry refuses what would reach beyond the directory that a bundle is unpacked in.
func safeEntry(h *tar.Header) error {
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir:
	default:
		return fmt.Errorf("%s is not a plain file: links and devices are refused", printable(h.Name))
	}
	if !filepath.IsLocal(h.Name) || strings.ContainsRune(h.Name, 0) || strings.Contains(h.Name, `\`) {
		return fmt.Errorf("the name %s leads out of the bundle", printable(h.Name))
	}
	return nil
}

func printable(name string) string { return fmt.Sprintf("%.100q", name) }

func readFacts(in io.Reader) (*fact.Facts, error) {
	var f fact.Facts
	data, err := io.ReadAll(&boundedReader{r: in, left: factsLimit})
	if err != nil {
		return nil, err
	}
	if objects(data) > objectsLimit {
		return nil, errTooLarge
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	if len(f.Machines) > machinesLimit {
		return nil, fmt.Errorf("it has more than %d machines", machinesLimit)
	}
	return &f, nil
}

// objects counts what begins an object or a list in JSON, outside of its strings.
func objects(data []byte) (n int) {
	inString := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == '{' || c == '['):
			n++
		}
	}
	return n
}

// keepText puts a text back where it was collected.
func keepText(f *fact.Facts, name string, in io.Reader, room *int64) error {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || parts[0] != textsDir {
		return nil // what somebody added
	}
	m := f.Machine(parts[1])
	if m == nil || m.Inside == nil {
		return nil
	}
	bounded := &boundedReader{r: in, left: *room}
	text, err := io.ReadAll(bounded)
	*room = bounded.left
	m.Inside.Texts = append(m.Inside.Texts, fact.Text{Name: strings.TrimSuffix(parts[2], ".log"), Text: string(text)})
	return err
}

// boundedReader fails where its limit is passed, instead of ending as if that were all.
type boundedReader struct {
	r    io.Reader
	left int64
}

var errTooLarge = errors.New("it is larger than anything that labctl diagnose saves")

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
