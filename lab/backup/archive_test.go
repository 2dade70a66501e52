package backup

import (
	"archive/tar"
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"
)

// A node is not trusted: what it sends names nothing but the files that are saved, and has an end.
func TestHostileArchive(t *testing.T) {
	reg := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
	link := func(name, to string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
	}
	many := func(n int, typ byte) (all []tar.Header) {
		for i := range n {
			all = append(all, tar.Header{Typeflag: typ, Name: "etc/cni/net.d/" + strconv.Itoa(i)})
		}
		return all
	}
	const ca = "etc/kubernetes/pki/ca.crt"
	tests := map[string]struct {
		entries []tar.Header
		want    string // of the error
		files   int
		skipped int
	}{
		"sound":                   {[]tar.Header{reg(ca), link("etc/cni/net.d/x", "/etc/shadow")}, "", 2, 0},
		"out of the tree":         {[]tar.Header{reg("../../etc/passwd")}, "not among the files", 0, 0},
		"dots below a root":       {[]tar.Header{reg("etc/kubernetes/pki/../../passwd")}, "not among the files", 0, 0},
		"absolute":                {[]tar.Header{reg("/" + ca)}, "not among the files", 0, 0},
		"another file":            {[]tar.Header{reg("etc/passwd")}, "not among the files", 0, 0},
		"begins like a root":      {[]tar.Header{reg("etc/kubernetes/pki2/x")}, "not among the files", 0, 0},
		"no name":                 {[]tar.Header{reg("")}, "not among the files", 0, 0},
		"below a link":            {[]tar.Header{link("etc/cni/net.d", "/root"), reg("etc/cni/net.d/x")}, "below what is no directory", 0, 0},
		"twice":                   {[]tar.Header{link(ca, "/x"), reg(ca)}, "twice", 0, 0},
		"a device":                {[]tar.Header{{Typeflag: tar.TypeBlock, Name: ca}, {Typeflag: tar.TypeFifo, Name: ca}, reg("etc/fstab")}, "", 1, 2},
		"a hard link":             {[]tar.Header{{Typeflag: tar.TypeLink, Name: ca, Linkname: "etc/shadow"}}, "", 0, 1},
		"an odd name":             {[]tar.Header{reg("etc/cni/net.d/a\nb"), reg("etc/cni/net.d/\x1b[2J"), reg("etc/cni/net.d/\xff")}, "", 0, 3},
		"a huge file":             {[]tar.Header{{Typeflag: tar.TypeReg, Name: ca, Size: 1 << 40}}, "larger than 256 MiB", 0, 0},
		"many files":              {many(mostFiles+1, tar.TypeDir), "more than 20000 files", 0, 0},
		"much that is no file":    {many(mostSkipped+1, tar.TypeFifo), "more than 100 entries", 0, 0},
		"nothing, but completely": {nil, "", 0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var buffer bytes.Buffer
			archive := tar.NewWriter(&buffer)
			var stream io.Reader = &buffer
			for _, h := range tt.entries {
				if err := archive.WriteHeader(&h); err != nil {
					t.Fatal(err)
				}
				if h.Size > 0 {
					stream = io.MultiReader(&buffer, zeros{})
				}
			}
			if stream == io.Reader(&buffer) {
				if err := archive.Close(); err != nil {
					t.Fatal(err)
				}
				buffer.WriteString(endMark)
			}
			files := 0
			skipped, err := sift(stream, true, func(h *tar.Header, content io.Reader) error {
				files++
				if h.Mode&^0o7777 != 0 || h.Uname != "" {
					t.Errorf("%+v", h)
				}
				_, err := io.Copy(io.Discard, content)
				return err
			})
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
			if err == nil && (files != tt.files || len(skipped) != tt.skipped) {
				t.Errorf("%d files, skipped %q", files, skipped)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
