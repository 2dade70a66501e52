package gitrepo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProblems(t *testing.T) {
	const secret = "hunter2"
	good := Config{URL: "https://git.example/fleet.git", Branch: "main", File: file, Entry: "../w3", Target: target}
	open := filepath.Join(t.TempDir(), "open")
	must(t, os.WriteFile(open, []byte(secret), 0o640))
	tests := []struct {
		name  string
		spoil func(*Config)
		want  string // "" for none
	}{
		{"good", func(*Config) {}, ""},
		{"with a password", func(c *Config) { c.PasswordFile = private(t, secret+"\r\n") }, ""},
		{"branch with a slash", func(c *Config) { c.Branch = "env/prod" }, ""},
		{"no URL", func(c *Config) { c.URL = "" }, "the URL is not an HTTP URL"},
		{"SSH", func(c *Config) { c.URL = "ssh://git@git.example/fleet.git" }, "the URL is not an HTTP URL"},
		{"password in the URL", func(c *Config) { c.URL = "https://ops:" + secret + "@git.example/fleet.git" }, "the URL has a user or a password"},
		{"user in the URL", func(c *Config) { c.URL = "https://" + secret + "@git.example/fleet.git" }, "the URL has a user or a password"},
		{"password in the query", func(c *Config) { c.URL = "https://git.example/fleet.git?token=" + secret }, "the URL has a query"},
		{"password in the fragment", func(c *Config) { c.URL = "https://git.example/fleet.git#" + secret }, "the URL has a query or a fragment"},
		{"no host", func(c *Config) { c.URL = "https:///" + secret }, "the URL has no host"},
		{"control characters in the URL", func(c *Config) { c.URL = "https://git.example/\n" + secret }, "the URL is not an HTTP URL"},
		{"no branch", func(c *Config) { c.Branch = "" }, `"" is not a branch name`},
		{"a reference", func(c *Config) { c.Branch = "main:refs/heads/other" }, "is not a branch name"},
		{"no file", func(c *Config) { c.File = "" }, `"" is not a path`},
		{"absolute path", func(c *Config) { c.File = "/etc/passwd" }, "is not a path in a repository"},
		{"out of it", func(c *Config) { c.File = "../x.yaml" }, "is not a path in a repository"},
		{"not plain", func(c *Config) { c.File = "a//x.yaml" }, "is not a path in a repository"},
		{"no entry", func(c *Config) { c.Entry = "" }, "is not an item"},
		{"two lines", func(c *Config) { c.Entry = "a\n- b" }, "is not an item"},
		{"blanks", func(c *Config) { c.Entry = " a" }, "is not an item"},
		{"bad author", func(c *Config) { c.AuthorName = "x <y>" }, `the author "x <y> labctl@`},
		{"bad user", func(c *Config) { c.Username = "a:b" }, `the user "a:b" has`},
		{"a second header", func(c *Config) { c.By = "x\n\nApproved-by: y" }, "has control characters"},
		{"no password file", func(c *Config) { c.PasswordFile = open + "x" }, "no such file"},
		{"open password file", func(c *Config) { c.PasswordFile = open }, "its mode is 0640: chmod 600 " + open},
		{"a directory", func(c *Config) { c.PasswordFile = filepath.Dir(open) }, "is not a regular file"},
		{"empty password", func(c *Config) { c.PasswordFile = private(t, "\n") }, "has no single line of text"},
		{"two passwords", func(c *Config) { c.PasswordFile = private(t, "a\n"+secret) }, "has no single line of text"},
		{"open key", func(c *Config) { c.SigningKey = open }, "signing key: others can read or write"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := good
			tt.spoil(&c)
			_, err := Open(t.Context(), c)
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("the error is %v, wanted %q", err, tt.want)
			case err != nil && strings.Contains(err.Error(), secret):
				t.Errorf("the error %v shows the password", err)
			}
		})
	}
	_, err := Open(t.Context(), Config{PasswordFile: open, SigningKey: open})
	for _, want := range []string{"URL", "branch", "path", "item", "password file", "signing key"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error %v lacks the problem of the %s", err, want)
		}
	}
}
