package diagnose

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8slab/lab/diagnose/fact"
	joining "k8slab/lab/join"
	"k8slab/lab/symptom"
)

// secrets are planted wherever a bundle takes text from.
var secrets = []string{
	"abcdef.0123456789abcdef",
	"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
	"MC4CAQAwBQYDK2VwBCIEIHdvcmRzd29yZHN3b3Jkc3dvcmRzd29yZHN3b3Jkc3dv",
	"c2VjcmV0LWtleS1kYXRhLXNlY3JldC1rZXktZGF0YQ",
}

func leaky() string {
	return "kubeadm join --token " + secrets[0] + " --certificate-key " + secrets[1] + "\n-----BEGIN PRIVATE KEY-----\n" + secrets[2] +
		"\n-----END PRIVATE KEY-----\nclient-key-data: " + secrets[3] + "\n"
}

func brokenFacts() fact.Facts {
	f := healthyFacts(2)
	m := f.Machine("w1")
	stoppedKubelet(m)
	journal(m, "kubelet", time.Minute, unknownFlag)
	journal(m, "containerd", time.Minute, leaky())
	m.Inside.Containerd, m.Inside.Flags = leaky(), []string{"kubelet", leaky()}
	m.Inside.Errors["texts"] = leaky()
	m.Console = leaky()
	m.Inside.Facts.Outcome = &joining.Outcome{Output: leaky()}
	f.API.Events = []string{leaky()}
	dead(f.Machine("w2"), "running", "no route: "+leaky())
	return f
}

func saved(t *testing.T, f fact.Facts) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	if err := WriteBundle(file, f); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestBundleGivesTheSameFindings(t *testing.T) {
	for name, f := range map[string]fact.Facts{"broken": brokenFacts(), "healthy": healthyFacts(2)} {
		t.Run(name, func(t *testing.T) {
			file := saved(t, f)
			live, liveErr := NewReport(f)
			again, err := From(file, nil)
			if liveErr != nil || err != nil {
				t.Fatal(liveErr, err)
			}
			again.Source, again.Took, live.Took = live.Source, 0, 0
			if !reflect.DeepEqual(live, again) {
				t.Errorf("live   %+v\nreplay %+v", live, again)
			}
		})
	}
}

func TestBundleKeepsNoSecretAndIsItsOwners(t *testing.T) {
	file := saved(t, brokenFacts())
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	for name, text := range unpacked(t, file) {
		for _, s := range secrets {
			if strings.Contains(text, s) {
				t.Errorf("%s has %s", name, s)
			}
		}
		if strings.Contains(text, "PRIVATE KEY") {
			t.Errorf("%s has a private key", name)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

func unpacked(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for in := tar.NewReader(packed); ; {
		h, err := in.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(in)
		all[h.Name] = string(text)
	}
}

type entry struct {
	tar.Header
	text string
}

func archive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	packed := gzip.NewWriter(&buf)
	out := tar.NewWriter(packed)
	for _, e := range entries {
		if e.Typeflag == 0 {
			e.Typeflag = tar.TypeReg
		}
		e.Mode, e.Size = 0o644, int64(len(e.text))
		if err := out.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		_, _ = out.Write([]byte(e.text))
	}
	_ = out.Close()
	_ = packed.Close()
	return buf.Bytes()
}

func TestBundleRefuses(t *testing.T) {
	tests := map[string]entry{
		"up":           {Header: tar.Header{Name: "../x"}, text: "x"},
		"up below":     {Header: tar.Header{Name: "a/../../x"}, text: "x"},
		"absolute":     {Header: tar.Header{Name: "/etc/x"}, text: "x"},
		"a link":       {Header: tar.Header{Name: "x", Typeflag: tar.TypeSymlink, Linkname: "/etc/shadow"}},
		"a hard link":  {Header: tar.Header{Name: "x", Typeflag: tar.TypeLink, Linkname: "y"}},
		"a device":     {Header: tar.Header{Name: "x", Typeflag: tar.TypeChar}},
		"a pipe":       {Header: tar.Header{Name: "x", Typeflag: tar.TypeFifo}},
		"another's \\": {Header: tar.Header{Name: `..\x`}, text: "x"},
		"no facts":     {Header: tar.Header{Name: factsFile}, text: "{"},
		"no machines":  {Header: tar.Header{Name: factsFile}, text: "{}"},
		"no text":      {Header: tar.Header{Name: "kubelet.log"}, text: " \n"},
	}
	for name, e := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := From("-", bytes.NewReader(archive(t, e))); err == nil {
				t.Error("it was taken")
			}
		})
	}
	whole := archive(t, entry{Header: tar.Header{Name: "kubelet.log"}, text: strings.Repeat(socketGone+"\n", 1000)})
	if _, err := From("-", bytes.NewReader(whole[:len(whole)/2])); err == nil {
		t.Error("half a bundle was taken for a whole one")
	}
}

func TestBoundedReader(t *testing.T) {
	text, err := io.ReadAll(&boundedReader{r: strings.NewReader("12345"), left: 6})
	if string(text) != "12345" || err != nil {
		t.Error(string(text), err)
	}
	if text, err = io.ReadAll(&boundedReader{r: strings.NewReader("12345"), left: 4}); string(text) != "1234" || err == nil {
		t.Error(string(text), err)
	}
}

func TestForeignBundleNamesNodes(t *testing.T) {
	b := archive(t, entry{Header: tar.Header{Name: "logs/", Typeflag: tar.TypeDir}},
		entry{Header: tar.Header{Name: "n7/kubelet.log"}, text: socketGone + "\n"}, entry{Header: tar.Header{Name: "n8/kubelet.log"}, text: unknownFlag + "\n"})
	r, err := From("-", bytes.NewReader(b))
	if err != nil || len(r.Findings) != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	for i, want := range []struct {
		node string
		id   symptom.ID
	}{{"n7", symptom.RuntimeSocketMissing}, {"n8", symptom.KubeletFlagRemoved}} {
		if f := r.Findings[i]; f.Node != want.node || f.Symptom != want.id || f.Evidence[0].Source == "" {
			t.Errorf("%+v", f)
		}
	}
}

func FuzzBundle(f *testing.F) {
	f.Add(archive(f, entry{Header: tar.Header{Name: "a/kubelet.log"}, text: socketGone}))
	var buf bytes.Buffer
	if err := writeBundle(&buf, brokenFacts()); err != nil {
		f.Fatal(err)
	}
	f.Add(buf.Bytes())
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := From("-", bytes.NewReader(data))
		checkFuzzed(t, r, err)
	})
}

// FuzzFacts judges facts that nobody collected.
func FuzzFacts(f *testing.F) {
	small := brokenFacts()
	small.Machines, small.API.Nodes, small.Etcd.Members = small.Machines[3:], small.API.Nodes[3:], small.Etcd.Members[:1]
	small.Machines[0].Inside.Dials = small.Machines[0].Inside.Dials[:2]
	facts, err := redactedJSON(small)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(facts), "2026-03-01T11:59:00+0000 w1 kubelet[7]: "+unknownFlag)
	f.Fuzz(func(t *testing.T, facts, text string) {
		r, err := From("-", bytes.NewReader(archive(t, entry{Header: tar.Header{Name: factsFile}, text: facts},
			entry{Header: tar.Header{Name: "texts/w1/kubelet.log"}, text: text})))
		checkFuzzed(t, r, err)
	})
}

func FuzzText(f *testing.F) {
	f.Add(socketGone + "\n" + unknownFlag)
	f.Add(leaky())
	f.Add("E0000 00:00000") // an error that names no cause: undetermined
	f.Fuzz(func(t *testing.T, text string) {
		r, err := From("-", strings.NewReader(text))
		checkFuzzed(t, r, err)
	})
}

func checkFuzzed(t *testing.T, r Report, err error) {
	t.Helper()
	if err != nil {
		if r.Source != "" || len(r.Findings) > 0 {
			t.Errorf("a verdict beside the error %v: %+v", err, r)
		}
		return
	}
	if r.Findings == nil || r.Healthy != (!r.Failed() && len(r.Undetermined) == 0) {
		t.Errorf("%+v", r)
	}
	if err := WriteText(io.Discard, r, 80, false); err != nil {
		t.Error(err)
	}
	if err := WriteHTML(io.Discard, r); err != nil {
		t.Error(err)
	}
}
