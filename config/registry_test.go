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
		{"with ssh", "machines: ssh\nkubernetes: {version: v1.36.3}\nnodes: [{name: cp1, role: control-plane, ip: 10.1.0.1}]\nregistries: [{name: docker.io}]\n",
			[]string{"4: registries: not with machines: ssh: labctl does not configure the runtime of machines that it did not make; remove it"}},
	})
}
