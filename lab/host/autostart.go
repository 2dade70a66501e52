package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8slab/lab/atomicfile"
	"k8slab/lab/command"
)

// autostart is the systemd that starts a lab when the computer starts: the system manager for root, a user manager for others.
type autostart struct {
	dir       string   // of unit files
	systemctl []string // the command
	running   bool     // whether that systemd runs here
}

func thisAutostart() (autostart, error) {
	running := exists("/run/systemd/system")
	if os.Geteuid() == 0 {
		return autostart{"/etc/systemd/system", []string{"systemctl"}, running}, nil
	}
	dir, err := os.UserConfigDir()
	return autostart{filepath.Join(dir, "systemd/user"), []string{"systemctl", "--user"}, running}, err
}

// autostartUnit starts a lab, without delaying the boot. What a lab of containers leaves running must not end with this unit: it is in a
// scope of its own, or KillMode excludes it.
const autostartUnit = `[Unit]
Description=k8slab: start lab %s
Wants=network-online.target
After=network-online.target libvirtd.socket virtqemud.socket virtnetworkd.socket virtstoraged.socket

[Service]
Type=exec
RemainAfterExit=yes
KillMode=process
%sExecStart=%s

[Install]
WantedBy=%s
`

// keptEnvironment are the variables that decide where a lab's state and cache are.
var keptEnvironment = []string{"HOME", "PATH", "XDG_STATE_HOME", "XDG_CACHE_HOME"}

// Autostart has systemd run the command when this computer starts, as this user, for a lab of that name; name is the unit's. It returns the
// unit file's path.
func Autostart(ctx context.Context, name, lab string, argv []string) (string, error) {
	a, err := thisAutostart()
	if err != nil {
		return "", err
	}
	return a.on(ctx, name, lab, argv)
}

func (a autostart) on(ctx context.Context, name, lab string, argv []string) (string, error) {
	if !a.running {
		return "", errors.New("this computer is not run by systemd; next: have whatever starts its services run: " + strings.Join(argv, " "))
	}
	target, environment := "multi-user.target", ""
	if slices.Contains(a.systemctl, "--user") {
		target = "default.target"
	}
	for _, key := range keptEnvironment {
		if value, set := os.LookupEnv(key); set {
			environment += "Environment=" + quoted(key+"="+value) + "\n"
		}
	}
	words := make([]string, len(argv))
	for i, word := range argv {
		words[i] = strings.ReplaceAll(quoted(word), "$", "$$")
	}
	if err := os.MkdirAll(a.dir, 0o755); err != nil {
		return "", err
	}
	path := a.path(name)
	if err := atomicfile.Write(path, 0o644, fmt.Appendf(nil, autostartUnit, lab, environment, strings.Join(words, " "), target)); err != nil {
		return "", err
	}
	if err := a.run(ctx, "daemon-reload"); err != nil {
		return "", err
	}
	return path, a.run(ctx, "enable", "--quiet", filepath.Base(path))
}

// NoAutostart undoes Autostart; there may be nothing to undo.
func NoAutostart(ctx context.Context, name string) error {
	a, err := thisAutostart()
	if err != nil {
		return err
	}
	return a.off(ctx, name)
}

func (a autostart) off(ctx context.Context, name string) error {
	path := a.path(name)
	if !exists(path) {
		return nil
	}
	if err := a.run(ctx, "disable", "--quiet", filepath.Base(path)); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return a.run(ctx, "daemon-reload")
}

func (a autostart) path(name string) string { return filepath.Join(a.dir, name+".service") }

func (a autostart) run(ctx context.Context, args ...string) error {
	_, err := command.Run(ctx, append(slices.Clone(a.systemctl), args...)...)
	return err
}

// quoted is a word as systemd.syntax(7) and systemd.service(5) want it, but for $, which only command lines know.
func quoted(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "\n", `\n`).Replace(word) + `"`
}
