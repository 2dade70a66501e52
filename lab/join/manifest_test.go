package join

import (
	"slices"
	"testing"
)

func TestExternalEtcd(t *testing.T) {
	for servers, want := range map[string][]string{
		"":                       nil, // no manifest, or one that is broken
		"https://127.0.0.1:2379": nil,
		"https://localhost:2379": nil,
		"https://10.1.0.1:2379":  nil,
		"https://127.0.0.1:2379,https://10.1.0.2:2379": nil,
		"https://10.1.0.9:2379":                        {"https://10.1.0.9:2379"},
		"https://a.lan:2379,https://b.lan:2380":        {"https://a.lan:2379", "https://b.lan:2380"},
	} {
		manifest := "    - --advertise-address=10.1.0.1\n    - --etcd-servers=" + servers + "\n"
		if got := ExternalEtcd(manifest); !slices.Equal(got, want) {
			t.Errorf("%s: %q", servers, got)
		}
	}
}

func TestPodFlag(t *testing.T) {
	for text, want := range map[string]string{
		"    - --data-dir=/srv/etcd\n": "/srv/etcd", "[etcd,--data-dir=/srv/etcd,--name=x]": "/srv/etcd", "[etcd, --data-dir=/srv/etcd, --name=x]": "/srv/etcd",
		`["--data-dir=/srv/etcd","--name=x"]`: "/srv/etcd", "--other-data-dir=/x": "", "--data-dir=": "", "": "",
	} {
		if got := PodFlag(text, "data-dir"); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}
