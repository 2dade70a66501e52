package node

import (
	"strings"
	"testing"
)

func TestSSHConfig(t *testing.T) {
	p := newPerson(t)
	if got, err := SSHConfig("nas"); err != nil || got != (HostConfig{Host: "nas"}) {
		t.Errorf("without a file: %+v, %v", got, err)
	}
	p.write(t, "config", []byte(`
Host cp1
  HostName 192.168.4.61
  User ops
  Port 2222
  IdentityFile ~/.ssh/rack
  ProxyJump gate,admin@[fd00::1]:23
Host gate
  HostName gate.home.lan
  User me
  Port 24
  ProxyJump outer
Host w*
  HostName %h.home.lan
  IdentityFile %d/.ssh/%r@%h
  User ops
  ProxyJump none
Host a
  ProxyJump b
Host b
  ProxyJump a
Host odd
  Port x
Match host 10.0.0.1
  User matched
`))
	for name, want := range map[string]HostConfig{
		"cp1":      {"192.168.4.61", "ops", 2222, "~/.ssh/rack", "outer,me@gate.home.lan:24,admin@[fd00::1]:23"},
		"w1":       {"w1.home.lan", "ops", 0, "~/.ssh/ops@w1.home.lan", ""},
		"nas":      {Host: "nas"},
		"10.0.0.1": {Host: "10.0.0.1", User: "matched"},
	} {
		if got, err := SSHConfig(name); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{"a": "more than 8 jump hosts", "odd": "/config: odd: "} {
		if _, err := SSHConfig(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p.write(t, "config", []byte("Match exec true\n"))
	if _, err := SSHConfig("nas"); err == nil || !strings.Contains(err.Error(), "next: name the machine as USER@HOST:PORT") {
		t.Error(err)
	}
}

func TestSplitHop(t *testing.T) {
	for text, want := range map[string][3]string{
		"gate":                {"", "gate", ""},
		"ops@gate:22":         {"ops", "gate", "22"},
		"ops@corp@gate":       {"ops@corp", "gate", ""},
		"ops@[fd00::1]:2222":  {"ops", "fd00::1", "2222"},
		"[fd00::1]":           {"", "fd00::1", ""},
		"fd00::1":             {"", "fd00::1", ""},
		" ssh://ops@gate:22 ": {"ops", "gate", "22"},
	} {
		user, host, port := splitHop(text)
		if got := [3]string{user, host, port}; got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}
