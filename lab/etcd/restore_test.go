package etcd

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestParseManifest(t *testing.T) {
	text, err := os.ReadFile("testdata/etcd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := Identity{Name: "cp2", PeerURL: "https://10.30.0.12:2380", DataDir: "/var/lib/etcd"}
	if got, err := ParseManifest(string(text)); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	edit := func(old, new string) string {
		if !strings.Contains(string(text), old) {
			t.Fatalf("the manifest has no %q", old)
		}
		return strings.Replace(string(text), old, new, 1)
	}
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"another pod":        {edit("    name: etcd\n    resources", "    name: other\n    resources"), []string{"--name", "--initial-advertise-peer-urls", "--data-dir"}},
		"no name":            {edit("--name=cp2", "--nome=cp2"), []string{`--name "" cannot be used`}},
		"two peer URLs":      {edit("urls=https://10.30.0.12:2380", "urls=https://10.30.0.12:2380,https://x:2380"), []string{"is not https://host:port"}},
		"without TLS":        {edit("urls=https://10.30.0.12:2380", "urls=http://10.30.0.12:2380"), []string{"is not https://host:port"}},
		"the root as data":   {edit("--data-dir=/var/lib/etcd", "--data-dir=/"), []string{`--data-dir "/"`}},
		"a path that climbs": {edit("--data-dir=/var/lib/etcd", "--data-dir=/var/lib/../etcd"), []string{"clean absolute path"}},
		"not YAML":           {"\t{", []string{"read etcd's manifest"}},
		"empty":              {"", []string{"--name", "--data-dir"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseManifest(tt.text)
			for _, part := range tt.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %v lacks %q", err, part)
				}
			}
		})
	}
}

func TestRestorationArgv(t *testing.T) {
	r := Restoration{
		Identity: Identity{Name: "cp2", PeerURL: "https://10.30.0.12:2380", DataDir: "/var/lib/etcd"},
		Source:   "/var/lib/k8slab/restore.db", Checksum: true, Into: "/var/lib/etcd.new", Token: "k8slab-1", Version: "3.6.8",
	}
	want := strings.Fields("etcdutl snapshot restore /var/lib/k8slab/restore.db --name cp2 --initial-cluster cp2=https://10.30.0.12:2380" +
		" --initial-advertise-peer-urls https://10.30.0.12:2380 --initial-cluster-token k8slab-1 --data-dir /var/lib/etcd.new" +
		" --bump-revision 1000000000 --mark-compacted")
	if got := r.Argv(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	r.Checksum, r.Version = false, "3.5.24"
	got := r.Argv()
	if !slices.Contains(got, "--skip-hash-check") || slices.Contains(got, "--bump-revision") || slices.Contains(got, "--mark-compacted") {
		t.Errorf("a db file with etcdutl 3.5: %q", got)
	}
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]string{
		"etcdutl version: 3.6.8\nAPI version: 3.6\n": "3.6.8",
		"etcdutl version: 3.5.24":                    "3.5.24",
		"API version: 3.6\n":                         "",
		"etcdutl version: new":                       "",
		"":                                           "",
	} {
		if got, err := ParseVersion(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
}
