package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOnboardingProblems(t *testing.T) {
	const git, use = plane + "onboard: {git: {", "; use one such as https://git.example/fleet.git"
	runProblemTests(t, []problemTest{
		{"nothing", plane + "onboard: {}", nil},
		{"no HTTP", git + "url: 'git@git.example:fleet.git'}}", []string{"2: onboard.git.url: it is not an HTTP URL" + use}},
		{"no host", git + "url: 'https:///fleet.git'}}", []string{"2: onboard.git.url: it is not an HTTP URL" + use}},
		{"password", git + "url: 'https://me:secret@git.example/x'}}", []string{
			"2: onboard.git.url: it has a user or a password, which would be shown" + use + ", with username and password_file"}},
		{"query", git + "url: 'https://git.example/x?token=y'}}", []string{"2: onboard.git.url: it has a query or a fragment" + use}},
		{"branch", git + "branch: 'a..b'}}", []string{`2: onboard.git.branch: "a..b" is not a branch name; use one such as main`}},
		{"file", git + "file: /etc/passwd}}", []string{
			`2: onboard.git.file: "/etc/passwd" is not a path in a repository; use one such as infrastructure/kustomization.yaml`}},
		{"parent", git + "file: ../x.yaml}}", []string{
			`2: onboard.git.file: "../x.yaml" is not a path in a repository; use one such as infrastructure/kustomization.yaml`}},
		{"entry", git + `entry: "a\nb"}}`, []string{`2: onboard.git.entry: "a\nb" is not an item of a list of files; use one such as ../NODE-config`}},
		{"object", git + "source: lab}}", []string{`2: onboard.git.source: "lab" is not NAMESPACE/NAME; use one such as flux-system/lab`}},
		{"two slashes", git + "kustomization: a/b/c}}", []string{`2: onboard.git.kustomization: "a/b/c" is not NAMESPACE/NAME; use one such as flux-system/lab`}},
		{"two namespaces", git + "source: a/x, kustomization: b/x}}", []string{
			`2: onboard.git.kustomization: "b/x" is not in the namespace of onboard.git.source, "a/x"`}},
		{"user", git + "username: 'a:b'}}", []string{`2: onboard.git.username: "a:b" is not a user name: it is empty, or has a colon or control characters`}},
		{"not seen", git + `branch: "a\u202eb", file: "x\u200b.yaml", entry: "a\u2028b", username: "a\ufeff"}}`, []string{
			`2: onboard.git.branch: "a\u202eb" is not a branch name; use one such as main`,
			`2: onboard.git.file: "x\u200b.yaml" is not a path in a repository; use one such as infrastructure/kustomization.yaml`,
			`2: onboard.git.entry: "a\u2028b" is not an item of a list of files; use one such as ../NODE-config`,
			`2: onboard.git.username: "a\ufeff" is not a user name: it is empty, or has a colon or control characters`}},
		{"relative path", git + "password_file: token}}", []string{`2: onboard.git.password_file: "token" is not an absolute path`}},
		{"number of seconds", plane + "onboard: {timeouts: {pre_validation: 90}}", []string{
			`2: onboard.timeouts.pre_validation: found the number "90"; use a duration such as 5m or 90s`}},
		{"no unit", plane + "onboard: {timeouts: {pre_validation: '90'}}", []string{
			`2: onboard.timeouts.pre_validation: found the text "90"; use a duration such as 5m or 90s`}},
		{"range", plane + "onboard: {timeouts: {pre_validation: 0s, health_verification: -5m, post_validation: 25h}}", []string{
			"2: onboard.timeouts.pre_validation: 0s is out of range; use 1s to 24h",
			"2: onboard.timeouts.post_validation: 25h0m0s is out of range; use 1s to 24h",
			"2: onboard.timeouts.health_verification: -5m0s is out of range; use 1s to 24h"}},
		{"all at once", plane + "onboard:\n  git: {branch: ''}\n  timeouts: {storage_integration: soon}\n", []string{
			`3: onboard.git.branch: "" is not a branch name; use one such as main`,
			`4: onboard.timeouts.storage_integration: found the text "soon"; use a duration such as 5m or 90s`}},
	})
}

func TestUnknownPhase(t *testing.T) {
	_, _, err := Parse("f", []byte(plane+"onboard: {timeouts: {storage_integraton: 5m}}"))
	if err == nil || !strings.Contains(err.Error(), "f:2: onboard.timeouts.storage_integraton: unknown key; did you mean storage_integration?") {
		t.Errorf("got %v, want the near phase", err)
	}
}

func TestOnboardingDefaults(t *testing.T) {
	c, _, err := Parse("f", []byte(plane+"onboard: {timeouts: {network_validation: 7m}}"))
	if err != nil {
		t.Fatal(err)
	}
	want := Git{Branch: "main", File: "nodes/kustomization.yaml", Entry: "NODE.yaml", Source: "flux-system/lab", Kustomization: "flux-system/lab", Username: "git"}
	if c.Onboarding.Git != want {
		t.Errorf("got %+v, want %+v", c.Onboarding.Git, want)
	}
	if got := c.Onboarding.Git.EntryOf("w3"); got != "w3.yaml" {
		t.Errorf("the entry of w3 is %q", got)
	}
	limits := c.Onboarding.Timeouts.ByPhase()
	if len(limits) != 9 || limits["network_validation"] != 7*time.Minute || limits["pre_validation"] != 0 {
		t.Errorf("got the limits %v", limits)
	}
}

func TestLoadOnboarding(t *testing.T) {
	path := filepath.Join(t.TempDir(), "onboard.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("onboard: {git: {url: https://git.example/fleet.git}}")
	if o, err := LoadOnboarding(path); err != nil || o.Git.URL != "https://git.example/fleet.git" || o.Git.Branch != "main" {
		t.Errorf("got %+v, %v; want the section alone, with its defaults", o, err)
	}
	write("onboard: {git: {url: x}, timeouts: {y: 5m}}")
	if _, err := LoadOnboarding(path); err == nil || strings.Count(err.Error(), path) != 2 {
		t.Errorf("got %v, want both problems", err)
	}
	if _, err := LoadOnboarding(path + "x"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v, want that there is no such file", err)
	}
}
