package image

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8slab/config"
)

func TestParseIndexTargets(t *testing.T) {
	tests := []struct {
		name string
		out  string
		want []string
	}{
		{"bookworm", `Debian bookworm main http://mirror.example/debian
Debian bookworm contrib http://mirror.example/debian
Debian bookworm-updates main http://mirror.example/debian
Debian bookworm-security main http://security.example/debian-security
`, []string{
			"deb http://mirror.example/debian bookworm main", "deb http://mirror.example/debian bookworm-updates main",
			"deb http://security.example/debian-security bookworm-security main",
		}},
		// The mirror that a newer Debian uses has the image's suite too.
		{"trixie", `Debian trixie main https://mirror.example/debian
Debian trixie-security main https://mirror.example/security
`, []string{"deb https://mirror.example/debian bookworm main", "deb https://mirror.example/security bookworm-security main"}},
		{"other pockets", `Debian bookworm-backports main http://mirror.example/debian
Debian trixie-proposed-updates main http://mirror.example/debian
`, nil},
		{"twice", `Debian bookworm main http://mirror.example/debian
Debian bookworm main http://mirror.example/debian
`, []string{"deb http://mirror.example/debian bookworm main"}},
		{"ubuntu", "Ubuntu noble main http://ubuntu.example/ubuntu\nUbuntu noble-security main http://security.ubuntu.com/ubuntu\n", nil},
		{"third party", "Docker bookworm stable https://third-party.example/debian\n. nodistro main https://other.example/node_22.x\n main\n\n", nil},
		{"nothing", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := parseIndexTargets(tt.out, config.Bookworm); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// The inputs of Debian 12 are those that earlier versions of labctl had: what is in a cache is used.
func TestDebianInputs(t *testing.T) {
	inputs := func(suite string, packages ...string) string { return hash(debianInputs(suite, packages)...) }
	if got := debianInputs(config.Bookworm, []string{"a", "b"}); !slices.Equal(got, []string{"debian 1", "bookworm", "a", "b"}) {
		t.Errorf("got %q", got)
	}
	if inputs(config.Trixie, "a") == inputs(config.Trixie, "b") {
		t.Error("other packages, the same inputs")
	}
	if inputs(config.Trixie, "a") == inputs(config.Bookworm, "a") {
		t.Error("another distribution, the same inputs")
	}
}

func TestSourcesOfAnotherRelease(t *testing.T) {
	const out = "Debian bookworm main http://mirror.example/debian\nDebian bookworm-security main http://mirror.example/security\n"
	want := []string{"deb http://mirror.example/debian trixie main", "deb http://mirror.example/security trixie-security main"}
	if got := parseIndexTargets(out, config.Trixie); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Packages of Debian 12 have files outside of usr, those of Debian 13 none: programs and their interpreters look there.
func TestLinkUsr(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "lib/old"), []byte("Debian 12"), 0o644)
	write(t, filepath.Join(dir, "usr/lib/new"), []byte("either"), 0o644)
	write(t, filepath.Join(dir, "usr/lib64/ld.so"), []byte("interpreter"), 0o755)
	for range 2 {
		if err := linkUsr(dir); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, filepath.Join(dir, "lib64/ld.so")) != "interpreter" || read(t, filepath.Join(dir, "lib/old")) != "Debian 12" {
		t.Error("a file is gone")
	}
	if to, err := os.Readlink(filepath.Join(dir, "lib64")); err != nil || to != "usr/lib64" {
		t.Errorf("lib64 leads to %q, %v", to, err)
	}
	if exists(filepath.Join(dir, "bin")) {
		t.Error("bin leads nowhere")
	}
}
