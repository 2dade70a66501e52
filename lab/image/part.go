package image

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	digester "hash"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"k8slab/lab/atomicfile"
)

// part is a file that is being downloaded, with what the server said by which this version of the file is known again.
type part struct {
	path     string
	file     *os.File
	hash     digester.Hash // of what the file has
	size     int64         // bytes that it has
	total    int64         // bytes that it will have, -1 for unknown
	alive    func()        // called when bytes have arrived
	progress func()        // called now and then
	said     time.Time
}

// between is how often progress is called, so that three downloads at a time do not fill the run's log.
const between = 5 * time.Second

// openPart opens the file, which may be one that an earlier run left.
func openPart(path string) (*part, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	p := &part{path: path, file: file, hash: sha256.New(), total: -1}
	if p.size, err = io.Copy(p.hash, file); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *part) close() { _ = p.file.Close() }

// remove makes the next run begin anew.
func (p *part) remove() {
	_ = os.Remove(p.path)
	_ = os.Remove(p.note())
}

func (p *part) digest() string { return hex.EncodeToString(p.hash.Sum(nil)) }

func (p *part) String() string {
	if p.total < 0 {
		return fmt.Sprintf("%d bytes of an unknown number", p.size)
	}
	return fmt.Sprintf("%d of %d bytes", p.size, p.total)
}

// note is where the validator is kept beside the file.
func (p *part) note() string { return p.path + ".validator" }

// validator is the value for If-Range: "" if the server gave nothing by which the same file is known again.
func (p *part) validator() string {
	text, err := os.ReadFile(p.note())
	if err != nil {
		return ""
	}
	return string(text)
}

// clear empties the file.
func (p *part) clear() error {
	p.hash.Reset()
	p.size, p.total = 0, -1
	if err := os.Remove(p.note()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return final{err}
	}
	if err := p.file.Truncate(0); err != nil {
		return final{err}
	}
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return final{err}
	}
	return nil
}

// restart begins the file that the answer is.
func (p *part) restart(resp *http.Response) error {
	if err := p.clear(); err != nil {
		return err
	}
	if p.total = resp.ContentLength; p.total > maxProgram {
		return final{fmt.Errorf("it has %d bytes, more than any of Kubernetes' programs", p.total)}
	}
	// A weak entity tag does not say that the bytes are the same, and a date is for servers that have no tag (RFC 9110, 13.1.5).
	v := cmp.Or(resp.Header.Get("ETag"), resp.Header.Get("Last-Modified"))
	if v == "" || strings.HasPrefix(v, "W/") {
		return nil
	}
	if err := atomicfile.Write(p.note(), 0o644, []byte(v)); err != nil {
		return final{err}
	}
	return nil
}

// continues makes sure that the answer continues the part.
func (p *part) continues(resp *http.Response) error {
	var first, last, total int64
	what := resp.Header.Get("Content-Range")
	if _, err := fmt.Sscanf(what, "bytes %d-%d/%d", &first, &last, &total); err != nil || first != p.size {
		had := p.size
		if err := p.clear(); err != nil {
			return err
		}
		return fmt.Errorf("the server was asked for what follows %d bytes and gave %q", had, what)
	}
	p.total = total
	return nil
}

func (p *part) Write(b []byte) (int, error) {
	if p.size+int64(len(b)) > maxProgram {
		return 0, final{fmt.Errorf("it has more than %d bytes, more than any of Kubernetes' programs", maxProgram)}
	}
	n, err := p.file.Write(b)
	p.hash.Write(b[:n])
	p.size += int64(n)
	p.alive()
	if time.Since(p.said) > between {
		p.said = time.Now()
		p.progress()
	}
	if err != nil {
		return n, final{err}
	}
	return n, nil
}
