package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAutostart(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	systemctl := filepath.Join(dir, "systemctl")
	if err := os.WriteFile(systemctl, []byte("#!/bin/sh\necho \"$@\" >> "+log+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", "/state/50% \"of\" it")
	a := autostart{dir: filepath.Join(dir, "units"), systemctl: []string{systemctl}, running: true}
	path, err := a.on(t.Context(), "k8slab-demo-01234567", "demo", []string{"/opt/lab $HOME/labctl", "--lab", "demo", "up"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\nExecStart=\"/opt/lab $$HOME/labctl\" \"--lab\" \"demo\" \"up\"\n", `Environment="XDG_STATE_HOME=/state/50%% \"of\" it"`, "WantedBy=multi-user.target",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for range 2 { // the second time it is off
		if err := a.off(t.Context(), "k8slab-demo-01234567"); err != nil {
			t.Error(err)
		}
	}
	if exists(path) {
		t.Error("the unit is left")
	}
	said, err := os.ReadFile(log)
	const unit = " --quiet k8slab-demo-01234567.service\n"
	if want := "daemon-reload\nenable" + unit + "disable" + unit + "daemon-reload\n"; err != nil || string(said) != want {
		t.Errorf("said %q, %v", said, err)
	}
	a.running = false
	if _, err := a.on(t.Context(), "x", "demo", []string{"labctl", "up"}); err == nil || !strings.Contains(err.Error(), "labctl up") {
		t.Errorf("without systemd: %v", err)
	}
}
