package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
)

// programFile has the header of a program for a machine, and a text that tells it from others. It does not run.
func programFile(t *testing.T, machine elf.Machine, text string) []byte {
	t.Helper()
	return executable(t, machine, []byte(text), 0)
}

// kubeadmFile is a program for amd64 that runs: it prints what kubeadm of the version does for `version` and for `config images list`.
func kubeadmFile(t *testing.T, version string) []byte {
	t.Helper()
	const address, codeSize = 0x400000, 54
	images := strings.ReplaceAll(strings.Join(kubeadmImages, "\n"), "v1.36.3", version)
	at := address + 64 + 56 + codeSize // after both headers and the code
	var code bytes.Buffer
	put := func(opcode byte, value int) { // move a constant into a register
		code.WriteByte(opcode)
		_ = binary.Write(&code, binary.LittleEndian, uint32(value))
	}
	code.Write([]byte{0x48, 0x8b, 0x44, 0x24, 0x10, 0x80, 0x38, 'v'}) // mov rax, [rsp+16]; cmp [rax], 'v': the first argument
	put(0xbe, at)                                                     // esi: what to write
	put(0xba, len(version))                                           // edx: its length
	code.Write([]byte{0x74, 0x0a})                                    // je over the other text
	put(0xbe, at+len(version))
	put(0xba, len(images))
	put(0xbf, 1)                   // edi: standard output
	put(0xb8, 1)                   // eax: write
	code.Write([]byte{0x0f, 0x05}) // syscall
	put(0xbf, 0)
	put(0xb8, 60) // exit
	code.Write([]byte{0x0f, 0x05})
	if code.Len() != codeSize {
		t.Fatalf("the code has %d bytes", code.Len())
	}
	code.WriteString(version + images)
	return executable(t, elf.EM_X86_64, code.Bytes(), address)
}

// executable is an ELF file whose content, after the headers, is loaded with them at the address.
func executable(t *testing.T, machine elf.Machine, content []byte, address uint64) []byte {
	t.Helper()
	h := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Entry: address + 64 + 56,
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
	}
	copy(h.Ident[:], "\x7fELF")
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	size := uint64(64 + 56 + len(content))
	segment := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: address, Filesz: size, Memsz: size, Align: 4096}
	var b bytes.Buffer
	if err := errors.Join(binary.Write(&b, binary.LittleEndian, h), binary.Write(&b, binary.LittleEndian, segment)); err != nil {
		t.Fatal(err)
	}
	b.Write(content)
	return b.Bytes()
}

// release is a directory with all the programs of v1.36.3.
func release(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "kubeadm"), kubeadmFile(t, "v1.36.3"), 0o755)
	for _, p := range slices.Concat(hostPrograms, imagePrograms)[1:] {
		write(t, filepath.Join(dir, p), programFile(t, elf.EM_X86_64, p), 0o755)
	}
	return dir
}

func TestKubernetesSource(t *testing.T) {
	b := newBuilder(home(t))
	dir := release(t)
	spec := func(source string) Spec { return Spec{KubernetesVersion: "v1.36.3", KubernetesSource: source} }
	for _, name := range []string{"", config.SourceModules} {
		s, err := b.kubernetesSource(t.Context(), spec(name))
		if c, ok := s.(component); !ok || err != nil || c.version() != "v1.36.3" {
			t.Errorf("%q: got %v, %v", name, s, err)
		}
	}
	s, err := b.kubernetesSource(t.Context(), spec(dir))
	if d, ok := s.(*directory); !ok || err != nil || d.path != dir {
		t.Errorf("directory: got %v, %v", s, err)
	}
	s, err = b.kubernetesSource(t.Context(), spec("https://mirror.example/release//"))
	m, ok := s.(mirror)
	if !ok || err != nil || m.url != "https://mirror.example/release" || m.version != "v1.36.3" {
		t.Fatalf("mirror: got %v, %v", s, err)
	}
	if want := filepath.Join(b.dir, "kubernetes-v1.36.3-"+hash(m.inputs()...)+downloads); m.parts != want {
		t.Errorf("downloads go to %s, and the cache looks after %s", m.parts, want)
	}
}

// What is in the caches of those who have some was named by these.
func TestModulesKeepTheirHash(t *testing.T) {
	in := kubernetes("v1.36.3").inputs()
	in[1], in[2], in[7] = "go1.26.0", "amd64", "sums" // what may differ
	if got, want := hash(in...), "1e2c47579200bf61"; got != want {
		t.Errorf("got %s, want %s: every image would be built anew", got, want)
	}
}

// The image list is kept beside the programs, whatever they come from.
func TestBuilderKubernetes(t *testing.T) {
	dir := release(t)
	m, asked := mirrorOf(t, dir, nil)
	for _, from := range []string{dir, m.url} {
		b := newBuilder(home(t))
		spec := Spec{KubernetesVersion: "v1.36.3", KubernetesSource: from}
		if err := b.kubernetes(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		if got, want := read(t, b.bin(kubernetesName, imageList)), strings.Join(kubeadmImages, "\n")+"\n"; got != want {
			t.Errorf("images %q, want %q", got, want)
		}
		got := filepath.Base(b.dirs[kubernetesName])
		if !strings.HasPrefix(got, "kubernetes-v1.36.3-") || !slices.Equal(b.inputs, []string{got}) {
			t.Errorf("the programs are in %s, and the image depends on %q", got, b.inputs)
		}
		if left := listDir(t, b.dir); !slices.Equal(left, []string{got}) {
			t.Errorf("the cache has %q", left)
		}
		before := len(asked())
		if err := b.kubernetes(t.Context(), spec); err != nil || len(asked()) > before {
			t.Errorf("again: %v, %d requests more", err, len(asked())-before)
		}
	}
}
