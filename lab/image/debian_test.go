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
