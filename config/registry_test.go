package config

import "testing"

func TestRegistryProblems(t *testing.T) {
	const registry = plane + "registries:\n- "
	runProblemTests(t, []problemTest{
		{"all keys", registry + "{name: docker.io, mirrors: ['http://10.1.0.1:5000', 'https://mirror.example/v2'], ca_file: /etc/ca.pem, credentials_file: /root/.cred}", nil},
		{"no name", registry + "{mirrors: []}", []string{"3: registries[0].name: missing; write what stands before the first slash of the images' names, such as docker.io or registry.example:5000"}},
		{"a URL", registry + "{name: 'https://docker.io'}", []string{`3: registries[0].name: "https://docker.io" is not a registry; use HOST or HOST:PORT, such as docker.io or registry.example:5000`}},
		{"twice", registry + "{name: docker.io}\n- {name: docker.io}", []string{`4: registries[1].name: "docker.io" is already registries[0].name on line 3; keep one of them`}},
		{"a mirror that is none", registry + "{name: docker.io, mirrors: [mirror.example]}", []string{"3: registries[0].mirrors[0]: it is not an HTTP URL; use one such as https://mirror.example:5000"}},
		{"a password", registry + "{name: docker.io, mirrors: ['https://me:secret@mirror.example']}",
			[]string{"3: registries[0].mirrors[0]: it has a user or a password, which would be shown; use one such as https://mirror.example:5000, with credentials_file"}},
		{"relative path", registry + "{name: docker.io, ca_file: ca.pem}", []string{`3: registries[0].ca_file: "ca.pem" is not an absolute path`}},
		{"a cache", plane + "addons: [registry]\nregistries:\n- {name: docker.io, cache: true}\n- {name: 'registry.example:5000', cache: true}", nil},
		{"a cache that nothing has", registry + "{name: docker.io, cache: true}",
			[]string{"3: registries[0].cache: the add-on registry has the caches; write addons: [registry], or leave the cache out"}},
		{"a cache of what takes a login", plane + "addons: [registry]\nregistries:\n- {name: docker.io, cache: true, credentials_file: /root/.cred}",
			[]string{"4: registries[0].cache: not with credentials_file: whoever reaches a node could pull from the cache what the login gives; leave one of them out"}},
		{"two caches at one port", plane + "addons: [registry]\nregistries:\n- {name: r1.example, cache: true}\n- {name: r9.example, cache: true}",
			[]string{`5: registries[1].cache: by chance the caches of "r9.example" and "r1.example" would have the same port, 30969; leave one of them out`}},
		{"with ssh", "machines: ssh\nkubernetes: {version: v1.36.3}\nnodes: [{name: cp1, role: control-plane, ip: 10.1.0.1}]\nregistries: [{name: docker.io}]\n",
			[]string{"4: registries: not with machines: ssh: labctl does not configure the runtime of machines that it did not make; remove it"}},
	})
}

func TestUpstream(t *testing.T) {
	for want, r := range map[string]Registry{
		"https://registry-1.docker.io":       {Name: "docker.io"},
		"https://registry.example:5000":      {Name: "registry.example:5000"},
		"http://10.1.0.1:5000":               {Name: "docker.io", Mirrors: []string{"http://10.1.0.1:5000/v2/", "https://other.example"}},
		"https://mirror.example/proxy/hub.x": {Name: "docker.io", Mirrors: []string{"https://mirror.example/proxy/hub.x"}},
	} {
		if got := r.Upstream(); got != want {
			t.Errorf("%+v: got %s, wanted %s", r, got, want)
		}
	}
}
