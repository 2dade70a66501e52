package image

import (
	"slices"
	"testing"
)

func TestParseIndexTargets(t *testing.T) {
	tests := []struct {
		name string
		out  string
		want []string
	}{
		{"bookworm", `Debian bookworm main http://deb.debian.org/debian
Debian bookworm contrib http://deb.debian.org/debian
Debian bookworm-updates main http://deb.debian.org/debian
Debian bookworm-security main http://security.debian.org/debian-security
`, []string{
			"deb http://deb.debian.org/debian bookworm main", "deb http://deb.debian.org/debian bookworm-updates main",
			"deb http://security.debian.org/debian-security bookworm-security main",
		}},
		// The mirror that a newer Debian uses has the image's suite too.
		{"trixie", `Debian trixie main https://mirror.example/debian
Debian trixie-security main https://mirror.example/security
`, []string{"deb https://mirror.example/debian bookworm main", "deb https://mirror.example/security bookworm-security main"}},
		{"other pockets", `Debian bookworm-backports main http://deb.debian.org/debian
Debian trixie-proposed-updates main http://deb.debian.org/debian
`, nil},
		{"twice", `Debian bookworm main http://deb.debian.org/debian
Debian bookworm main http://deb.debian.org/debian
`, []string{"deb http://deb.debian.org/debian bookworm main"}},
		{"ubuntu", "Ubuntu noble main http://archive.ubuntu.com/ubuntu\nUbuntu noble-security main http://security.ubuntu.com/ubuntu\n", nil},
		{"third party", "Docker bookworm stable https://download.docker.com/linux/debian\n. nodistro main https://deb.nodesource.com/node_22.x\n main\n\n", nil},
		{"nothing", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := parseIndexTargets(tt.out); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestDebianInputs(t *testing.T) {
	if hash(debianInputs(debianPackages)...) == hash(debianInputs(netToolsPackages)...) {
		t.Error("other packages, the same inputs")
	}
}
